//! Record of the release of a cloud, and of the phases of its upgrade, in the status of the object. Pure.

use api::openstack::v1alpha1::{OpenStack, ReleaseStatus, UpgradePhase};
use deployer::Release;
use deployer::upgrade::{Phase, Recorded};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

/// Record of the release of a cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Steady state of a release.
    Of(Release),
    /// A restore or a rotation under way, in words.
    Operating(Release, String),
    /// Upgrade in progress.
    Upgrade {
        from: Release,
        to: Release,
        phase: Phase,
        is_over: bool,
        warnings: Vec<String>,
    },
    /// Checks of another release.
    Check {
        from: Release,
        to: Release,
        is_over: bool,
        warnings: Vec<String>,
    },
}

impl Entry {
    /// Reason why a cloud with nothing but ready steps is not ready.
    pub(crate) fn unfinished(&self) -> Option<String> {
        match self {
            Self::Upgrade {
                from, to, phase, ..
            } => Some(format!("upgrade from {from} to {to}: {phase}")),
            Self::Operating(_, what) => Some(what.clone()),
            Self::Of(_) | Self::Check { .. } => None,
        }
    }
}

/// [`Recorded`] state in the status of a cloud.
pub(crate) fn recorded(object: &OpenStack) -> Recorded {
    let status = object.status.as_ref().and_then(|it| it.release.as_ref());
    let release = |name: &Option<String>| name.as_deref().and_then(Release::named);
    Recorded {
        current: status.and_then(|it| Release::named(&it.current)),
        to: status.and_then(|it| release(&it.to)),
        phase: status.and_then(|it| Phase::named(it.phase.as_deref()?)),
    }
}

/// [`ReleaseStatus`] after a reconcile.
pub(crate) fn next(before: Option<&ReleaseStatus>, entry: &Entry, now: Timestamp) -> ReleaseStatus {
    let mut status = before.cloned().unwrap_or_default();
    let (from, to, phase, is_over, warnings) = match entry {
        Entry::Of(release) | Entry::Operating(release, _) => {
            let name = release.name();
            if status.to.as_deref() != Some(name) || status.phase.is_some() {
                // The cloud was created with this release, or the upgrade was given up.
                status = ReleaseStatus::default();
            }
            name.clone_into(&mut status.current);
            return status;
        }
        Entry::Upgrade {
            from,
            to,
            phase,
            is_over,
            warnings,
        } => (from, to, *phase, *is_over, warnings),
        Entry::Check {
            from,
            to,
            is_over,
            warnings,
        } => (from, to, Phase::Check, *is_over, warnings),
    };
    if status.to.as_deref() != Some(to.name()) || status.phase.is_none() {
        status = ReleaseStatus::default();
    }
    from.name().clone_into(&mut status.current);
    status.from = Some(from.name().to_owned());
    status.to = Some(to.name().to_owned());
    status.phase = Some(phase.name().to_owned());
    phases(&mut status.phases, phase, is_over, now);
    for warning in warnings {
        if !status.warnings.contains(warning) {
            status.warnings.push(warning.clone());
        }
    }
    if is_over && matches!(entry, Entry::Upgrade { .. }) {
        to.name().clone_into(&mut status.current);
        status.phase = None;
    }
    status
}

/// Records the start or the end of a [`Phase`].
fn phases(all: &mut Vec<UpgradePhase>, phase: Phase, is_over: bool, now: Timestamp) {
    let seconds = |it: &UpgradePhase| {
        let started = it.started.as_ref()?;
        Some(now.duration_since(started.0).as_secs().max(0))
    };
    // A phase that began and ended between two looks took no time.
    for earlier in Phase::ALL.into_iter().filter(|it| *it <= phase) {
        if !all.iter().any(|it| it.name == earlier.name()) {
            all.push(UpgradePhase {
                name: earlier.name().to_owned(),
                started: Some(Time(now)),
                seconds: None,
            });
        }
    }
    for it in all.iter_mut() {
        let is_past = Phase::named(&it.name).is_some_and(|it| it < phase);
        match is_past || is_over && it.name == phase.name() {
            true => it.seconds = it.seconds.or_else(|| seconds(it)),
            false => it.seconds = None,
        }
    }
}

#[cfg(test)]
mod tests;
