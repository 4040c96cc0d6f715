//! Parses user data like cloud-init: plain or gzip, optionally a Jinja template, a `#cloud-config` document with
//! `write_files` and `runcmd`.
//!
//! Reference: cloud-init's documentation of user data formats, modules `cc_write_files` and `cc_runcmd`.

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::jinja;
use crate::data_plane::Instance;

/// Limit after decompression, in bytes; Nova accepts 64 KiB of base64.
const LIMIT: u64 = 4 << 20;

/// Simulated parts of user data.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct CloudConfig {
    /// Files to write, by path. The files contain keys and tokens: `Debug` prints sizes only.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// `runcmd`, each either a shell line or a program with its arguments.
    pub(crate) commands: Vec<Command>,
    /// True for a script (`#!`), which is not run.
    pub(crate) script: bool,
}

/// One entry of `runcmd`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Line for `sh`.
    Shell(String),
    /// Program and its arguments.
    Program(Vec<String>),
}

impl fmt::Debug for CloudConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes: BTreeMap<_, _> = self
            .files
            .iter()
            .map(|(path, file)| (path, file.len()))
            .collect();
        f.debug_struct("CloudConfig")
            .field("files", &sizes)
            .field("commands", &self.commands.len())
            .field("script", &self.script)
            .finish()
    }
}

/// Why user data is invalid. The message is printed on the console of the guest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Error {
    #[error("user data is gzip, but cannot be decompressed: {0}")]
    Gzip(String),
    #[error("user data is larger than {LIMIT} bytes")]
    TooLarge,
    #[error("user data is not UTF-8 text")]
    NotText,
    #[error("multi-part MIME user data is not simulated; pass one #cloud-config document")]
    Multipart,
    #[error("user data is in no format that cloud-init knows: its first line is not #cloud-config")]
    Unknown,
    #[error("the jinja template of the user data cannot be rendered: {0}")]
    Jinja(#[from] jinja::Error),
    #[error("the cloud-config is not valid YAML: {0}")]
    Yaml(String),
    #[error("{at}: {problem}")]
    Field {
        /// Path in the cloud-config, such as `write_files[2].content`.
        at: String,
        /// Error.
        problem: String,
    },
}

/// Parses user data (base64 already removed). `facts` are the variables of Jinja templates.
pub(crate) fn parse(raw: &[u8], facts: &Value) -> Result<CloudConfig, Error> {
    let raw = decompressed(raw)?;
    let text = std::str::from_utf8(&raw).map_err(|_| Error::NotText)?;
    let text = text.trim_start_matches('\u{feff}');
    let rendered;
    let text = match without_jinja_header(text) {
        Some(template) => {
            rendered = jinja::render(template, facts)?;
            rendered.as_str()
        }
        None => text,
    };
    let first = text.lines().next().unwrap_or_default().trim_end();
    if first == "#cloud-config" || first.starts_with("#cloud-config ") {
        return cloud_config(text);
    }
    if text.trim().is_empty() {
        return Ok(CloudConfig::default());
    }
    if first.starts_with("#!") {
        return Ok(CloudConfig {
            script: true,
            ..CloudConfig::default()
        });
    }
    let lower = first.to_ascii_lowercase();
    if lower.starts_with("content-type: multipart") || lower.starts_with("mime-version:") {
        return Err(Error::Multipart);
    }
    Err(Error::Unknown)
}

/// Returns the variables of cloud-init's Jinja templates on OpenStack.
pub(crate) fn facts(instance: &Instance) -> Value {
    let local = local_hostname(&instance.hostname);
    let v1 = json!({
        "availability_zone": instance.availability_zone,
        "cloud_name": "openstack",
        "cloud_id": "openstack",
        "instance_id": instance.id,
        "local_hostname": local,
        "platform": "openstack",
        "subplatform": "metadata (http://169.254.169.254)",
        "distro": "ubuntu",
        "machine": "x86_64",
    });
    let meta_data = json!({
        "uuid": instance.id,
        "instance-id": instance.id,
        "name": instance.name,
        "hostname": instance.hostname,
        "local-hostname": instance.hostname,
        "availability_zone": instance.availability_zone,
        "project_id": instance.project_id,
        "launch_index": 0,
        "meta": instance.metadata,
    });
    let mut facts = json!({"ds": {"meta_data": meta_data}, "v1": v1});
    if let (Some(all), Value::Object(v1)) = (facts.as_object_mut(), v1) {
        all.extend(v1);
    }
    facts
}

/// Returns the host name set by cloud-init: up to the first dot.
pub(crate) fn local_hostname(hostname: &str) -> &str {
    hostname.split('.').next().unwrap_or(hostname)
}

fn decompressed(raw: &[u8]) -> Result<std::borrow::Cow<'_, [u8]>, Error> {
    if !raw.starts_with(&[0x1f, 0x8b]) {
        return Ok(raw.into());
    }
    gunzip(raw).map(Into::into)
}

fn gunzip(raw: &[u8]) -> Result<Vec<u8>, Error> {
    let mut out = Vec::new();
    flate2::read::MultiGzDecoder::new(raw)
        .take(LIMIT + 1)
        .read_to_end(&mut out)
        .map_err(|error| Error::Gzip(error.to_string()))?;
    if out.len() as u64 > LIMIT {
        Err(Error::TooLarge)
    } else {
        Ok(out)
    }
}

