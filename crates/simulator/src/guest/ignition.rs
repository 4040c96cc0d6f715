//! Ignition user data, as handled by a machine with Flatcar: files are written, units enabled, and systemd then runs
//! the unit of kubeadm with its script.
//!
//! Reference: the Ignition configuration specification 2.3.0; systemd.unit(5) and systemd.service(5). Files of URLs are
//! not fetched, and are empty. Of the units, only `kubeadm.service` runs: the simulation has no equivalent of any
//! other.

use std::collections::{BTreeMap, BTreeSet};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::shell::{self, Ended};
use super::user_data::{CloudConfig, Command};
use crate::data_plane::Instance;

/// Unit that runs kubeadm.
const UNIT: &str = "kubeadm.service";
/// File written by `coreos-metadata.service`.
const METADATA: &str = "/run/metadata/flatcar";
/// Unit that writes [`METADATA`].
const METADATA_UNIT: &str = "coreos-metadata.service";
/// Units of Flatcar that another unit may require.
const UNITS: [&str; 5] = [
    METADATA_UNIT,
    "containerd.service",
    "docker.service",
    "network-online.target",
    "systemd-networkd.service",
];

/// Why the first boot fails. The message is printed on the console of the guest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("ignition: failed to fetch config: not JSON: {0}")]
    Json(String),
    #[error("ignition: unsupported config version {0}: this machine reads 2.0.0 to 2.3.0")]
    Version(String),
    #[error("ignition: {at}: {problem}")]
    Field { at: String, problem: String },
    #[error("systemd: kubeadm.service: {0}")]
    Unit(String),
    #[error("kubeadm.sh: {0}")]
    Script(String),
}

/// Files with their modes, and units.
#[derive(Default)]
struct Config {
    files: BTreeMap<String, (Vec<u8>, u64)>,
    units: BTreeMap<String, Unit>,
}

/// Unit with its drop-ins.
#[derive(Default)]
struct Unit {
    enabled: bool,
    masked: bool,
    contents: String,
    drop_ins: Vec<String>,
}

/// True for an image of Flatcar, which reads Ignition and no cloud-config with commands.
pub(crate) fn is_flatcar(instance: &Instance) -> bool {
    instance.image.to_ascii_lowercase().contains("flatcar")
}

/// Returns the files written by the machine, and the resulting kubeadm command.
pub(crate) fn boot(raw: &[u8], instance: &Instance) -> Result<CloudConfig, Error> {
    let config = parse(raw)?;
    let Some(unit) = config.units.get(UNIT) else {
        return Ok(written(config.files, None));
    };
    let lines = unit.lines();
    // A unit without [Install] cannot be enabled.
    if unit.masked || !unit.enabled || lines.values("WantedBy").next().is_none() {
        return Ok(written(config.files, None));
    }
    let is_there = |path: &str| config.files.contains_key(path);
    if !lines.values("ConditionPathExists").all(is_there) {
        return Ok(written(config.files, None));
    }
    let variables = lines.environment(&config.files, instance)?;
    let programs: Vec<&str> = lines.values("ExecStart").collect();
    let [program] = programs.as_slice() else {
        return Err(Error::Unit(
            "Service has no ExecStart=, or several".to_owned(),
        ));
    };
    let Some((script, mode)) = config.files.get(*program) else {
        let problem = format!("Failed to locate executable {program}: No such file or directory");
        return Err(Error::Unit(problem));
    };
    if mode & 0o100 == 0 {
        let problem = format!("Failed to execute {program}: Permission denied");
        return Err(Error::Unit(problem));
    }
    let script = String::from_utf8_lossy(script).into_owned();
    let files = config
        .files
        .into_iter()
        .map(|(path, (content, _))| (path, content));
    let mut files: BTreeMap<String, Vec<u8>> = files.collect();
    match shell::run(&script, &mut files, variables) {
        Ok(Ended::Kubeadm(line)) => Ok(CloudConfig {
            files,
            commands: vec![Command::Shell(line)],
            script: false,
        }),
        Ok(Ended::Through) => Ok(CloudConfig {
            files,
            ..CloudConfig::default()
        }),
        Err(problem) => Err(Error::Script(problem)),
    }
}

fn written(files: BTreeMap<String, (Vec<u8>, u64)>, command: Option<Command>) -> CloudConfig {
    let files = files
        .into_iter()
        .map(|(path, (content, _))| (path, content));
    CloudConfig {
        files: files.collect(),
        commands: command.into_iter().collect(),
        script: false,
    }
}

/// Settings of a unit and of its drop-ins.
struct Lines(Vec<(String, String)>);

impl Unit {
    fn lines(&self) -> Lines {
        let texts = std::iter::once(&self.contents).chain(&self.drop_ins);
        let lines = texts.flat_map(|text| text.lines()).map(str::trim);
        let settings = lines.filter(|line| !line.starts_with(['#', ';', '[']));
        let settings = settings.filter_map(|line| line.split_once('='));
        let owned = |(name, value): (&str, &str)| (name.trim().to_owned(), value.trim().to_owned());
        Lines(settings.map(owned).collect())
    }
}

