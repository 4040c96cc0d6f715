//! Requests, validated as typed values. Invalid ones are refused before any request to the cloud.

use std::collections::{BTreeMap, BTreeSet};

use csi_spec::access;
use csi_spec::context;
use csi_spec::volume_capability::AccessType;
use csi_spec::volume_capability::access_mode::Mode;
use csi_spec::volume_content_source::Type;
use csi_spec::{
    CreateSnapshotRequest, CreateVolumeGroupSnapshotRequest, CreateVolumeRequest, VolumeCapability,
    VolumeContentSource,
};
use grpc::Status;

use crate::Options;
use crate::attributes::Attributes;
use crate::hints::Hints;
use crate::mark;
use crate::refusal::invalid;
use crate::size::Range;
use crate::zone;

/// Prefix of parameters that the sidecars add or read.
const OF_SIDECARS: &str = "csi.storage.k8s.io/";

/// Parameters of a StorageClass.
const OF_STORAGE_CLASS: &[&str] = &["type", "availability", context::FORMAT_PARAMETER];
/// Parameters of a VolumeSnapshotClass.
const OF_SNAPSHOT_CLASS: &[&str] = &[
    "type",
    "force-create",
    "availability",
    "backup-max-duration-seconds-per-gb",
];

/// Text of a required field.
pub(crate) fn given(text: &str, field: &str) -> Result<String, Status> {
    match text {
        "" => invalid(format!("{field} is missing")),
        text => Ok(text.to_owned()),
    }
}

/// Name of a new object, trimmed. Cinder trims names as Python does; an untrimmed name would not be found again.
fn name(given_name: &str) -> Result<String, Status> {
    let is_cut = |it: char| it.is_whitespace() || ('\x1c'..='\x1f').contains(&it);
    let name = given(given_name.trim_matches(is_cut), "name")?;
    match name.chars().count() {
        length if length > mark::LONGEST => invalid(format!(
            "the name has {length} characters, and Cinder takes {}",
            mark::LONGEST
        )),
        _ => Ok(name),
    }
}

/// Refuses a file system type that no node would make or mount.
fn known_file_systems(capabilities: &[VolumeCapability]) -> Result<(), Status> {
    for capability in capabilities {
        let Some(AccessType::Mount(mount)) = &capability.access_type else {
            continue;
        };
        let kind = mount.fs_type.as_str();
        if !kind.is_empty() && !context::FILE_SYSTEMS.contains(&kind) {
            return invalid(format!(
                "fs_type `{}` is none of {}",
                kind.escape_debug(),
                context::FILE_SYSTEMS.join(", ")
            ));
        }
    }
    Ok(())
}

/// Refuses unknown parameters, in place of ignoring them.
fn only_known(
    parameters: &BTreeMap<String, String>,
    known: &[&str],
    class: &str,
) -> Result<(), Status> {
    let is_known = |key: &str| known.contains(&key) || key.starts_with(OF_SIDECARS);
    match parameters.keys().find(|key| !is_known(key)) {
        Some(key) => invalid(format!(
            "the parameter `{}` of the {class} is unknown; there are: {}",
            key.escape_debug(),
            known.join(", ")
        )),
        None => Ok(()),
    }
}

/// Use of a volume, from its [`VolumeCapability`]s.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Uses {
    /// True if several nodes have the volume at once.
    pub several_nodes: bool,
    /// True if the volume is a block device in its pods.
    pub block: bool,
    /// True for a file system that one node may change while another one has it mounted.
    pub shared_writes: bool,
}

impl Uses {
    /// Message for a use that would destroy data.
    pub(crate) fn contradiction(self) -> Option<&'static str> {
        self.shared_writes.then_some(access::ONE_WRITER)
    }

    fn checked(self) -> Result<Self, Status> {
        match self.contradiction() {
            Some(words) => invalid(words),
            None => Ok(self),
        }
    }
}

/// [`Uses`] of several capabilities; a use that would destroy data is refused.
pub(crate) fn safe_uses(capabilities: &[VolumeCapability]) -> Result<Uses, Status> {
    uses(capabilities)?.checked()
}

/// [`Uses`] of one capability; a use that would destroy data is refused.
pub(crate) fn safe_use(capability: &VolumeCapability) -> Result<Uses, Status> {
    one_use(capability)?.checked()
}

/// [`Uses`] of several capabilities.
pub(crate) fn uses(capabilities: &[VolumeCapability]) -> Result<Uses, Status> {
    if capabilities.is_empty() {
        return invalid("volume_capabilities are missing");
    }
    let mut uses = Uses::default();
    let mut writes = false;
    for capability in capabilities {
        let one = one_use(capability)?;
        uses.several_nodes |= one.several_nodes;
        uses.block |= one.block;
        uses.shared_writes |= one.shared_writes;
        writes |= access::mounts_for_writing(capability);
    }
    // csi-attacher makes MULTI_NODE_SINGLE_WRITER out of a writer beside readers.
    uses.shared_writes |= uses.several_nodes && writes;
    Ok(uses)
}