/// Returns the text after the line `## template: jinja`; `None` without this line.
fn without_jinja_header(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once('\n')?;
    let words: String = first.split_whitespace().collect();
    words
        .eq_ignore_ascii_case("##template:jinja")
        .then_some(rest)
}

fn cloud_config(text: &str) -> Result<CloudConfig, Error> {
    // As in PyYAML, the last of duplicate keys wins. A snippet could contain secrets.
    let options = serde_saphyr::options! {
        with_snippet: false,
        duplicate_keys: serde_saphyr::options::DuplicateKeyPolicy::LastWins,
    };
    // A document that consists of comments is YAML's null.
    let documents: Vec<Value> = serde_saphyr::from_multiple_with_options(text, options)
        .map_err(|error| Error::Yaml(error.to_string()))?;
    let document = match documents.into_iter().next() {
        None | Some(Value::Null) => return Ok(CloudConfig::default()),
        Some(Value::Object(document)) => document,
        Some(_) => return Err(Error::Yaml("the document is not a mapping".to_owned())),
    };
    let mut config = CloudConfig::default();
    for (index, entry) in entries(document.get("write_files"), "write_files")?
        .iter()
        .enumerate()
    {
        write_file(&mut config.files, entry, &format!("write_files[{index}]"))?;
    }
    for (index, entry) in entries(document.get("runcmd"), "runcmd")?
        .iter()
        .enumerate()
    {
        config
            .commands
            .extend(command(entry, &format!("runcmd[{index}]"))?);
    }
    Ok(config)
}

fn entries<'a>(value: Option<&'a Value>, at: &str) -> Result<&'a [Value], Error> {
    match value {
        None | Some(Value::Null) => Ok(&[]),
        Some(Value::Array(entries)) => Ok(entries),
        Some(_) => Err(Error::Field {
            at: at.to_owned(),
            problem: "expected a list".to_owned(),
        }),
    }
}

fn write_file(files: &mut BTreeMap<String, Vec<u8>>, entry: &Value, at: &str) -> Result<(), Error> {
    let fail = |field: &str, problem: &str| Error::Field {
        at: format!("{at}.{field}"),
        problem: problem.to_owned(),
    };
    let path = match entry.get("path").and_then(Value::as_str) {
        Some(path) if !path.is_empty() => path,
        _ => return Err(fail("path", "every file needs a path")),
    };
    let content = match entry.get("content") {
        None | Some(Value::Null) => "",
        Some(Value::String(content)) => content.as_str(),
        Some(_) => return Err(fail("content", "expected a string")),
    };
    let encoding = entry
        .get("encoding")
        .and_then(Value::as_str)
        .unwrap_or("text/plain");
    let content = decoded(content, encoding).map_err(|problem| fail("content", &problem))?;
    if let Some(permissions) = entry.get("permissions").and_then(Value::as_str)
        && u32::from_str_radix(permissions.trim_start_matches("0o"), 8).is_err()
    {
        return Err(fail(
            "permissions",
            "expected an octal number such as '0640'",
        ));
    }
    if entry.get("append").and_then(Value::as_bool) == Some(true) {
        files.entry(path.to_owned()).or_default().extend(content);
    } else {
        files.insert(path.to_owned(), content);
    }
    Ok(())
}

/// Decodes the content of a file, with the encodings accepted by cloud-init.
fn decoded(content: &str, encoding: &str) -> Result<Vec<u8>, String> {
    let base64 = |content: &str| {
        let content: String = content.split_whitespace().collect();
        STANDARD
            .decode(content)
            .map_err(|error| format!("not base64: {error}"))
    };
    match encoding.trim().to_ascii_lowercase().as_str() {
        "" | "text/plain" => Ok(content.as_bytes().to_vec()),
        "b64" | "base64" => base64(content),
        "gz+b64" | "gz+base64" | "gzip+b64" | "gzip+base64" => {
            gunzip(&base64(content)?).map_err(|error| error.to_string())
        }
        "gz" | "gzip" => gunzip(content.as_bytes()).map_err(|error| error.to_string()),
        other => Err(format!("the encoding {other:?} is unknown")),
    }
}

fn command(entry: &Value, at: &str) -> Result<Option<Command>, Error> {
    let fail = |problem: &str| Error::Field {
        at: at.to_owned(),
        problem: problem.to_owned(),
    };
    match entry {
        Value::Null => Ok(None),
        Value::String(line) => Ok(Some(Command::Shell(line.clone()))),
        Value::Array(words) => words
            .iter()
            .map(|word| match word {
                Value::String(word) => Some(word.clone()),
                Value::Number(_) | Value::Bool(_) => Some(word.to_string()),
                _ => None,
            })
            .collect::<Option<Vec<_>>>()
            .map(|words| Some(Command::Program(words)))
            .ok_or_else(|| fail("expected a list of strings")),
        _ => Err(fail("expected a string or a list of strings")),
    }
}

#[cfg(test)]
mod tests;
