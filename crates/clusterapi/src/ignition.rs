//! Ignition document for a machine with Flatcar, read on the first boot (Ignition specification 2.3.0, as in Cluster
//! API).
//!
//! Ignition writes files and enables units, and runs nothing: the unit `kubeadm.service` runs `/etc/kubeadm.sh` while
//! `/etc/kubeadm.yml` exists, and the script moves the file away after the success of kubeadm. Neither is a template;
//! the commands before kubeadm may change the configuration. The user's Container Linux Config is appended.

mod additional;

use api::bootstrap::v1beta2::{ContainerLinuxConfig, Encoding, TableType};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Map, Value, json};
use zeroize::Zeroizing;

use crate::cloudinit::{Command, Document, File, SENTINEL, User};

pub use additional::ConfigError;

/// kubeadm's configuration.
const CONFIG: &str = "/etc/kubeadm.yml";
/// Script of the unit.
const SCRIPT: &str = "/etc/kubeadm.sh";
/// Default filesystem of files.
const ROOT: &str = "root";
/// Unit that runs once: the script moves the configuration away.
const UNIT: &str = "[Unit]
Description=kubeadm
ConditionPathExists=/etc/kubeadm.yml
After=network.target
[Service]
Type=oneshot
ExecStart=/etc/kubeadm.sh
[Install]
WantedBy=multi-user.target
";