/// [`Uses`] of one capability.
pub(crate) fn one_use(capability: &VolumeCapability) -> Result<Uses, Status> {
    let block = match capability.access_type {
        Some(AccessType::Block(_)) => true,
        Some(AccessType::Mount(_)) => false,
        None => return invalid("volume_capability.access_type is missing"),
    };
    let several_nodes = match capability.access_mode.as_ref().map(|it| it.mode()) {
        Some(
            Mode::SingleNodeWriter
            | Mode::SingleNodeReaderOnly
            | Mode::SingleNodeSingleWriter
            | Mode::SingleNodeMultiWriter,
        ) => false,
        Some(
            Mode::MultiNodeReaderOnly | Mode::MultiNodeSingleWriter | Mode::MultiNodeMultiWriter,
        ) => true,
        Some(Mode::Unknown) | None => {
            return invalid("volume_capability.access_mode is missing or unknown");
        }
    };
    Ok(Uses {
        several_nodes,
        block,
        shared_writes: several_nodes && access::mounts_for_writing(capability),
    })
}

/// Source of the content of a new volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// Id of a snapshot or a backup.
    Snapshot(String),
    /// Id of a volume.
    Volume(String),
}

/// Parameters of a StorageClass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Class {
    /// `type`: name or id of a volume type.
    pub volume_type: Option<String>,
    /// `availability`: a zone of Cinder.
    pub zone: Option<String>,
    /// `format`: condition under which a device counts as empty.
    pub format: Option<String>,
}

impl Class {
    pub(crate) fn read(parameters: &BTreeMap<String, String>) -> Result<Self, Status> {
        only_known(parameters, OF_STORAGE_CLASS, "StorageClass")?;
        let filled = |key: &str| parameters.get(key).filter(|it| !it.is_empty()).cloned();
        Ok(Self {
            volume_type: filled("type"),
            zone: filled("availability"),
            format: format(filled(context::FORMAT_PARAMETER))?,
        })
    }
}

/// Parsed [`CreateVolumeRequest`].
#[derive(Clone, Debug)]
pub(crate) struct NewVolume {
    pub name: String,
    pub range: Range,
    pub uses: Uses,
    /// Parameter `type` of the VolumeAttributesClass, else of the StorageClass: a name or an id.
    pub volume_type: Option<String>,
    /// Candidate zones of Cinder, best first; empty for Cinder's default.
    pub zones: Vec<String>,
    /// Topology of the request, for volumes that can be used in each zone.
    pub labels: Vec<String>,
    pub source: Option<Source>,
    /// Parameter `format`: condition under which a device counts as empty.
    pub format: Option<String>,
    pub metadata: BTreeMap<String, String>,
    /// From the annotations of the claim, read later.
    pub hints: Hints,
}

impl NewVolume {
    pub(crate) fn read(request: &CreateVolumeRequest, options: &Options) -> Result<Self, Status> {
        let name = name(&request.name)?;
        let uses = safe_uses(&request.volume_capabilities)?;
        known_file_systems(&request.volume_capabilities)?;
        let parameters = &request.parameters;
        let class = Class::read(parameters)?;
        // A mutable parameter wins over the same one of the class.
        let attributes = Attributes::read(&request.mutable_parameters)?;
        let labels = zone::required(request.accessibility_requirements.as_ref());
        let mut metadata = mark::metadata(&options.cluster, parameters, mark::OF_VOLUMES);
        metadata.extend(attributes.metadata);
        Ok(Self {
            name,
            range: Range::read(request.capacity_range.as_ref())?,
            uses,
            volume_type: attributes.volume_type.or(class.volume_type),
            zones: zones(class.zone, &labels, options),
            labels,
            source: source(request.volume_content_source.as_ref())?,
            format: class.format,
            metadata,
            hints: Hints::default(),
        })
    }
}

fn format(parameter: Option<String>) -> Result<Option<String>, Status> {
    let is_known = |it: &String| context::FORMATS.contains(&it.as_str());
    match parameter {
        Some(format) if !is_known(&format) => invalid(format!(
            "the parameter `format` is one of {}, not `{}`",
            context::FORMATS.join(", "),
            format.escape_debug()
        )),
        parameter => Ok(parameter),
    }
}

/// Zones of Cinder: the parameter of the class wins over the topology.
pub(crate) fn zones(
    parameter: Option<String>,
    labels: &[String],
    options: &Options,
) -> Vec<String> {
    if let Some(zone) = parameter {
        return vec![zone];
    }
    if !options.with_topology || options.ignore_volume_az {
        return Vec::new();
    }
    let of_cinder = |label: &String| options.zones.of_cinder(label);
    let mut zones: Vec<String> = labels.iter().map(of_cinder).collect();
    let mut seen = Vec::new();
    zones.retain(|zone| {
        let is_new = !seen.contains(zone);
        seen.push(zone.clone());
        is_new
    });
    zones
}

