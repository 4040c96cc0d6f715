//! Bootstrap data besides kubeadm's configuration: files, users, disks, Ignition.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The format of the bootstrap data.
#[derive(JsonSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// cloud-init's cloud-config.
    #[default]
    #[serde(rename = "cloud-config")]
    CloudConfig,
    /// Ignition, for Flatcar.
    #[serde(rename = "ignition")]
    Ignition,
}

impl Format {
    /// Value in JSON and in the bootstrap Secret.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::CloudConfig => "cloud-config",
            Format::Ignition => "ignition",
        }
    }
}

/// A file on the machine.
#[derive(JsonSchema, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// The absolute path.
    #[schemars(length(min = 1, max = 512))]
    pub path: String,
    /// `user:group`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub owner: Option<String>,
    /// Octal, as `0640`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16))]
    pub permissions: Option<String>,
    /// Encoding of the content, such as `base64`. Default: plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    /// Appends the content to an existing file instead of replacing the file. Default: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append: Option<bool>,
    /// The content; `contentFrom` is the alternative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 10240))]
    pub content: Option<String>,
    /// Source of the content, such as a key of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_from: Option<SecretSource>,
    /// Format of the content: a template to be filled in, or plain text. Default: plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_format: Option<ContentFormat>,
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Content can be a credential (cloud.conf often is).
        f.debug_struct("File")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// Encoding of a file's content, such as `base64`.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Encoding {
    /// Base64.
    #[serde(rename = "base64")]
    Base64,
    /// Gzip.
    #[serde(rename = "gzip")]
    Gzip,
    /// Gzip in base64.
    #[serde(rename = "gzip+base64")]
    GzipBase64,
}

impl Encoding {
    /// Value in JSON and for cloud-init.
    pub fn as_str(self) -> &'static str {
        match self {
            Encoding::Base64 => "base64",
            Encoding::Gzip => "gzip",
            Encoding::GzipBase64 => "gzip+base64",
        }
    }
}

/// Format of a file's content: a template, or plain text.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ContentFormat {
    /// Used without change.
    Raw,
    /// Rendered before the file is written.
    Template,
}

/// Value in a Secret of the same namespace ([`File::content_from`], [`User::passwd_from`]).
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SecretSource {
    /// The Secret and its key.
    pub secret: SecretKey,
}

/// Key of a Secret ([`SecretSource::secret`]).
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecretKey {
    /// The Secret's name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The key.
    #[schemars(length(min = 1, max = 256))]
    pub key: String,
}

/// A user of the machine.
#[derive(JsonSchema, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct User {
    /// The user's name.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// The GECOS field of the user, as `finger` displays it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub gecos: Option<String>,
    /// Further groups, comma separated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub groups: Option<String>,
    /// The home directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub home_dir: Option<String>,
    /// Locks the user: logins are rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inactive: Option<bool>,
    /// The login shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub shell: Option<String>,
    /// The hashed password; a secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub passwd: Option<String>,
    /// Source of the hashed password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passwd_from: Option<SecretSource>,
    /// The first group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub primary_group: Option<String>,
    /// Disables logins by password.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lock_password: Option<bool>,
    /// A line of sudoers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 256))]
    pub sudo: Option<String>,
    /// Public keys that may log in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        inner(length(min = 1, max = 2048)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub ssh_authorized_keys: Vec<String>,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// The machine's time servers.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[schemars(extend("minProperties" = 1))]
pub struct Ntp {
    /// Host names or addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        inner(length(min = 1, max = 512)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub servers: Vec<String>,
    /// Enables the time service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// Partitions and filesystems created on first boot.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[schemars(extend("minProperties" = 1))]
pub struct DiskSetup {
    /// Partition tables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub partitions: Vec<Partition>,
    /// Filesystems.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub filesystems: Vec<Filesystem>,
}

/// The partition table of a device.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [{
    "rule": "[has(self.layout),has(self.diskLayout)].filter(x,x==true).size() == 1",
    "message": "exactly one of the fields in [layout diskLayout] must be set"
}]))]
pub struct Partition {
    /// The device.
    #[schemars(length(min = 1, max = 256))]
    pub device: String,
    /// One partition over the whole device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<bool>,
    /// The partitions, one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 100), extend("x-kubernetes-list-type" = "atomic"))]
    pub disk_layout: Vec<PartitionSpec>,
    /// Overwrites an existing file system or partition table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
    /// The kind of table; `mbr` when unset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub table_type: Option<TableType>,
}

/// One partition of a device.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartitionSpec {
    /// Share of the device, in percent.
    #[schemars(range(min = 1, max = 100))]
    pub percentage: i32,
    /// Type of the partition. Default: `Linux`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 36), extend("x-kubernetes-validations" = [{
        "rule": "self.matches('^(Linux|LinuxSwap|LinuxRAID|LVM|Fat32|NTFS|LinuxExtended|[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})$')",
        "message": "partitionType must be one of Linux, LinuxSwap, LinuxRAID, LVM, Fat32, NTFS, LinuxExtended or a full GPT partition GUID"
    }]))]
    pub partition_type: Option<String>,
}

/// The kind of partition table.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TableType {
    /// Master boot record.
    Mbr,
    /// GUID partition table.
    Gpt,
}

/// A filesystem.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Filesystem {
    /// The device.
    #[schemars(length(min = 1, max = 256))]
    pub device: String,
    /// The type, as `ext4`.
    #[schemars(length(min = 1, max = 128))]
    pub filesystem: String,
    /// The label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub label: Option<String>,
    /// Partition: `auto`, `any`, `none` or a number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub partition: Option<String>,
    /// Overwrites an existing file system or partition table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
    /// A filesystem type that may be replaced.
    #[serde(default, rename = "replaceFS", skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128))]
    pub replace_fs: Option<String>,
    /// Further arguments of mkfs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 100),
        inner(length(min = 1, max = 256)),
        extend("x-kubernetes-list-type" = "atomic")
    )]
    pub extra_opts: Vec<String>,
}

/// Settings of the format `ignition`.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct Ignition {
    /// A Container Linux Config to merge in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container_linux_config: Option<ContainerLinuxConfig>,
}

/// Container Linux Config of [`Ignition`].
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("minProperties" = 1))]
pub struct ContainerLinuxConfig {
    /// The document, YAML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 32768))]
    pub additional_config: Option<String>,
    /// Turns warnings into errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strict: Option<bool>,
}
