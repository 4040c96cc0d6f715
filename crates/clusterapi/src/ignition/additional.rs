//! Container Linux Config, translated to Ignition: files, links, directories, units and users.
//!
//! Names of fields have underscores instead of Ignition's capitals; modes are octal, contents are given inline or by
//! a URL. Parts without a translation are rejected by name, strict or not: a machine without them would come up
//! silently.

use serde_json::{Map, Value, json};

use super::{ROOT, data_url};

/// Mode of a file without one (Container Linux Config Transpiler).
const MODE: u32 = 0o644;

/// Reason why a Container Linux Config cannot be translated.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The text is not YAML.
    #[error("not a YAML document: {0}")]
    Yaml(String),
    /// A field is unknown, or has a wrong value.
    #[error("{at}: {problem}")]
    Field {
        /// Field, such as `systemd.units[0].contents`.
        at: String,
        /// Problem, and valid values.
        problem: String,
    },
}

/// Translates the document.
pub(super) fn translate(text: &str) -> Result<Value, ConfigError> {
    // A snippet could contain secrets. Modes are written as in YAML 1.1.
    let options = serde_saphyr::options! {
        with_snippet: false,
        legacy_octal_numbers: true,
    };
    let document: Value = serde_saphyr::from_str_with_options(text, options)
        .map_err(|error| ConfigError::Yaml(error.to_string()))?;
    if document.is_null() {
        return Ok(json!({}));
    }
    section(
        &document,
        "",
        &[
            ("storage", storage),
            ("systemd", systemd),
            ("networkd", networkd),
            ("passwd", passwd),
        ],
    )
}

/// Translation of a value at a path to Ignition's value.
type Translation = fn(&Value, &str) -> Result<Value, ConfigError>;

fn fail(at: &str, problem: impl Into<String>) -> ConfigError {
    let (at, problem) = (at.to_owned(), problem.into());
    ConfigError::Field { at, problem }
}

/// Object with these fields alone, under translated names.
fn section(value: &Value, at: &str, fields: &[(&str, Translation)]) -> Result<Value, ConfigError> {
    let here = if at.is_empty() { "the document" } else { at };
    let Some(given) = value.as_object() else {
        return Err(fail(here, "is not a mapping"));
    };
    let mut translated = Map::new();
    for (name, value) in given {
        let path = match at {
            "" => name.clone(),
            at => format!("{at}.{name}"),
        };
        let Some((_, translate)) = fields.iter().find(|(known, _)| known == name) else {
            let known: Vec<&str> = fields.iter().map(|(known, _)| *known).collect();
            let problem = format!(
                "is none of the fields that can be used here: {}",
                known.join(", ")
            );
            return Err(fail(&path, problem));
        };
        translated.insert(camel(name), translate(value, &path)?);
    }
    Ok(Value::Object(translated))
}

/// `password_hash` as `passwordHash`.
fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|it| it.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

fn list(value: &Value, at: &str, entry: Translation) -> Result<Value, ConfigError> {
    let Some(entries) = value.as_array() else {
        return Err(fail(at, "is not a list"));
    };
    let entries = entries.iter().enumerate();
    entries
        .map(|(index, value)| entry(value, &format!("{at}[{index}]")))
        .collect()
}

fn text(value: &Value, at: &str) -> Result<Value, ConfigError> {
    match value {
        Value::String(_) => Ok(value.clone()),
        _ => Err(fail(at, "is not a string")),
    }
}

fn flag(value: &Value, at: &str) -> Result<Value, ConfigError> {
    match value {
        Value::Bool(_) => Ok(value.clone()),
        _ => Err(fail(at, "is neither true nor false")),
    }
}

fn number(value: &Value, at: &str) -> Result<Value, ConfigError> {
    match value.as_u64() {
        Some(_) => Ok(value.clone()),
        None => Err(fail(at, "is not a number, such as 0644")),
    }
}

fn texts(value: &Value, at: &str) -> Result<Value, ConfigError> {
    list(value, at, text)
}

fn storage(value: &Value, at: &str) -> Result<Value, ConfigError> {
    section(
        value,
        at,
        &[
            ("files", |value, at| list(value, at, file)),
            ("links", |value, at| list(value, at, link)),
            ("directories", |value, at| list(value, at, directory)),
        ],
    )
}

/// Entry of a list in `storage`, with the required path.
fn node(value: &Value, at: &str, more: &[(&str, Translation)]) -> Result<Value, ConfigError> {
    let common: [(&str, Translation); 5] = [
        ("filesystem", text),
        ("path", text),
        ("user", owner),
        ("group", owner),
        ("overwrite", flag),
    ];
    let mut node = section(value, at, &[&common, more].concat())?;
    if node["path"].is_null() {
        return Err(fail(&format!("{at}.path"), "is required"));
    }
    if node["filesystem"].is_null() {
        node["filesystem"] = ROOT.into();
    }
    Ok(node)
}

fn owner(value: &Value, at: &str) -> Result<Value, ConfigError> {
    section(value, at, &[("id", number), ("name", text)])
}

