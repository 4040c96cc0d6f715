//! Desired state of a machine in the cloud: a function of its spec and of facts about the cloud.

use std::collections::BTreeMap;

use api::infra::v1beta2::{
    HintType, OpenStackMachineSpec, PortOpts, StorageType, VolumeAvailabilityZone, VolumeZoneSource,
};
use openstack::compute::{BlockDevice, ServerCreate, UserData};
use openstack::network::PortCreate;
use openstack::volume::VolumeCreate;
use serde_json::{Map, Value, json};

use super::facts::{Facts, PortFacts, ports};
use super::pairs;
use crate::identity::Mark;
use crate::names::Names;

/// The desired state of a machine in the cloud.
#[derive(Clone, Debug)]
pub struct Desired {
    /// [`Mark`] of the machine.
    pub mark: Mark,
    /// [`Port`]s, in the order of the interfaces.
    pub ports: Vec<Port>,
    /// [`Volume`]s.
    pub volumes: Vec<Volume>,
    /// The server, without its ports and volumes.
    pub server: ServerCreate,
    /// Disks on the hypervisor.
    pub local_disks: Vec<BlockDevice>,
    /// True if Neutron supports tags.
    pub tagging: bool,
}

/// A port.
#[derive(Clone, Debug, PartialEq)]
pub struct Port {
    /// Create request.
    pub create: PortCreate,
    /// Tags, including the mark's.
    pub tags: Vec<String>,
    /// True for the parent of a trunk, which has the port's name, description and tags.
    pub trunk: bool,
    /// True for addresses of the machine's failure domain.
    pub is_of_zone: bool,
}

/// A volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Create request.
    pub create: VolumeCreate,
    /// True for the volume from which the server boots.
    pub is_root: bool,
    /// The name of the block device in the spec.
    pub device: String,
}

/// Computes the [`Desired`] state of the server `name`.
pub fn desired(
    name: &str,
    spec: &OpenStackMachineSpec,
    cluster_tags: &[String],
    facts: &Facts,
    user_data: Option<UserData>,
) -> Desired {
    let mut tags = spec.tags.clone();
    add(&mut tags, cluster_tags);
    add(&mut tags, &facts.mark.tags());
    let names = Names::new("", &facts.cluster_name);
    let ports = ports(spec)
        .iter()
        .zip(&facts.ports)
        .enumerate()
        .map(|(index, (opts, found))| port(name, index, opts, found, facts, &names, &tags))
        .collect();
    let volumes = volumes(name, spec, facts);
    let root_volume = spec.root_volume.is_some();
    let server = ServerCreate {
        name: name.to_owned(),
        flavor_id: facts.flavor.clone(),
        image_id: (!root_volume).then(|| facts.image.clone()),
        availability_zone: facts.failure_domain.clone(),
        user_data,
        tags,
        metadata: spec
            .server_metadata
            .iter()
            .map(|entry| (entry.key.clone(), entry.value.clone()))
            .collect(),
        config_drive: Some(spec.config_drive.unwrap_or(false)),
        key_name: spec.ssh_key_name.clone().filter(|key| !key.is_empty()),
        scheduler_hints: hints(spec, facts),
        ..ServerCreate::default()
    };
    let tagging = facts.tagging;
    let local_disks = local_disks(spec);
    Desired {
        mark: facts.mark,
        ports,
        volumes,
        server,
        local_disks,
        tagging,
    }
}

fn add(tags: &mut Vec<String>, more: &[String]) {
    for tag in more {
        if !tags.contains(tag) {
            tags.push(tag.clone());
        }
    }
}

/// Name of a port: the server's with the suffix in the spec, or else the index.
pub(crate) fn port_name(server: &str, index: usize, opts: &PortOpts) -> String {
    match &opts.name_suffix {
        Some(suffix) => format!("{server}-{suffix}"),
        None => format!("{server}-{index}"),
    }
}

