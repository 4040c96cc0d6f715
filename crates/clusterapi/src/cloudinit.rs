//! Cloud-config document for the cloud-init of a machine, read on the first boot.
//!
//! cloud-init renders the document as a jinja template first, and replaces `{{ local_hostname }}` and
//! `{{ instance_id }}` in kubeadm's configuration. Order: `write_files` (certificates, files of the user, kubeadm's
//! configuration, a placeholder that creates the directory of the sentinel), `bootcmd`, `runcmd`, then the rest.

pub mod yaml;

use api::bootstrap::v1beta2::{DiskSetup, Encoding, Ntp, TableType};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

/// Sentinel file, created after a successful bootstrap (Cluster API bootstrap contract).
pub const SENTINEL: &str = "/run/cluster-api/bootstrap-success.complete";

/// File on the machine.
#[derive(Clone)]
pub struct File {
    /// The absolute path.
    pub path: String,
    /// `user:group`.
    pub owner: Option<String>,
    /// Mode, in octal.
    pub permissions: Option<String>,
    /// [`Encoding`] of the content.
    pub encoding: Option<Encoding>,
    /// True to append the content to an existing file.
    pub append: bool,
    /// The content.
    pub content: SecretString,
}

impl File {
    /// File with the owner root.
    pub fn of_root(path: impl Into<String>, permissions: &str, content: SecretString) -> Self {
        Self {
            path: path.into(),
            owner: Some("root:root".to_owned()),
            permissions: Some(permissions.to_owned()),
            encoding: None,
            append: false,
            content,
        }
    }
}

impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("File")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

/// User of the machine, with the password from its Secret.
#[derive(Clone)]
pub struct User {
    /// [`User`] of the spec; `passwd` and `passwdFrom` are ignored.
    pub spec: api::bootstrap::v1beta2::User,
    /// The hashed password.
    pub passwd: Option<SecretString>,
}

impl std::fmt::Debug for User {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("User")
            .field("name", &self.spec.name)
            .finish_non_exhaustive()
    }
}

/// kubeadm command of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `kubeadm init`, on the first control plane machine.
    Init,
    /// `kubeadm join`.
    Join,
}

impl Command {
    /// Path of kubeadm's configuration.
    pub fn config_path(self) -> &'static str {
        match self {
            Command::Init => "/run/kubeadm/kubeadm.yaml",
            Command::Join => "/run/kubeadm/kubeadm-join-config.yaml",
        }
    }

    fn line(self, verbosity: Option<i32>) -> String {
        let verb = match self {
            Command::Init => "init",
            Command::Join => "join",
        };
        let verbosity = verbosity
            .map(|level| format!(" --v {level}"))
            .unwrap_or_default();
        let path = self.config_path();
        format!("kubeadm {verb} --config {path}{verbosity} && echo success > {SENTINEL}")
    }
}

/// Content of the document.
#[derive(Clone, Debug)]
pub struct Document {
    /// The kubeadm [`Command`].
    pub command: Command,
    /// Certificates.
    pub certificates: Vec<File>,
    /// [`File`]s of the user.
    pub files: Vec<File>,
    /// kubeadm's configuration.
    pub kubeadm: SecretString,
    /// Commands early in the boot.
    pub boot_commands: Vec<String>,
    /// Commands before kubeadm.
    pub pre_commands: Vec<String>,
    /// Commands after the success of kubeadm.
    pub post_commands: Vec<String>,
    /// Number after `--v`.
    pub verbosity: Option<i32>,
    /// [`User`]s.
    pub users: Vec<User>,
    /// Time servers.
    pub ntp: Option<Ntp>,
    /// Disks.
    pub disks: Option<DiskSetup>,
    /// Lines of `/etc/fstab`.
    pub mounts: Vec<Vec<String>>,
}

/// Renders the [`Document`].
pub fn render(document: &Document) -> SecretString {
    let mut out = Zeroizing::new(String::from(
        "## template: jinja\n#cloud-config\n\nwrite_files:\n",
    ));
    let kubeadm = File::of_root(
        document.command.config_path(),
        "0640",
        document.kubeadm.clone(),
    );
    let placeholder = File::of_root(
        "/run/cluster-api/placeholder",
        "0640",
        SecretString::from("This file exists so that its directory does.\n"),
    );
    let files = document.certificates.iter().chain(&document.files);
    for file in files.chain([&kubeadm, &placeholder]) {
        write_file(&mut out, file);
    }
    commands(&mut out, "bootcmd", document.boot_commands.iter().cloned());
    let kubeadm = std::iter::once(document.command.line(document.verbosity));
    let (pre, post) = (document.pre_commands.iter(), document.post_commands.iter());
    commands(
        &mut out,
        "runcmd",
        pre.cloned().chain(kubeadm).chain(post.cloned()),
    );
    let mut rest = Map::new();
    if let Some(ntp) = &document.ntp {
        let enabled = ntp
            .enabled
            .map(|enabled| ("enabled".to_owned(), json!(enabled)));
        let servers = (!ntp.servers.is_empty()).then(|| ("servers".to_owned(), json!(ntp.servers)));
        section(
            &mut out,
            "ntp",
            Value::Object(enabled.into_iter().chain(servers).collect()),
        );
    }
    let users = Zeroizing::new(yaml::document(&users(&document.users)));
    if !document.users.is_empty() {
        out.push_str("users:\n");
        out.push_str(&users);
    }
    if let Some(disks) = &document.disks {
        disk_sections(disks, &mut rest);
    }
    for name in ["disk_setup", "fs_setup"] {
        if let Some(value) = rest.remove(name) {
            section(&mut out, name, value);
        }
    }
    if !document.mounts.is_empty() {
        section(&mut out, "mounts", json!(document.mounts));
    }
    SecretString::from(out.as_str())
}

