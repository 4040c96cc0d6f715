//! Servers, and requests to create them.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Server {
    /// Id.
    pub id: String,
    /// Name; not unique.
    pub name: String,
    /// Host name of the guest, which Nova returns to administrators; empty for others.
    #[serde(
        rename = "OS-EXT-SRV-ATTR:hostname",
        skip_serializing_if = "String::is_empty"
    )]
    pub hostname: String,
    /// `BUILD`, `ACTIVE`, `ERROR`, `SHUTOFF`, `DELETED`, ...
    pub status: String,
    /// Task of Nova on the server at the moment, for example `deleting`.
    #[serde(rename = "OS-EXT-STS:task_state")]
    pub task_state: Option<String>,
    /// Hypervisor of the server, as a hash for each project; empty before a server has had one.
    #[serde(rename = "hostId")]
    pub host_id: String,
    /// Id of the owning project.
    pub tenant_id: String,
    /// Availability zone of the server.
    #[serde(rename = "OS-EXT-AZ:availability_zone")]
    pub availability_zone: String,
    /// Addresses by network name.
    pub addresses: BTreeMap<String, Vec<Address>>,
    /// IPv4 address that the user declared for access; mostly empty.
    #[serde(rename = "accessIPv4")]
    pub access_ipv4: String,
    /// IPv6 address that the user declared for access; mostly empty.
    #[serde(rename = "accessIPv6")]
    pub access_ipv6: String,
    /// Free key-value pairs.
    pub metadata: BTreeMap<String, String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Reason for the status `ERROR`.
    pub fault: Option<Fault>,
    /// Size of the server.
    pub flavor: ServerFlavor,
    /// Image of the server; an empty text for a server that boots from a volume.
    pub image: Value,
    /// Attached volumes.
    #[serde(rename = "os-extended-volumes:volumes_attached")]
    pub volumes: Vec<AttachedVolume>,
    /// Name of the key pair.
    pub key_name: String,
    /// Time of creation, RFC 3339.
    pub created: String,
    /// Time of the last change, RFC 3339.
    pub updated: String,
}

impl Server {
    /// True for a failed server that never had a host, without the reason, which Nova may record after the state. The faults of other
    /// servers are in lists.
    #[must_use]
    pub fn is_unexplained(&self) -> bool {
        self.status == "ERROR" && self.fault.is_none() && self.host_id.is_empty()
    }

    /// Returns the id of the image, unless the server boots from a volume.
    pub fn image_id(&self) -> Option<&str> {
        self.image.get("id")?.as_str()
    }

    /// True if the server is deleted: Nova lists deleted servers for a moment, and with soft deletion for days.
    pub fn is_gone(&self) -> bool {
        matches!(self.status.as_str(), "DELETED" | "SOFT_DELETED")
    }

    /// True if Nova is deleting the server.
    pub fn is_deleting(&self) -> bool {
        self.task_state.as_deref() == Some("deleting") || self.is_gone()
    }
}

/// Address of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Address {
    /// Address.
    pub addr: String,
    /// 4 or 6.
    pub version: u8,
    /// `fixed` or `floating`.
    #[serde(rename = "OS-EXT-IPS:type")]
    pub kind: String,
    /// MAC address of the port.
    #[serde(rename = "OS-EXT-IPS-MAC:mac_addr")]
    pub mac: String,
}

/// Failure of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Fault {
    /// Code, like an HTTP status.
    pub code: i64,
    /// Message for the user.
    pub message: String,
    /// Details for the operator; often absent.
    pub details: String,
}

/// Size of a server (microversion 2.47: by value, without an id).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerFlavor {
    /// Id of the flavor; set only for a server that this process created and has not read since.
    pub id: String,
    /// Name of the flavor at creation.
    pub original_name: String,
    /// Processors.
    pub vcpus: i64,
    /// Memory in MiB.
    pub ram: i64,
    /// Root disk in GiB.
    pub disk: i64,
}

/// Volume of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AttachedVolume {
    /// Id of the volume.
    pub id: String,
    /// True to delete the volume with the server.
    pub delete_on_termination: bool,
}