/// Error of rendering the document.
#[derive(Debug, thiserror::Error)]
pub enum IgnitionError {
    /// A field of the spec has a value without an equivalent in Ignition.
    #[error("{field}: {problem}")]
    Field {
        /// Field, such as `spec.files[0].permissions`.
        field: String,
        /// Problem, and valid values.
        problem: String,
    },
    /// The Container Linux Config of the user.
    #[error("spec.ignition.containerLinuxConfig.additionalConfig")]
    Additional(#[from] ConfigError),
}

/// Renders the [`Document`], with the Container Linux Config of the user appended.
///
/// # Errors
/// When a field cannot be expressed in Ignition.
pub fn render(
    document: &Document,
    more: Option<&ContainerLinuxConfig>,
) -> Result<SecretString, IgnitionError> {
    let mut config = json!({
        "ignition": {"version": "2.3.0", "config": {}, "security": {"tls": {}}, "timeouts": {}},
        "networkd": {},
        "passwd": {},
        "storage": {"files": files(document)?},
        "systemd": {"units": units(document)?},
    });
    if !document.users.is_empty() {
        let users: Vec<Value> = document.users.iter().map(user).collect();
        config["passwd"]["users"] = users.into();
    }
    disks(document, &mut config["storage"])?;
    if let Some(text) = more.and_then(|more| more.additional_config.as_deref()) {
        append(&mut config, additional::translate(text)?);
    }
    let text = Zeroizing::new(config.to_string());
    Ok(SecretString::from(text.as_str()))
}

/// Appends the lists of `more` to those of `config`, as Ignition appends a configuration.
fn append(config: &mut Value, more: Value) {
    match (config, more) {
        (Value::Object(config), Value::Object(more)) => {
            for (name, value) in more {
                append(config.entry(name).or_insert(Value::Null), value);
            }
        }
        (Value::Array(config), Value::Array(more)) => config.extend(more),
        (config, more) => *config = more,
    }
}

fn files(document: &Document) -> Result<Vec<Value>, IgnitionError> {
    let mut all = Vec::new();
    for file in &document.certificates {
        all.push(of_user(file, "certificates")?);
    }
    for (at, file) in document.files.iter().enumerate() {
        all.push(of_user(file, &format!("spec.files[{at}]"))?);
    }
    for user in &document.users {
        if let Some(sudo) = &user.spec.sudo {
            let name = &user.spec.name;
            let path = format!("/etc/sudoers.d/{name}");
            all.push(file(&path, 0o600, format!("{name} {sudo}\n").as_bytes()));
        }
    }
    all.extend(password_logins(&document.users));
    all.push(file(SCRIPT, 0o700, script(document).as_bytes()));
    let kubeadm = document.kubeadm.expose_secret().as_bytes();
    all.push(file(CONFIG, 0o600, kubeadm));
    let ntp = document.ntp.as_ref();
    let servers = ntp.filter(|ntp| ntp.enabled == Some(true) && !ntp.servers.is_empty());
    all.extend(servers.map(|ntp| file("/etc/ntp.conf", 0o644, time(&ntp.servers).as_bytes())));
    Ok(all)
}

/// Setting for logins by password: Flatcar's sshd takes keys only by default.
fn password_logins(users: &[User]) -> Option<Value> {
    let open = users
        .iter()
        .filter(|it| it.spec.lock_password == Some(false));
    let names: Vec<&str> = open.map(|it| it.spec.name.as_str()).collect();
    let text = format!(
        "Subsystem sftp internal-sftp\nClientAliveInterval 180\nUseDNS no\nUsePAM yes\nPrintLastLog no\nPrintMotd no\n\n\
         Match User {}\n  PasswordAuthentication yes\n",
        names.join(",")
    );
    (!names.is_empty()).then(|| file("/etc/ssh/sshd_config", 0o600, text.as_bytes()))
}

fn time(servers: &[String]) -> String {
    let servers = servers.iter().map(|it| format!("server {it}\n"));
    let servers: String = servers.collect();
    format!(
        "{servers}restrict default nomodify nopeer noquery notrap limited kod\nrestrict 127.0.0.1\nrestrict [::1]\n"
    )
}

fn script(document: &Document) -> String {
    let verb = match document.command {
        Command::Init => "init",
        Command::Join => "join",
    };
    let verbosity = document.verbosity.map(|level| format!(" --v {level}"));
    let verbosity = verbosity.unwrap_or_default();
    let directory = SENTINEL.rsplit_once('/').map_or("", |(it, _)| it);
    let lines = |commands: &[String]| -> String {
        let lines = commands.iter().map(|it| format!("{it}\n"));
        lines.collect()
    };
    format!(
        "#!/bin/bash\nset -e\n\n{}\nkubeadm {verb} --config {CONFIG}{verbosity}\nmkdir -p {directory} && echo success > {SENTINEL}\n\
         mv {CONFIG} /tmp/\n\n{}",
        lines(&document.pre_commands),
        lines(&document.post_commands),
    )
}

fn file(path: &str, mode: u32, content: &[u8]) -> Value {
    json!({"filesystem": ROOT, "path": path, "mode": mode,
        "contents": {"source": data_url(content), "verification": {}}})
}

/// [`File`] with the user's attributes; `field` is the path in the spec.
fn of_user(given: &File, field: &str) -> Result<Value, IgnitionError> {
    let fail = |name: &str, problem: &str| IgnitionError::Field {
        field: format!("{field}.{name}"),
        problem: problem.to_owned(),
    };
    let content = given.content.expose_secret();
    let mode = given.permissions.as_deref().unwrap_or("0644");
    let mode = u32::from_str_radix(mode.trim_start_matches("0o"), 8)
        .map_err(|_| fail("permissions", "is not an octal number such as 0640"))?;
    let mut written = match given.encoding {
        None => file(&given.path, mode, content.as_bytes()),
        Some(Encoding::Base64) => {
            let text: String = content.split_whitespace().collect();
            let bytes = STANDARD.decode(text);
            let bytes = bytes.map_err(|_| fail("content", "is not base64, which encoding says"))?;
            file(&given.path, mode, &bytes)
        }
        Some(Encoding::Gzip | Encoding::GzipBase64) => {
            let problem = "cannot be used with the format ignition; use base64 or none";
            return Err(fail("encoding", problem));
        }
    };
    if given.append {
        written["append"] = true.into();
    }
    let owner = given.owner.as_deref().unwrap_or_default();
    let (user, group) = owner.split_once(':').unwrap_or((owner, ""));
    for (name, value) in [("user", user), ("group", group)] {
        if !value.trim().is_empty() {
            written[name] = json!({"name": value.trim()});
        }
    }
    Ok(written)
}

fn units(document: &Document) -> Result<Vec<Value>, IgnitionError> {
    let mut all = vec![json!({"name": "kubeadm.service", "enabled": true, "contents": UNIT})];
    let ntp = document.ntp.as_ref().and_then(|ntp| ntp.enabled);
    if ntp == Some(true) {
        all.push(json!({"name": "ntpd.service", "enabled": true}));
    }
    let setup = document.disks.as_ref();
    let filesystems = setup.map_or(&[][..], |it| &it.filesystems);
    for (at, mount) in document.mounts.iter().enumerate() {
        let fail = |problem: &str| IgnitionError::Field {
            field: format!("spec.mounts[{at}]"),
            problem: problem.to_owned(),
        };
        let [label, path, options @ ..] = mount.as_slice() else {
            return Err(fail("needs the label of a filesystem, and a path"));
        };
        let mut known = filesystems.iter();
        let known = known.find(|it| it.label.as_ref() == Some(label));
        let Some(filesystem) = known else {
            return Err(fail("names no label of spec.diskSetup.filesystems"));
        };
        let name = path.trim_start_matches('/').replace('/', "-");
        let options = match options {
            [] => String::new(),
            options => format!("Options={}\n", options.join(",")),
        };
        let contents = format!(
            "[Unit]\nDescription=Mount {label}\n\n[Mount]\nWhat={}\nWhere={path}\n{options}\n[Install]\nWantedBy=multi-user.target\n",
            filesystem.device
        );
        all.push(json!({"name": format!("{name}.mount"), "enabled": true, "contents": contents}));
    }
    Ok(all)
}

fn user(user: &User) -> Value {
    let spec = &user.spec;
    let mut fields = Map::from_iter([("name".to_owned(), json!(spec.name))]);
    let passwd = user.passwd.as_ref().map(|it| it.expose_secret().to_owned());
    for (name, value) in [
        ("gecos", &spec.gecos),
        ("homeDir", &spec.home_dir),
        ("shell", &spec.shell),
        ("primaryGroup", &spec.primary_group),
        ("passwordHash", &passwd),
    ] {
        fields.extend(value.as_ref().map(|it| (name.to_owned(), json!(it))));
    }
    if let Some(groups) = &spec.groups {
        let groups: Vec<&str> = groups.split(',').map(str::trim).collect();
        fields.insert("groups".to_owned(), json!(groups));
    }
    if !spec.ssh_authorized_keys.is_empty() {
        let keys = json!(spec.ssh_authorized_keys);
        fields.insert("sshAuthorizedKeys".to_owned(), keys);
    }
    Value::Object(fields)
}

fn disks(document: &Document, storage: &mut Value) -> Result<(), IgnitionError> {
    let Some(setup) = &document.disks else {
        return Ok(());
    };
    let fail = |field: String, problem: &str| IgnitionError::Field {
        field: format!("spec.diskSetup.{field}"),
        problem: problem.to_owned(),
    };
    let mut disks = Vec::new();
    for (at, partition) in setup.partitions.iter().enumerate() {
        if !partition.disk_layout.is_empty() || partition.table_type == Some(TableType::Mbr) {
            let problem = "the format ignition takes one partition, with a table of type gpt";
            return Err(fail(format!("partitions[{at}]"), problem));
        }
        let mut disk = json!({"device": partition.device});
        if let Some(overwrite) = partition.overwrite {
            disk["wipeTable"] = overwrite.into();
        }
        if partition.layout == Some(true) {
            disk["partitions"] = json!([{}]);
        }
        disks.push(disk);
    }
    let mut filesystems = Vec::new();
    for (at, given) in setup.filesystems.iter().enumerate() {
        if given.partition.is_some() || given.replace_fs.is_some() {
            let problem = "partition and replaceFS cannot be used with the format ignition";
            return Err(fail(format!("filesystems[{at}]"), problem));
        }
        let mut mount = json!({"device": given.device, "format": given.filesystem,
            "wipeFilesystem": given.overwrite == Some(true)});
        if let Some(label) = &given.label {
            mount["label"] = json!(label);
        }
        if !given.extra_opts.is_empty() {
            mount["options"] = json!(given.extra_opts);
        }
        filesystems.push(json!({"name": given.label, "mount": mount}));
    }
    for (name, entries) in [("disks", disks), ("filesystems", filesystems)] {
        if !entries.is_empty() {
            storage[name] = entries.into();
        }
    }
    Ok(())
}

/// Content as a URL of RFC 2397, with all but unreserved characters escaped.
fn data_url(content: &[u8]) -> String {
    let mut url = String::from("data:,");
    for byte in content {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' | b':' => {
                url.push(char::from(*byte));
            }
            other => url.push_str(&format!("%{other:02X}")),
        }
    }
    url
}

#[cfg(test)]
mod tests;
