//! The document meta_data.json: few fields are read, and each is checked.

use serde::Deserialize;

/// Facts about this server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Id of the server, also the id of the node in CSI.
    pub id: String,
    /// Availability zone, as written by Nova; empty if absent.
    pub zone: String,
    /// Disks with a serial.
    pub disks: Vec<Bus>,
}

/// Bus address of a disk, and its volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bus {
    /// Serial: the id of the volume.
    pub serial: String,
    /// Name of the bus: `scsi`, `virtio`, `ide`.
    pub bus: String,
    /// Address in the form of the bus: `0:0:0:2`.
    pub address: String,
}

/// The document is not a meta_data.json of OpenStack.
#[derive(Debug, thiserror::Error)]
pub enum Invalid {
    /// The uuid is no UUID. EC2 ids such as `i-0000000a` have been written there.
    #[error("meta_data.json has the uuid `{0}`, which is none")]
    Id(String),
    /// The text is cut, or no JSON.
    #[error("meta_data.json is no such document: {0}")]
    Json(#[from] serde_json::Error),
}

impl Facts {
    /// Parses the document.
    ///
    /// # Errors
    /// [`Invalid`]: the text is cut, no JSON, or without a UUID.
    pub fn parse(body: &[u8]) -> Result<Self, Invalid> {
        let document: Document = serde_json::from_slice(body)?;
        let id = document.uuid.trim().to_ascii_lowercase();
        if !is_uuid(&id) {
            let start: String = document.uuid.chars().take(64).collect();
            return Err(Invalid::Id(start));
        }
        let disks = document.devices.into_iter().filter_map(|device| {
            let is_disk = device.kind == "disk";
            let (serial, bus, address) = (device.serial?, device.bus?, device.address?);
            (is_disk && !serial.is_empty()).then_some(Bus {
                serial,
                bus,
                address,
            })
        });
        Ok(Self {
            id,
            zone: document.availability_zone.unwrap_or_default(),
            disks: disks.collect(),
        })
    }
}

#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    uuid: String,
    #[serde(default)]
    availability_zone: Option<String>,
    #[serde(default)]
    devices: Vec<Device>,
}

#[derive(Deserialize)]
struct Device {
    #[serde(default, rename = "type")]
    kind: String,
    #[serde(default)]
    bus: Option<String>,
    #[serde(default)]
    address: Option<String>,
    #[serde(default)]
    serial: Option<String>,
}

fn is_uuid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let hex = |group: &&str| group.bytes().all(|byte| byte.is_ascii_hexdigit());
    lengths == [8, 4, 4, 4, 12] && groups.iter().all(hex)
}