fn port(
    server: &str,
    index: usize,
    opts: &PortOpts,
    found: &PortFacts,
    facts: &Facts,
    names: &Names,
    tags: &[String],
) -> Port {
    let fields = &opts.fields;
    let mut profile = Map::new();
    let binding = fields.profile.clone().unwrap_or_default();
    if binding.ovs_hw_offload == Some(true) {
        profile.insert("capabilities".to_owned(), json!(["switchdev"]));
    }
    let trusted = binding.trusted_vf == Some(true);
    if trusted && !facts.trusted_attribute {
        profile.insert("trusted".to_owned(), json!("true"));
    }
    let text = opts
        .description
        .clone()
        .unwrap_or_else(|| names.port_description());
    let create = PortCreate {
        name: port_name(server, index, opts),
        network_id: found.network.clone(),
        description: Some(facts.mark.description(&text)),
        fixed_ips: found.fixed_ips.clone(),
        mac_address: fields.mac_address.clone(),
        security_groups: found.security_groups.clone(),
        allowed_address_pairs: pairs::in_spec(opts),
        admin_state_up: fields.admin_state_up,
        port_security_enabled: fields.enable_port_security,
        propagate_uplink_status: fields.propagate_uplink_status,
        vnic_type: fields.vnic_type.clone(),
        host_id: fields.host_id.clone(),
        profile,
        trusted: (trusted && facts.trusted_attribute).then_some(true),
        others: fields
            .value_specs
            .iter()
            .map(|spec| (spec.key.clone(), spec.value.clone()))
            .collect(),
        ..PortCreate::default()
    };
    let mut all = opts.tags.clone();
    add(&mut all, tags);
    Port {
        create,
        tags: all,
        trunk: found.trunk,
        is_of_zone: found.is_of_zone,
    }
}

fn volumes(server: &str, spec: &OpenStackMachineSpec, facts: &Facts) -> Vec<Volume> {
    let zone = |zone: Option<&VolumeAvailabilityZone>| {
        zone.and_then(|zone| match zone.from {
            VolumeZoneSource::Name => zone.name.clone(),
            VolumeZoneSource::Machine => facts.failure_domain.clone(),
        })
    };
    let create = |device: &str, text: &str, size: i32| VolumeCreate {
        name: format!("{server}-{device}"),
        size: i64::from(size),
        description: Some(facts.mark.description(&format!("{text} for {server}"))),
        metadata: BTreeMap::new(),
        ..VolumeCreate::default()
    };
    let root = spec.root_volume.iter().map(|root| Volume {
        create: VolumeCreate {
            volume_type: root.type_.clone(),
            availability_zone: zone(root.availability_zone.as_ref()),
            image_id: Some(facts.image.clone()),
            ..create("root", "Root volume", root.size_gib)
        },
        is_root: true,
        device: "root".to_owned(),
    });
    let others = spec
        .additional_block_devices
        .iter()
        .filter(|device| device.storage.type_ == StorageType::Volume)
        .map(|device| {
            let volume = device.storage.volume.clone().unwrap_or_default();
            Volume {
                create: VolumeCreate {
                    volume_type: volume.type_,
                    availability_zone: zone(volume.availability_zone.as_ref()),
                    ..create(&device.name, "Additional block device", device.size_gib)
                },
                is_root: false,
                device: device.name.clone(),
            }
        });
    root.chain(others).collect()
}

fn local_disks(spec: &OpenStackMachineSpec) -> Vec<BlockDevice> {
    let local = |device: &&api::infra::v1beta2::AdditionalBlockDevice| {
        device.storage.type_ == StorageType::Local
    };
    spec.additional_block_devices
        .iter()
        .filter(local)
        .map(|device| BlockDevice {
            source_type: "blank".to_owned(),
            destination_type: "local".to_owned(),
            boot_index: Some(-1),
            delete_on_termination: true,
            volume_size: Some(i64::from(device.size_gib)),
            tag: Some(device.name.clone()),
            ..BlockDevice::default()
        })
        .collect()
}

fn hints(spec: &OpenStackMachineSpec, facts: &Facts) -> Map<String, Value> {
    let mut hints = Map::new();
    if let Some(group) = &facts.server_group {
        hints.insert("group".to_owned(), json!(group));
    }
    for hint in &spec.scheduler_hint_additional_properties {
        let value = match hint.value.type_ {
            HintType::Bool => json!(hint.value.bool),
            HintType::Number => json!(hint.value.number),
            HintType::String => json!(hint.value.string),
        };
        hints.insert(hint.name.clone(), value);
    }
    hints
}
