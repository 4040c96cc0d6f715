//! Standing of a cloud: its release, and a running upgrade.

use serde_json::Value as Json;

use super::Phase;
use crate::desired::{ROLL, STEP};
use crate::held::UID;
use crate::release::Release;

/// Record of the release of a cloud.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recorded {
    /// [`Release`] of the cloud.
    pub current: Option<Release>,
    /// [`Release`] after the running upgrade.
    pub to: Option<Release>,
    /// [`Phase`] of the upgrade.
    pub phase: Option<Phase>,
}

/// Standing of a cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The cloud has the wanted release.
    Steady(Release),
    /// An upgrade is running.
    Upgrade {
        /// Current release.
        from: Release,
        /// Wanted release.
        to: Release,
        /// Last recorded phase.
        phase: Phase,
    },
    /// The wanted release is impossible: the reason, with what to do.
    Refused(String),
}

/// [`Standing`] of a cloud with this uid and a wanted release. Facts missing in the record are read from the images of
/// its programs.
pub fn standing(recorded: Recorded, wanted: Release, uid: &str, objects: &[Json]) -> Standing {
    let seen = Seen::new(uid, objects);
    let current = recorded.current.or_else(|| seen.current(wanted));
    let current = current.unwrap_or(wanted);
    if wanted == current {
        let going = recorded.to.is_some() || recorded.current.is_none();
        return match seen.newest.filter(|(newest, _)| going && *newest > current) {
            Some((newest, program)) => Standing::Refused(no_way_back(current, newest, program)),
            None => Standing::Steady(current),
        };
    }
    match current.way_to(wanted) {
        Err(why) => Standing::Refused(format!("release: {why}")),
        Ok(()) => Standing::Upgrade {
            from: current,
            to: wanted,
            phase: match recorded.to == Some(wanted) {
                true => recorded.phase.unwrap_or(Phase::Check),
                false => Phase::Check,
            },
        },
    }
}

fn no_way_back(current: Release, newest: Release, program: &str) -> String {
    format!(
        "release: {program} is of {newest} already, and the way back to {current} by image ended with the phase Expand: \
         set release to \"{newest}\" again, and the upgrade goes on, or restore a backup of {current}"
    )
}

/// [`Release`]s of the existing programs.
struct Seen<'a> {
    oldest: Option<Release>,
    newest: Option<(Release, &'a str)>,
    /// True if a task of an upgrade exists; such tasks are deleted at the end.
    unfinished: bool,
}

impl<'a> Seen<'a> {
    fn new(uid: &str, objects: &'a [Json]) -> Self {
        let ours = objects
            .iter()
            .filter(|it| it["metadata"]["labels"][UID] == uid);
        let programs = ours.clone().filter_map(|it| {
            let name = it["metadata"]["name"].as_str()?;
            let rolls = it["kind"] != "Job" && ROLL.contains(&name);
            Some((Release::of_image(it).filter(|_| rolls)?, name))
        });
        let step = |it: &'a Json| it["metadata"]["labels"][STEP].as_str();
        let mut steps = ours.filter(|it| it["kind"] == "Job").filter_map(step);
        Self {
            oldest: programs.clone().map(|(release, _)| release).min(),
            newest: programs.max_by_key(|(release, _)| *release),
            unfinished: steps.any(super::is_task),
        }
    }

    /// [`Release`] of the cloud, as far as its programs show it.
    fn current(&self, wanted: Release) -> Option<Release> {
        let oldest = self.oldest?;
        let before = || {
            Release::ALL
                .into_iter()
                .find(|it| it.next() == Some(wanted))
        };
        match self.unfinished && oldest == wanted {
            true => before().or(Some(oldest)),
            false => Some(oldest),
        }
    }
}
