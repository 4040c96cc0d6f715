//! The JSON document on a guest runner's standard input, and the config drive.

use std::io;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::metadata;
use crate::data_plane::Instance;
use crate::machine::Machine;

/// Files of a config drive, by path.
const DRIVE: [&str; 7] = [
    "openstack/latest/meta_data.json",
    "openstack/latest/network_data.json",
    "openstack/latest/vendor_data.json",
    "openstack/latest/vendor_data2.json",
    "openstack/latest/user_data",
    "ec2/latest/meta-data.json",
    "ec2/latest/user-data",
];

/// Returns the document of a server; `directory` has its disk.
pub(crate) fn document(
    instance: &Instance,
    machine: &Machine,
    directory: &Path,
    drive: Option<&Path>,
    service: &str,
) -> Value {
    json!({
        "id": instance.id,
        "name": instance.name,
        "hostname": instance.hostname,
        "project_id": instance.project_id,
        "availability_zone": instance.availability_zone,
        "boot": instance.boot,
        "directory": directory,
        "image": machine.image,
        "flavor": {"name": machine.flavor, "vcpus": instance.vcpus, "memory_mib": instance.memory_mib,
            "disk_gib": instance.disk_gib},
        "ports": machine.ports,
        "volumes": machine.volumes,
        "metadata": instance.metadata,
        "user_data": instance.user_data.as_ref().map(|data| STANDARD.encode(data)),
        "config_drive": drive,
        "metadata_service": service,
    })
}

/// Writes the config drive, with mode 0600: user data contains secrets.
pub(crate) fn write_drive(drive: &Path, instance: &Instance, machine: &Machine) -> io::Result<()> {
    for path in DRIVE {
        let Some(content) = metadata::content(instance, machine, path) else {
            continue;
        };
        let file = drive.join(path);
        if let Some(parent) = file.parent() {
            std::fs::create_dir_all(parent)?;
        }
        super::fleet::write_private(&file, &content)?;
    }
    Ok(())
}