/// New server.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ServerCreate {
    /// Name.
    pub name: String,
    /// Flavor id.
    #[serde(rename = "flavorRef")]
    pub flavor_id: String,
    /// Image id; `None` to boot from a volume.
    #[serde(rename = "imageRef", skip_serializing_if = "Option::is_none")]
    pub image_id: Option<String>,
    /// Zone to run in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub availability_zone: Option<String>,
    /// Ports and networks in the order of the interfaces; no network at all if empty.
    #[serde(skip)]
    pub networks: Vec<ServerNetwork>,
    /// User data for cloud-init; encoded on sending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_data: Option<UserData>,
    /// Tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Free key-value pairs.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, String>,
    /// True if user data and metadata are also on a config drive.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub config_drive: Option<bool>,
    /// Key pair by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_name: Option<String>,
    /// Disks.
    #[serde(
        rename = "block_device_mapping_v2",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub block_devices: Vec<BlockDevice>,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Scheduler hints such as `group`; sent besides the server.
    #[serde(skip)]
    pub scheduler_hints: Map<String, Value>,
}

impl ServerCreate {
    /// Returns the `server` member of the request. `networks` is mandatory since microversion 2.37.
    pub(super) fn body(&self) -> Value {
        let mut body = serde_json::to_value(self).unwrap_or_default();
        let networks = if self.networks.is_empty() {
            Ok(Value::from("none"))
        } else {
            serde_json::to_value(&self.networks)
        };
        if let (Value::Object(map), Ok(networks)) = (&mut body, networks) {
            map.insert("networks".to_owned(), networks);
        }
        body
    }

    /// Returns the server before the first read.
    pub(super) fn as_building(&self, id: String) -> Server {
        let image = match &self.image_id {
            Some(image) => serde_json::json!({"id": image}),
            None => Value::from(""),
        };
        Server {
            id,
            name: self.name.clone(),
            status: "BUILD".to_owned(),
            task_state: Some("scheduling".to_owned()),
            availability_zone: self.availability_zone.clone().unwrap_or_default(),
            metadata: self.metadata.clone(),
            tags: self.tags.clone(),
            flavor: ServerFlavor {
                id: self.flavor_id.clone(),
                ..ServerFlavor::default()
            },
            image,
            key_name: self.key_name.clone().unwrap_or_default(),
            ..Server::default()
        }
    }
}

/// New content of a server that keeps id, ports and addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerRebuild {
    /// Image id.
    #[serde(rename = "imageRef")]
    pub image_id: String,
    /// User data in place of the former ones; encoded on sending.
    pub user_data: UserData,
    /// Key-value pairs in place of all former ones. Nova stores them when it accepts the request.
    pub metadata: BTreeMap<String, String>,
}

/// Interface of a new server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ServerNetwork {
    /// Existing port.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<String>,
    /// Network on which Nova creates a port, in place of `port`.
    #[serde(rename = "uuid", skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Device role tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

impl ServerNetwork {
    /// Creates an interface on an existing port.
    pub fn port(id: impl Into<String>) -> Self {
        Self {
            port: Some(id.into()),
            ..Self::default()
        }
    }
}

/// Disk of a new server (`block_device_mapping_v2`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BlockDevice {
    /// `image`, `volume`, `snapshot` or `blank`.
    pub source_type: String,
    /// `local` or `volume`.
    pub destination_type: String,
    /// Id of the source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uuid: Option<String>,
    /// 0 for the root disk, -1 for a disk that never boots.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boot_index: Option<i32>,
    /// True to delete the volume with the server.
    pub delete_on_termination: bool,
    /// Size in GiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_size: Option<i64>,
    /// Type of a volume created by Nova (microversion 2.67).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_type: Option<String>,
    /// Format of a blank local disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guest_format: Option<String>,
    /// Device role tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<String>,
}

/// User data. The content has keys and join tokens, so it is never printed.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct UserData(Bytes);

impl UserData {
    /// Creates user data from the bytes that the guest reads.
    pub fn new(data: impl Into<Bytes>) -> Self {
        Self(data.into())
    }

    /// Returns the bytes of the user data. A secret: never log them.
    pub fn bytes(&self) -> &Bytes {
        &self.0
    }

    /// Returns the length in bytes before encoding. Nova accepts 65535 bytes of base64.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// True for a length of 0.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Debug for UserData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UserData({} bytes)", self.0.len())
    }
}

impl Serialize for UserData {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(&self.0))
    }
}
