//! Requests for both drivers: `tests/csi/side-by-side.yaml`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::Value;

/// The whole script.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Script {
    pub(super) groups: Vec<Group>,
}

/// Sequence of requests, on a new cloud.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Group {
    pub(super) name: String,
    /// Number of servers: `$node-0`, `$node-1`, ...
    #[serde(default)]
    pub(super) servers: usize,
    /// Zones of Cinder, beside Nova's.
    #[serde(default)]
    pub(super) zones: Vec<String>,
    /// Runs the node halves, too, on a machine with the disks of `$node-0`.
    #[serde(default)]
    pub(super) nodes: bool,
    /// Some steps are for a second driver, which takes over from the first.
    #[serde(default)]
    pub(super) handed_over: bool,
    pub(super) steps: Vec<Step>,
}

/// Request to a driver or to the cloud.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct Step {
    /// Unique name within the [`Group`].
    pub(super) is: String,
    pub(super) call: Call,
    /// Sends the request to the second driver.
    #[serde(default)]
    pub(super) second: bool,
    /// Name for the id in the answer.
    #[serde(default)]
    pub(super) keep: Option<String>,
    /// Repeats the request, as a sidecar would, until a final code or, for a snapshot, readiness.
    #[serde(default)]
    pub(super) repeated: bool,
    /// Sends one request for each value, available as `$each`.
    #[serde(default)]
    pub(super) each: Vec<Value>,

    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) volume: String,
    #[serde(default)]
    pub(super) node: String,
    #[serde(default)]
    pub(super) snapshot: String,
    /// Source volume of a new volume.
    #[serde(default)]
    pub(super) from_volume: Option<String>,
    #[serde(default)]
    pub(super) from_snapshot: Option<String>,
    /// Required size, as GiB or as bytes; without either no range.
    #[serde(default)]
    pub(super) gib: Option<i64>,
    #[serde(default)]
    pub(super) bytes: Option<i64>,
    /// Limit in bytes.
    #[serde(default)]
    pub(super) limit: Option<i64>,
    /// Access mode, as in csi.proto; `none` for no capability at all.
    #[serde(default)]
    pub(super) mode: Option<String>,
    #[serde(default)]
    pub(super) block: bool,
    #[serde(default)]
    pub(super) file_system: String,
    #[serde(default)]
    pub(super) flags: Vec<String>,
    #[serde(default)]
    pub(super) parameters: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) secrets: BTreeMap<String, String>,
    /// Zones of the topology, with preference in this order.
    #[serde(default)]
    pub(super) in_zones: Vec<String>,
    #[serde(default)]
    pub(super) max: i32,
    #[serde(default)]
    pub(super) token: String,
    /// Reads all pages of a list, of at most `max` entries each.
    #[serde(default)]
    pub(super) pages: bool,
    /// Directories and files, relative to a directory of the play unless absolute.
    #[serde(default)]
    pub(super) staging: String,
    #[serde(default)]
    pub(super) target: String,
    #[serde(default)]
    pub(super) read_only: bool,

    /// Method of a request to the cloud.
    #[serde(default)]
    pub(super) method: String,
    #[serde(default)]
    pub(super) path: String,
    #[serde(default)]
    pub(super) body: Option<Value>,
    #[serde(default)]
    pub(super) admin: bool,
    /// Repeats the request until this status.
    #[serde(default)]
    pub(super) until: Option<u16>,
}

/// Method of a request.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
pub(super) enum Call {
    /// Request to the cloud; its answer is not compared.
    #[default]
    Cloud,
    GetPluginInfo,
    GetPluginCapabilities,
    Probe,
    CreateVolume,
    DeleteVolume,
    ControllerPublishVolume,
    ControllerUnpublishVolume,
    ValidateVolumeCapabilities,
    ListVolumes,
    ControllerGetVolume,
    ControllerGetCapabilities,
    CreateSnapshot,
    DeleteSnapshot,
    ListSnapshots,
    ControllerExpandVolume,
    NodeGetInfo,
    NodeGetCapabilities,
    NodeStageVolume,
    NodeUnstageVolume,
    NodePublishVolume,
    NodeUnpublishVolume,
    NodeGetVolumeStats,
    NodeExpandVolume,
}

