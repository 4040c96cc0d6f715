//! The cloud-config document that a machine's cloud-init reads on its first boot.
//!
//! The document passes through cloud-init's jinja renderer before it is read, which is how
//! `{{ local_hostname }}` and `{{ instance_id }}` in a kubeadm document become this machine's. Order:
//! `write_files` (certificates, the user's files, kubeadm's configuration, the placeholder of the
//! sentinel's directory), `bootcmd`, `runcmd`, then the rest.

pub mod yaml;

use api::bootstrap::v1beta2::{DiskSetup, Encoding, Ntp, TableType};
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

/// The file whose existence says that bootstrapping succeeded (Cluster API bootstrap contract).
pub const SENTINEL: &str = "/run/cluster-api/bootstrap-success.complete";

/// A file on the machine.
#[derive(Clone)]
pub struct File {
    /// The absolute path.
    pub path: String,
    /// `user:group`.
    pub owner: Option<String>,
    /// Octal.
    pub permissions: Option<String>,
    /// How the content is encoded.
    pub encoding: Option<Encoding>,
    /// Whether the content is added to what is there.
    pub append: bool,
    /// The content.
    pub content: SecretString,
}

impl File {
    /// A file of root's.
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

/// A user of the machine, with the password already fetched.
#[derive(Clone)]
pub struct User {
    /// What the spec says; its `passwd` and `passwdFrom` are not looked at.
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

/// Which kubeadm command the machine runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// `kubeadm init`, on the first control plane machine.
    Init,
    /// `kubeadm join`.
    Join,
}

impl Command {
    /// The file of kubeadm's configuration.
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

/// Everything that the document says.
#[derive(Clone, Debug)]
pub struct Document {
    /// Which kubeadm command.
    pub command: Command,
    /// Certificates.
    pub certificates: Vec<File>,
    /// The user's files.
    pub files: Vec<File>,
    /// kubeadm's configuration.
    pub kubeadm: SecretString,
    /// Commands early in the boot.
    pub boot_commands: Vec<String>,
    /// Commands before kubeadm.
    pub pre_commands: Vec<String>,
    /// Commands after kubeadm succeeded.
    pub post_commands: Vec<String>,
    /// The number after `--v`.
    pub verbosity: Option<i32>,
    /// Users.
    pub users: Vec<User>,
    /// Time servers.
    pub ntp: Option<Ntp>,
    /// Disks.
    pub disks: Option<DiskSetup>,
    /// Lines of `/etc/fstab`.
    pub mounts: Vec<Vec<String>>,
}

/// Writes the document down.
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
        // An octal number to a YAML 1.1 reader, unless quoted.
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

/// `root:root` needs no quotes: a colon counts only before a blank.
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

/// cloud-init's code of a partition type (its `disk_setup` documentation: MBR codes, or GPT GUIDs).
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
