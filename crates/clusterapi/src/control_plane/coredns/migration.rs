//! Changes of Corefiles between the releases of CoreDNS.
//!
//! Source: the release notes of CoreDNS, and the versions that kubeadm deploys.

use super::corefile::{Corefile, NotACorefile};

/// Release of CoreDNS.
pub(super) type Release = (u64, u64, u64);

/// [`Release`]s with known changes, oldest first.
const RELEASES: [Release; 31] = [
    (1, 6, 5),
    (1, 6, 6),
    (1, 6, 7),
    (1, 6, 9),
    (1, 7, 0),
    (1, 7, 1),
    (1, 8, 0),
    (1, 8, 1),
    (1, 8, 3),
    (1, 8, 4),
    (1, 8, 5),
    (1, 8, 6),
    (1, 8, 7),
    (1, 9, 0),
    (1, 9, 1),
    (1, 9, 2),
    (1, 9, 3),
    (1, 9, 4),
    (1, 10, 0),
    (1, 10, 1),
    (1, 11, 0),
    (1, 11, 1),
    (1, 11, 3),
    (1, 11, 4),
    (1, 12, 0),
    (1, 12, 1),
    (1, 12, 2),
    (1, 12, 3),
    (1, 12, 4),
    (1, 13, 0),
    (1, 13, 1),
];

/// [`Release`] that kubeadm deploys with a minor version 1.x of Kubernetes, oldest first.
const OF_KUBERNETES: [(u64, Release); 14] = [
    (22, (1, 8, 4)),
    (23, (1, 8, 6)),
    (24, (1, 8, 6)),
    (25, (1, 9, 3)),
    (26, (1, 9, 3)),
    (27, (1, 10, 1)),
    (28, (1, 10, 1)),
    (29, (1, 11, 1)),
    (30, (1, 11, 1)),
    (31, (1, 11, 3)),
    (32, (1, 11, 3)),
    (33, (1, 12, 0)),
    (34, (1, 12, 1)),
    (35, (1, 13, 1)),
];

/// Plugin or option removed by a release.
struct Removal {
    since: Release,
    plugin: &'static str,
    option: Option<&'static str>,
    /// Replacement; `None` for an option without effect, which is removed.
    instead: Option<&'static str>,
}

const REMOVALS: [Removal; 6] = [
    Removal {
        since: (1, 7, 0),
        plugin: "federation",
        option: None,
        instead: None,
    },
    Removal {
        since: (1, 7, 0),
        plugin: "kubernetes",
        option: Some("upstream"),
        instead: None,
    },
    Removal {
        since: (1, 7, 0),
        plugin: "kubernetes",
        option: Some("resyncperiod"),
        instead: None,
    },
    Removal {
        since: (1, 8, 0),
        plugin: "kubernetes",
        option: Some("transfer"),
        instead: Some("a plugin transfer in the same server"),
    },
    Removal {
        since: (1, 8, 0),
        plugin: "file",
        option: Some("transfer"),
        instead: Some("a plugin transfer in the same server"),
    },
    Removal {
        since: (1, 8, 0),
        plugin: "auto",
        option: Some("transfer"),
        instead: Some("a plugin transfer in the same server"),
    },
];

/// Reason why a Corefile cannot be migrated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotMigrated {
    /// The Corefile cannot be parsed.
    #[error("the Corefile cannot be read: {0}")]
    Unreadable(#[from] NotACorefile),
    /// Release outside of the table.
    #[error("CoreDNS {} is not known here: upgrade CoreDNS yourself, and set the annotation {skip}", text(*.release), skip = super::SKIP)]
    Unknown {
        /// The [`Release`].
        release: Release,
    },
    /// Release older than the running one.
    #[error("CoreDNS {} cannot be replaced by {}: the Corefile cannot be migrated backwards", text(*.from), text(*.to))]
    Backwards {
        /// Running [`Release`].
        from: Release,
        /// Wanted [`Release`].
        to: Release,
    },
    /// The Corefile has a part without an automatic replacement.
    #[error("CoreDNS {} has no {what} any more: the Corefile needs {instead}", text(*.since))]
    Gone {
        /// First [`Release`] without the part.
        since: Release,
        /// Plugin, or option with its plugin.
        what: String,
        /// Replacement, for users.
        instead: &'static str,
    },
}

/// [`Release`] that kubeadm deploys with Kubernetes `1.minor`; `None` if unknown.
pub(super) fn of_kubernetes(minor: u64) -> Option<Release> {
    let known = OF_KUBERNETES.iter().find(|(known, _)| *known == minor);
    known.map(|(_, release)| *release)
}

/// `corefile` of the [`Release`] `from` in the syntax of the release `to`.
pub(super) fn migrate(corefile: &str, from: Release, to: Release) -> Result<String, NotMigrated> {
    if from == to {
        return Ok(corefile.to_owned());
    }
    if to < from {
        return Err(NotMigrated::Backwards { from, to });
    }
    let unknown = [from, to].into_iter().find(|it| !RELEASES.contains(it));
    if let Some(release) = unknown {
        return Err(NotMigrated::Unknown { release });
    }
    let mut file = Corefile::read(corefile)?;
    let mut changed = false;
    for removal in REMOVALS
        .iter()
        .filter(|it| from < it.since && it.since <= to)
    {
        // From the end, so that the numbers of the others stay.
        for at in file.find(removal.plugin, removal.option).into_iter().rev() {
            if let Some(instead) = removal.instead {
                return Err(NotMigrated::Gone {
                    since: removal.since,
                    what: name(removal),
                    instead,
                });
            }
            file.remove(at);
            changed = true;
        }
    }
    Ok(match changed {
        true => file.to_string(),
        false => corefile.to_owned(),
    })
}

fn name(of: &Removal) -> String {
    match of.option {
        Some(option) => format!("option {option} of plugin {}", of.plugin),
        None => format!("plugin {}", of.plugin),
    }
}

/// `1.12.1`.
pub(super) fn text((major, minor, patch): Release) -> String {
    format!("{major}.{minor}.{patch}")
}

#[cfg(test)]
mod tests;