fn write_file(out: &mut String, file: &File) {
    out.push_str("- path: ");
    out.push_str(&yaml::scalar(&file.path));
    if let Some(encoding) = file.encoding {
        out.push_str("\n  encoding: ");
        out.push_str(&yaml::quoted(encoding.as_str()));
    }
    if let Some(owner) = &file.owner {
        out.push_str("\n  owner: ");
        out.push_str(owner_scalar(owner).as_str());
    }
    if let Some(permissions) = &file.permissions {
        out.push_str("\n  permissions: ");
        // Unquoted, it would be an octal number in YAML 1.1.
        out.push_str(&yaml::quoted(permissions));
    }
    if file.append {
        out.push_str("\n  append: true");
    }
    out.push_str("\n  content: ");
    out.push_str(&Zeroizing::new(yaml::literal(
        file.content.expose_secret(),
        4,
    )));
    out.push('\n');
}

/// `root:root` needs no quotes: a colon is special only before a space.
fn owner_scalar(owner: &str) -> String {
    let word = |part: &str| {
        !part.is_empty()
            && part
                .bytes()
                .all(|b| b.is_ascii_alphabetic() || b == b'-' || b == b'_')
    };
    match owner.split_once(':') {
        Some((user, group)) if word(user) && word(group) => owner.to_owned(),
        _ => yaml::scalar(owner),
    }
}

fn commands(out: &mut String, name: &str, lines: impl Iterator<Item = String>) {
    let mut lines = lines.peekable();
    if lines.peek().is_none() {
        return;
    }
    out.push_str(name);
    out.push_str(":\n");
    for line in lines {
        out.push_str("- ");
        out.push_str(&yaml::quoted(&line));
        out.push('\n');
    }
}

fn section(out: &mut String, name: &str, value: Value) {
    out.push_str(&yaml::document(&json!({name: value})));
}

fn users(users: &[User]) -> Value {
    let user = |user: &User| {
        let spec = &user.spec;
        let mut fields = Map::from_iter([("name".to_owned(), json!(spec.name))]);
        let passwd = user
            .passwd
            .as_ref()
            .map(|passwd| passwd.expose_secret().to_owned());
        let texts = [
            ("gecos", &spec.gecos),
            ("groups", &spec.groups),
            ("homedir", &spec.home_dir),
            ("passwd", &passwd),
            ("primary_group", &spec.primary_group),
            ("shell", &spec.shell),
            ("sudo", &spec.sudo),
        ];
        for (name, value) in texts {
            fields.extend(value.as_ref().map(|value| (name.to_owned(), json!(value))));
        }
        for (name, value) in [
            ("inactive", spec.inactive),
            ("lock_passwd", spec.lock_password),
        ] {
            fields.extend(value.map(|value| (name.to_owned(), json!(value))));
        }
        if !spec.ssh_authorized_keys.is_empty() {
            fields.insert(
                "ssh_authorized_keys".to_owned(),
                json!(spec.ssh_authorized_keys),
            );
        }
        Value::Object(fields)
    };
    Value::Array(users.iter().map(user).collect())
}

/// `disk_setup` and `fs_setup` of cloud-init.
fn disk_sections(disks: &DiskSetup, out: &mut Map<String, Value>) {
    let mut setup = Map::new();
    for partition in &disks.partitions {
        let layout = if partition.disk_layout.is_empty() {
            json!(partition.layout.unwrap_or(true))
        } else {
            let parts = partition
                .disk_layout
                .iter()
                .map(|part| match &part.partition_type {
                    Some(kind) => json!([part.percentage, partition_code(kind)]),
                    None => json!(part.percentage),
                });
            Value::Array(parts.collect())
        };
        let mut fields = Map::from_iter([("layout".to_owned(), layout)]);
        fields.extend(
            partition
                .overwrite
                .map(|value| ("overwrite".to_owned(), json!(value))),
        );
        let table = partition.table_type.map(|table| match table {
            TableType::Mbr => "mbr",
            TableType::Gpt => "gpt",
        });
        fields.extend(table.map(|table| ("table_type".to_owned(), json!(table))));
        setup.insert(partition.device.clone(), Value::Object(fields));
    }
    if !setup.is_empty() {
        out.insert("disk_setup".to_owned(), Value::Object(setup));
    }
    let filesystem = |fs: &api::bootstrap::v1beta2::Filesystem| {
        let mut fields = Map::from_iter([
            ("device".to_owned(), json!(fs.device)),
            ("filesystem".to_owned(), json!(fs.filesystem)),
        ]);
        for (name, value) in [
            ("label", &fs.label),
            ("partition", &fs.partition),
            ("replace_fs", &fs.replace_fs),
        ] {
            fields.extend(value.as_ref().map(|value| (name.to_owned(), json!(value))));
        }
        fields.extend(
            fs.overwrite
                .map(|value| ("overwrite".to_owned(), json!(value))),
        );
        if !fs.extra_opts.is_empty() {
            fields.insert("extra_opts".to_owned(), json!(fs.extra_opts));
        }
        Value::Object(fields)
    };
    if !disks.filesystems.is_empty() {
        let all = disks.filesystems.iter().map(filesystem).collect();
        out.insert("fs_setup".to_owned(), Value::Array(all));
    }
}

/// cloud-init's code of a partition type (documentation of `disk_setup`: MBR codes, or GPT GUIDs).
fn partition_code(kind: &str) -> &str {
    match kind {
        "Linux" => "83",
        "LinuxSwap" => "82",
        "LinuxRAID" => "fd",
        "LVM" => "8e",
        "Fat32" => "0c",
        "NTFS" => "07",
        "LinuxExtended" => "85",
        guid => guid,
    }
}

#[cfg(test)]
mod tests;