impl Call {
    /// True for methods of the node half.
    pub(super) fn is_of_node(self) -> bool {
        matches!(
            self,
            Self::NodeGetInfo
                | Self::NodeGetCapabilities
                | Self::NodeStageVolume
                | Self::NodeUnstageVolume
                | Self::NodePublishVolume
                | Self::NodeUnpublishVolume
                | Self::NodeGetVolumeStats
                | Self::NodeExpandVolume
        )
    }
}

impl Script {
    pub(super) fn read(file: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
        Self::parse(&text).with_context(|| file.display().to_string())
    }

    fn parse(text: &str) -> anyhow::Result<Self> {
        let mut script: Self = serde_saphyr::from_str(text)?;
        let mut groups = BTreeSet::new();
        for group in &mut script.groups {
            ensure!(
                groups.insert(group.name.clone()),
                "two groups `{}`",
                group.name
            );
            let steps = std::mem::take(&mut group.steps);
            group.steps = steps.into_iter().flat_map(expanded).collect();
            let mut steps = BTreeSet::new();
            for step in &group.steps {
                let where_ = format!("{}: {}", group.name, step.is);
                ensure!(steps.insert(step.is.clone()), "two steps `{where_}`");
                ensure!(
                    !step.second || group.handed_over,
                    "`{where_}`: the group is not handed over"
                );
                ensure!(
                    !step.call.is_of_node() || group.nodes,
                    "`{where_}`: the group has no nodes"
                );
            }
        }
        Ok(script)
    }

    /// Number of requests to a driver.
    pub(super) fn requests(&self) -> usize {
        let steps = self.groups.iter().flat_map(|group| &group.steps);
        steps.filter(|step| step.call != Call::Cloud).count()
    }
}

/// Copies of a [`Step`], one for each of its values.
fn expanded(step: Step) -> Vec<Step> {
    if step.each.is_empty() {
        return vec![step];
    }
    let numbered = step.each.iter().enumerate().map(|(number, value)| {
        let mut one = step.clone();
        one.is = format!("{} {}", step.is, number + 1);
        let number = value.as_i64();
        let text = value.as_str().unwrap_or_default();
        for field in [
            &mut one.name,
            &mut one.volume,
            &mut one.node,
            &mut one.snapshot,
            &mut one.token,
            &mut one.staging,
            &mut one.target,
            &mut one.file_system,
        ] {
            if field == "$each" {
                text.clone_into(field);
            }
        }
        for field in [&mut one.mode, &mut one.from_volume, &mut one.from_snapshot]
            .into_iter()
            .flatten()
        {
            if field == "$each" {
                text.clone_into(field);
            }
        }
        for value in one.parameters.values_mut().chain(one.secrets.values_mut()) {
            if value == "$each" {
                text.clone_into(value);
            }
        }
        if let Some(number) = number {
            one.bytes = Some(number);
        }
        one
    });
    numbered.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_with_values_is_one_for_each_of_them() {
        let script = "groups: [{name: g, steps: [{is: bad, call: DeleteVolume, volume: $each, each: ['', x]}, {is: other, call: Probe}]}]";
        let script = Script::parse(script).unwrap();
        let steps = &script.groups[0].steps;
        let names: Vec<&str> = steps.iter().map(|it| it.is.as_str()).collect();
        assert_eq!(names, ["bad 1", "bad 2", "other"]);
        assert_eq!(
            (steps[0].volume.as_str(), steps[1].volume.as_str()),
            ("", "x")
        );
        assert_eq!(script.requests(), 3);
    }

    #[test]
    fn what_cannot_be_played_is_named() {
        for (step, words) in [
            (
                "{is: a, call: Probe}, {is: a, call: Probe}",
                "two steps `g: a`",
            ),
            ("{is: a, call: Probe, second: true}", "not handed over"),
            ("{is: a, call: NodeGetInfo}", "has no nodes"),
            ("{is: a, call: Nothing}", "Nothing"),
            ("{is: a, call: Probe, volum: x}", "volum"),
        ] {
            let script = format!("groups: [{{name: g, steps: [{step}]}}]");
            let why = format!("{:#}", Script::parse(&script).unwrap_err());
            assert!(why.contains(words), "{why}");
        }
    }
}
