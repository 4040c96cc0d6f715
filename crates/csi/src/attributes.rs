//! Mutable parameters, as in a VolumeAttributesClass.

use std::collections::BTreeMap;

use grpc::Status;

use crate::mark;
use crate::refusal::invalid;

/// Parameter with the migration policy of a retype.
const MIGRATION_POLICY: &str = "migration-policy";
/// Prefix of parameters that become metadata of the volume.
const METADATA: &str = "metadata/";
/// Metadata keys that Cinder writes itself, among the keys of users.
const OF_CINDER: &[&str] = &["attached_mode", "readonly"];
/// Prefixes of metadata keys of the driver and the sidecars.
const OF_DRIVER: &[&str] = &["cinder.csi.openstack.org/", "csi.storage.k8s.io/"];

/// Wanted attributes of a volume. An absent parameter changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// `type`: name or id of a volume type.
    pub volume_type: Option<String>,
    /// `migration-policy: on-demand`: Cinder may move the data to another back end.
    pub moves: bool,
    /// `metadata/KEY`: metadata of the volume.
    pub metadata: BTreeMap<String, String>,
}

impl Attributes {
    /// Parses parameters.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for an unknown parameter, or an invalid value.
    pub(crate) fn read(parameters: &BTreeMap<String, String>) -> Result<Self, Status> {
        let mut read = Self::default();
        for (key, value) in parameters {
            match key.as_str() {
                "type" if value.is_empty() => return invalid("the parameter `type` is empty"),
                "type" => read.volume_type = Some(value.clone()),
                MIGRATION_POLICY => read.moves = moves(value)?,
                key => {
                    let (key, value) = metadata(key, value)?;
                    read.metadata.insert(key, value);
                }
            }
        }
        Ok(read)
    }
}

fn moves(policy: &str) -> Result<bool, Status> {
    match policy {
        "" | "never" => Ok(false),
        "on-demand" => Ok(true),
        other => invalid(format!(
            "the parameter `{}` is never or on-demand, not `{}`",
            MIGRATION_POLICY,
            other.escape_debug()
        )),
    }
}

fn metadata(parameter: &str, value: &str) -> Result<(String, String), Status> {
    let Some(key) = parameter.strip_prefix(METADATA) else {
        return invalid(format!(
            "the parameter `{}` of the VolumeAttributesClass is unknown; there are: type, {}, {METADATA}KEY",
            parameter.escape_debug(),
            MIGRATION_POLICY
        ));
    };
    let is_reserved =
        OF_CINDER.contains(&key) || OF_DRIVER.iter().any(|prefix| key.starts_with(prefix));
    if is_reserved {
        return invalid(format!(
            "the parameter `{}` is metadata that Cinder or this driver sets",
            parameter.escape_debug()
        ));
    }
    let fits = |text: &str| text.chars().count() <= mark::LONGEST;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_:. /".contains(c);
    if key.is_empty() || !key.chars().all(is_plain) || !fits(key) || !fits(value) {
        return invalid(format!(
            "the parameter `{}`: Cinder takes keys of 1 to {most} letters, digits and -_:./ and spaces, and values of at \
             most {most} characters",
            parameter.escape_debug(),
            most = mark::LONGEST
        ));
    }
    Ok((key.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use grpc::Code;

    use super::*;

    fn read(pairs: &[(&str, &str)]) -> Result<Attributes, Status> {
        let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
        Attributes::read(&pairs.iter().map(owned).collect())
    }

    #[test]
    fn a_class_names_a_type_a_policy_and_metadata() {
        assert_eq!(read(&[]).unwrap(), Attributes::default());
        let all = read(&[
            ("type", "fast"),
            ("migration-policy", "on-demand"),
            ("metadata/backup", "nightly"),
            ("metadata/a/b c", ""),
        ]);
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let expected = Attributes {
            volume_type: Some("fast".to_owned()),
            moves: true,
            metadata: [pair("backup", "nightly"), pair("a/b c", "")].into(),
        };
        assert_eq!(all.unwrap(), expected);
        assert!(!read(&[("migration-policy", "never")]).unwrap().moves);
    }

    #[test]
    fn what_is_unknown_or_reserved_is_refused() {
        let long = "x".repeat(256);
        let long_key = format!("metadata/{long}");
        for (key, value, words) in [
            (
                "iops",
                "1",
                "`iops` of the VolumeAttributesClass is unknown",
            ),
            ("", "1", "is unknown; there are: type"),
            ("Type", "fast", "`Type` of the"),
            ("csi.storage.k8s.io/fstype", "xfs", "is unknown"),
            ("type", "", "`type` is empty"),
            (
                "migration-policy",
                "always",
                "is never or on-demand, not `always`",
            ),
            ("metadata/", "x", "keys of 1 to 255"),
            ("metadata/a=b", "x", "letters, digits and"),
            ("metadata/größe", "x", "letters, digits and"),
            (long_key.as_str(), "x", "keys of 1 to 255"),
            ("metadata/x", long.as_str(), "at most 255 characters"),
            (
                "metadata/readonly",
                "False",
                "that Cinder or this driver sets",
            ),
            (
                "metadata/cinder.csi.openstack.org/cluster",
                "other",
                "that Cinder or this driver sets",
            ),
            (
                "metadata/csi.storage.k8s.io/pv/name",
                "other",
                "that Cinder or this driver sets",
            ),
        ] {
            let status = read(&[(key, value)]).unwrap_err();
            assert_eq!(status.code, Code::InvalidArgument);
            assert!(status.message.contains(words), "{key}: {}", status.message);
        }
    }
}