fn source(source: Option<&VolumeContentSource>) -> Result<Option<Source>, Status> {
    let Some(source) = source else {
        return Ok(None);
    };
    Ok(Some(match &source.r#type {
        Some(Type::Snapshot(it)) => Source::Snapshot(given(
            &it.snapshot_id,
            "volume_content_source.snapshot.snapshot_id",
        )?),
        Some(Type::Volume(it)) => Source::Volume(given(
            &it.volume_id,
            "volume_content_source.volume.volume_id",
        )?),
        None => return invalid("volume_content_source.type is missing"),
    }))
}

/// Parameter `type` of a VolumeSnapshotClass.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Form {
    #[default]
    Snapshot,
    Backup,
}

/// Parsed [`CreateSnapshotRequest`].
#[derive(Clone, Debug)]
pub(crate) struct NewSnapshot {
    pub name: String,
    pub volume: String,
    pub form: Form,
    /// `force-create`: also for a volume attached to a server.
    pub force: bool,
    /// `availability`: zone of a backup.
    pub zone: Option<String>,
    pub metadata: BTreeMap<String, String>,
}

impl NewSnapshot {
    pub(crate) fn read(request: &CreateSnapshotRequest, options: &Options) -> Result<Self, Status> {
        let parameters = &request.parameters;
        let name = name(&request.name)?;
        let volume = given(&request.source_volume_id, "source_volume_id")?;
        only_known(parameters, OF_SNAPSHOT_CLASS, "VolumeSnapshotClass")?;
        let form = match parameters.get("type").map_or("", String::as_str) {
            "" | "snapshot" => Form::Snapshot,
            "backup" => Form::Backup,
            other => {
                return invalid(format!(
                    "the parameter `type` is snapshot or backup, not `{}`",
                    other.escape_debug()
                ));
            }
        };
        let force = match parameters.get("force-create").map_or("", String::as_str) {
            "" | "false" => false,
            "true" => true,
            other => {
                return invalid(format!(
                    "the parameter `force-create` is true or false, not `{}`",
                    other.escape_debug()
                ));
            }
        };
        // No call waits for a backup here, so the pace limits nothing; still an invalid value is refused.
        let pace = parameters.get("backup-max-duration-seconds-per-gb");
        if let Some(pace) = pace.filter(|pace| pace.parse::<u32>().is_err()) {
            return invalid(format!(
                "the parameter `backup-max-duration-seconds-per-gb` is a number of seconds, not `{}`",
                pace.escape_debug()
            ));
        }
        let mut metadata = mark::metadata(&options.cluster, parameters, mark::OF_SNAPSHOTS);
        if form == Form::Backup {
            metadata.insert("type".to_owned(), "backup".to_owned());
        }
        let zone = parameters.get("availability").filter(|it| !it.is_empty());
        if form == Form::Snapshot && zone.is_some() {
            return invalid(
                "the parameter `availability` is the zone of a backup, and the VolumeSnapshotClass has no `type: backup`: a \
                 snapshot is where its volume is",
            );
        }
        Ok(Self {
            name,
            volume,
            form,
            force,
            zone: zone.cloned(),
            metadata,
        })
    }
}

/// Parsed [`CreateVolumeGroupSnapshotRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct NewGroupSnapshot {
    pub name: String,
    pub volumes: BTreeSet<String>,
    /// `group-type`: name or id of the type for new groups, used for volumes in no group.
    pub group_type: Option<String>,
    /// `consistency: declared`: the user vouches for a type whose specs Cinder does not show.
    pub is_declared: bool,
}

impl NewGroupSnapshot {
    pub(crate) fn read(request: &CreateVolumeGroupSnapshotRequest) -> Result<Self, Status> {
        const KNOWN: &[&str] = &["group-type", "consistency"];
        let parameters = &request.parameters;
        let name = name(&request.name)?;
        if request.source_volume_ids.is_empty() {
            return invalid("source_volume_ids are missing");
        }
        let mut volumes = BTreeSet::new();
        for id in &request.source_volume_ids {
            volumes.insert(given(id, "an id of source_volume_ids")?);
        }
        only_known(parameters, KNOWN, "VolumeGroupSnapshotClass")?;
        let is_declared = match parameters.get("consistency").map_or("", String::as_str) {
            "" | "verified" => false,
            "declared" => true,
            other => {
                return invalid(format!(
                    "the parameter `consistency` is verified or declared, not `{}`",
                    other.escape_debug()
                ));
            }
        };
        let group_type = parameters.get("group-type");
        Ok(Self {
            name,
            volumes,
            group_type: group_type.filter(|it| !it.is_empty()).cloned(),
            is_declared,
        })
    }
}
