//! Resources of Services and claims that are deleted with their cluster, by an annotation of the Cluster.

use std::fmt;

use kube::ResourceExt;

use crate::core::v1beta2::Cluster;
use crate::names::DELETE_WITH_CLUSTER_ANNOTATION;
use crate::printable;

/// Treatment of the volumes of claims.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Volumes {
    /// They stay.
    #[default]
    Keep,
    /// Each goes or stays as the reclaim policy of its PersistentVolume says: only its API server knows that.
    Policy,
    /// They go, whatever their reclaim policy.
    Delete,
}

/// Resources that the user wants to be deleted with the cluster. By default none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Load balancers of Services, with their floating IPs and security groups.
    pub services: bool,
    /// Volumes of claims.
    pub volumes: Volumes,
}

impl Wanted {
    /// The words that are allowed, for messages.
    pub const WORDS: &'static str =
        "`services`, `volumes`, `volumes=delete`, or `services` and one of the others with a comma";

    /// Reads words with commas between them: `services`, `volumes` (as the reclaim policies say, also
    /// `volumes=policy`), `volumes=delete` and `volumes=keep`. Of several about volumes, the last one counts.
    ///
    /// # Errors
    /// The word that is none of these.
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

    /// Reads the annotation of a Cluster.
    ///
    /// # Errors
    /// A message about a word that is unknown, with at most 64 of its characters.
    pub fn of(cluster: &Cluster) -> Result<Self, String> {
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

/// As the annotation has it.
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
