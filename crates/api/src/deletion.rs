//! Resources of Services and claims to delete with their cluster, by an annotation of the [`Cluster`].

use std::fmt;

use kube::ResourceExt;

use crate::core::v1beta2::Cluster;
use crate::names::DELETE_WITH_CLUSTER_ANNOTATION;
use crate::printable;

/// Treatment of the volumes of claims ([`Wanted::volumes`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Volumes {
    /// Volumes stay.
    #[default]
    Keep,
    /// Each volume is deleted or kept by the reclaim policy of its PersistentVolume, known only to the API server of
    /// the workload cluster.
    Policy,
    /// Volumes are deleted, with any reclaim policy.
    Delete,
}

/// Resources to delete with the cluster, by the user's wish. Default: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// True for load balancers of Services, with their floating IPs and security groups.
    pub services: bool,
    /// Treatment of the volumes of claims.
    pub volumes: Volumes,
}

impl Wanted {
    /// Valid words, for messages.
    pub const WORDS: &'static str =
        "`services`, `volumes`, `volumes=delete`, or `services` and one of the others with a comma";

    /// Parses comma-separated words: `services`, `volumes` (by the reclaim policies, as `volumes=policy`),
    /// `volumes=delete` and `volumes=keep`. The last word about volumes wins.
    ///
    /// # Errors
    /// An unknown word.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut wanted = Self::default();
        for word in text.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            match word {
                "services" => wanted.services = true,
                "volumes" | "volumes=policy" => wanted.volumes = Volumes::Policy,
                "volumes=delete" => wanted.volumes = Volumes::Delete,
                "volumes=keep" => wanted.volumes = Volumes::Keep,
                other => return Err(other.to_owned()),
            }
        }
        Ok(wanted)
    }

    /// Parses the annotation of a [`Cluster`].
    ///
    /// # Errors
    /// Message about an unknown word, cut to 64 characters.
    pub fn from_cluster(cluster: &Cluster) -> Result<Self, String> {
        let annotation = cluster.annotations().get(DELETE_WITH_CLUSTER_ANNOTATION);
        Self::parse(annotation.map_or("", String::as_str)).map_err(|word| {
            let word = printable::bounded(&word, 64).into_owned();
            let words = Self::WORDS;
            format!(
                "annotation {DELETE_WITH_CLUSTER_ANNOTATION} of the Cluster: `{word}` is none of {words}"
            )
        })
    }

    /// True if nothing is to be deleted.
    #[must_use]
    pub fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

/// Words in the form of the annotation.
impl fmt::Display for Wanted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let volumes = match self.volumes {
            Volumes::Keep => None,
            Volumes::Policy => Some("volumes"),
            Volumes::Delete => Some("volumes=delete"),
        };
        let words = self.services.then_some("services").into_iter();
        let words: Vec<_> = words.chain(volumes).collect();
        f.write_str(&words.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for text in ["", "services", "volumes", "services,volumes=delete"] {
            assert_eq!(Wanted::parse(text).unwrap().to_string(), text);
        }
        let same = Wanted::parse(" volumes=policy , services,").unwrap();
        assert_eq!(same.to_string(), "services,volumes");
        assert!(
            Wanted::parse("volumes=delete,volumes=keep")
                .unwrap()
                .is_nothing()
        );
        assert_eq!(Wanted::parse("services,all"), Err("all".to_owned()));
    }
}
