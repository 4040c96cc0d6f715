//! The document, of which little is needed and nothing is trusted.

use serde::Deserialize;

/// What a server knows of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The id of the server, which is the id of the node.
    pub id: String,
    /// As Nova writes it; empty if it writes none.
    pub zone: String,
    /// Those with a serial.
    pub disks: Vec<Bus>,
}

/// Where a disk is, and which volume it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bus {
    /// The id of the volume.
    pub serial: String,
    /// `scsi`, `virtio`, `ide`.
    pub bus: String,
    /// As the bus writes it.
    pub address: String,
}

/// It is no such document.
#[derive(Debug, thiserror::Error)]
pub enum Invalid {
    /// EC2 ids such as `i-0000000a` have been taken for it.
    #[error("meta_data.json has the uuid `{0}`, which is none")]
    Id(String),
    /// It is cut, or something else.
    #[error("meta_data.json is no such document: {0}")]
    Json(#[from] serde_json::Error),
}

impl Facts {
    /// Reads the document.
    ///
    /// # Errors
    /// It is cut, no JSON, or has no UUID.
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