impl Lines {
    /// Returns the values of a setting; an empty value resets the earlier ones.
    fn values<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let mut values = Vec::new();
        for (_, value) in self.0.iter().filter(|(known, _)| known == name) {
            match value.is_empty() {
                true => values.clear(),
                false => values.push(value.as_str()),
            }
        }
        values.into_iter()
    }

    /// Returns the variables of the service, after its required units.
    fn environment(
        &self,
        files: &BTreeMap<String, (Vec<u8>, u64)>,
        instance: &Instance,
    ) -> Result<BTreeMap<String, String>, Error> {
        let required = self.values("Requires").flat_map(str::split_whitespace);
        let required: BTreeSet<&str> = required.collect();
        if let Some(unknown) = required.iter().find(|it| !UNITS.contains(it)) {
            let problem = format!("Failed to start: Unit {unknown} not found");
            return Err(Error::Unit(problem));
        }
        let ordered = self.values("After").flat_map(str::split_whitespace);
        let has_metadata =
            required.contains(METADATA_UNIT) && ordered.into_iter().any(|it| it == METADATA_UNIT);
        let mut variables = BTreeMap::new();
        for path in self.values("EnvironmentFile") {
            let (optional, path) = match path.strip_prefix('-') {
                Some(path) => (true, path),
                None => (false, path),
            };
            if path == METADATA && has_metadata {
                variables.extend(metadata(instance));
            } else if let Some((content, _)) = files.get(path) {
                let text = String::from_utf8_lossy(content).into_owned();
                let pairs = text.lines().filter_map(|line| line.split_once('='));
                variables.extend(pairs.map(|(name, value)| (name.to_owned(), value.to_owned())));
            } else if !optional {
                let problem =
                    format!("Failed to load environment files: {path}: No such file or directory");
                return Err(Error::Unit(problem));
            }
        }
        Ok(variables)
    }
}

/// Returns the variables of `coreos-metadata` on OpenStack.
fn metadata(instance: &Instance) -> BTreeMap<String, String> {
    let address = instance.fixed_ips.first().map(ToString::to_string);
    [
        ("COREOS_OPENSTACK_HOSTNAME", Some(instance.hostname.clone())),
        ("COREOS_OPENSTACK_INSTANCE_UUID", Some(instance.id.clone())),
        ("COREOS_OPENSTACK_IPV4_LOCAL", address),
    ]
    .into_iter()
    .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    .collect()
}

fn parse(raw: &[u8]) -> Result<Config, Error> {
    let document: Value =
        serde_json::from_slice(raw).map_err(|error| Error::Json(error.to_string()))?;
    let version = document["ignition"]["version"].as_str().unwrap_or_default();
    if !["2.0.0", "2.1.0", "2.2.0", "2.3.0"].contains(&version) {
        return Err(Error::Version(version.to_owned()));
    }
    let mut config = Config::default();
    for (index, file) in entries(&document["storage"]["files"]).enumerate() {
        write(&mut config.files, file, &format!("storage.files[{index}]"))?;
    }
    for (index, link) in entries(&document["storage"]["links"]).enumerate() {
        path_of(link, &format!("storage.links[{index}]"))?;
    }
    for (index, given) in entries(&document["systemd"]["units"]).enumerate() {
        let Some(name) = given["name"].as_str().filter(|it| it.contains('.')) else {
            let at = format!("systemd.units[{index}].name");
            let problem = "a unit needs a name with a suffix".to_owned();
            return Err(Error::Field { at, problem });
        };
        // Later entries add to those before.
        let unit = config.units.entry(name.to_owned()).or_default();
        let flag = |name: &str| given[name].as_bool();
        unit.enabled = flag("enabled").or(flag("enable")).unwrap_or(unit.enabled);
        unit.masked = flag("mask").unwrap_or(unit.masked);
        if let Some(contents) = given["contents"].as_str().filter(|it| !it.is_empty()) {
            contents.clone_into(&mut unit.contents);
        }
        let drop_ins = entries(&given["dropins"]).filter_map(|it| it["contents"].as_str());
        unit.drop_ins.extend(drop_ins.map(str::to_owned));
    }
    Ok(config)
}

fn entries(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns the path of a file or link on the filesystem `root`.
fn path_of<'a>(entry: &'a Value, at: &str) -> Result<&'a str, Error> {
    let fail = |field: &str, problem: &str| Error::Field {
        at: format!("{at}.{field}"),
        problem: problem.to_owned(),
    };
    if entry["filesystem"] != "root" {
        return Err(fail("filesystem", "no filesystem of this name is defined"));
    }
    let path = entry["path"].as_str().unwrap_or_default();
    match path.starts_with('/') {
        true => Ok(path),
        false => Err(fail("path", "path not absolute")),
    }
}

fn write(
    files: &mut BTreeMap<String, (Vec<u8>, u64)>,
    file: &Value,
    at: &str,
) -> Result<(), Error> {
    let path = path_of(file, at)?;
    let fail = |field: &str, problem: String| Error::Field {
        at: format!("{at}.{field}"),
        problem,
    };
    let mode = file["mode"].as_u64().unwrap_or_default();
    if mode > 0o7777 {
        return Err(fail("mode", format!("illegal file mode {mode}")));
    }
    let source = file["contents"]["source"].as_str().unwrap_or_default();
    let content = content_of(source).map_err(|problem| fail("contents.source", problem))?;
    let (stored, stored_mode) = files.entry(path.to_owned()).or_default();
    if file["append"].as_bool() != Some(true) {
        stored.clear();
    }
    stored.extend(content);
    *stored_mode = mode;
    Ok(())
}

/// Returns the content of a `data:` URL; empty for a URL to fetch.
fn content_of(source: &str) -> Result<Vec<u8>, String> {
    if source.is_empty() || source.starts_with("https://") || source.starts_with("http://") {
        return Ok(Vec::new());
    }
    let data = source
        .strip_prefix("data:")
        .and_then(|it| it.split_once(','));
    let Some((kind, data)) = data else {
        return Err("invalid url scheme".to_owned());
    };
    let bytes: Vec<u8> = percent_encoding::percent_decode_str(data).collect();
    match kind.ends_with(";base64") {
        true => STANDARD
            .decode(bytes)
            .map_err(|error| format!("not base64: {error}")),
        false => Ok(bytes),
    }
}

#[cfg(test)]
mod tests;