fn file(value: &Value, at: &str) -> Result<Value, ConfigError> {
    let more: [(&str, Translation); 3] =
        [("mode", number), ("append", flag), ("contents", contents)];
    let mut file = node(value, at, &more)?;
    if file["mode"].is_null() {
        file["mode"] = MODE.into();
    }
    if file["contents"].is_null() {
        file["contents"] = json!({"source": data_url(b""), "verification": {}});
    }
    Ok(file)
}

fn contents(value: &Value, at: &str) -> Result<Value, ConfigError> {
    let given = section(value, at, &[("inline", text), ("remote", remote)])?;
    match (given["inline"].as_str(), given.get("remote")) {
        (Some(_), Some(_)) => Err(fail(at, "has inline and remote, of which one can be used")),
        (_, Some(remote)) => Ok(remote.clone()),
        (inline, None) => {
            let source = data_url(inline.unwrap_or_default().as_bytes());
            Ok(json!({"source": source, "verification": {}}))
        }
    }
}

fn remote(value: &Value, at: &str) -> Result<Value, ConfigError> {
    let fields: [(&str, Translation); 3] = [
        ("url", text),
        ("compression", text),
        ("verification", verification),
    ];
    let mut remote = section(value, at, &fields)?;
    let url = remote.as_object_mut().and_then(|it| it.remove("url"));
    remote["source"] = url.ok_or_else(|| fail(&format!("{at}.url"), "is required"))?;
    if remote["verification"].is_null() {
        remote["verification"] = json!({});
    }
    Ok(remote)
}

fn verification(value: &Value, at: &str) -> Result<Value, ConfigError> {
    let hash: Translation = |value, at| section(value, at, &[("function", text), ("sum", text)]);
    let given = section(value, at, &[("hash", hash)])?;
    let part = |name: &str| given["hash"][name].as_str().unwrap_or_default().to_owned();
    Ok(json!({"hash": format!("{}-{}", part("function"), part("sum"))}))
}

fn link(value: &Value, at: &str) -> Result<Value, ConfigError> {
    let link = node(value, at, &[("target", text), ("hard", flag)])?;
    match link["target"].is_null() {
        true => Err(fail(&format!("{at}.target"), "is required")),
        false => Ok(link),
    }
}

fn directory(value: &Value, at: &str) -> Result<Value, ConfigError> {
    node(value, at, &[("mode", number)])
}

fn systemd(value: &Value, at: &str) -> Result<Value, ConfigError> {
    section(value, at, &[("units", |value, at| list(value, at, unit))])
}

fn unit(value: &Value, at: &str) -> Result<Value, ConfigError> {
    let fields: [(&str, Translation); 6] = [
        ("name", text),
        ("enable", flag),
        ("enabled", flag),
        ("mask", flag),
        ("contents", text),
        ("dropins", |value, at| list(value, at, drop_in)),
    ];
    named(section(value, at, &fields)?, at)
}

fn networkd(value: &Value, at: &str) -> Result<Value, ConfigError> {
    section(
        value,
        at,
        &[("units", |value, at| list(value, at, network_unit))],
    )
}

fn network_unit(value: &Value, at: &str) -> Result<Value, ConfigError> {
    let fields: [(&str, Translation); 3] = [
        ("name", text),
        ("contents", text),
        ("dropins", |value, at| list(value, at, drop_in)),
    ];
    named(section(value, at, &fields)?, at)
}

fn drop_in(value: &Value, at: &str) -> Result<Value, ConfigError> {
    named(
        section(value, at, &[("name", text), ("contents", text)])?,
        at,
    )
}

/// Checks for a name: Ignition rejects an entry without one.
fn named(value: Value, at: &str) -> Result<Value, ConfigError> {
    match value["name"].is_null() {
        true => Err(fail(&format!("{at}.name"), "is required")),
        false => Ok(value),
    }
}

fn passwd(value: &Value, at: &str) -> Result<Value, ConfigError> {
    section(
        value,
        at,
        &[
            ("users", |value, at| list(value, at, user)),
            ("groups", |value, at| list(value, at, group)),
        ],
    )
}

fn user(value: &Value, at: &str) -> Result<Value, ConfigError> {
    let fields: [(&str, Translation); 13] = [
        ("name", text),
        ("password_hash", text),
        ("ssh_authorized_keys", texts),
        ("uid", number),
        ("gecos", text),
        ("home_dir", text),
        ("no_create_home", flag),
        ("primary_group", text),
        ("groups", texts),
        ("no_user_group", flag),
        ("system", flag),
        ("no_log_init", flag),
        ("shell", text),
    ];
    named(section(value, at, &fields)?, at)
}

fn group(value: &Value, at: &str) -> Result<Value, ConfigError> {
    let fields: [(&str, Translation); 4] = [
        ("name", text),
        ("gid", number),
        ("password_hash", text),
        ("system", flag),
    ];
    named(section(value, at, &fields)?, at)
}
