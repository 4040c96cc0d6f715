//! Object of a cloud from a file and `--set`, checked before anything is started.

use crate::source;
use std::path::Path;

use anyhow::{Context as _, bail};
use deployer::{Cloud, Parameters, Release};
use manifest::Lines;
use serde_json::{Value, json};

use super::super::{File, warnings};

/// Fields with texts, even if the text looks like a number.
const TEXTS: [&str; 2] = ["release", "region"];

/// Request of the user.
pub(in crate::commands::openstack) struct Asked {
    pub(super) name: String,
    pub(super) namespace: String,
    /// Object of the cloud.
    pub(in crate::commands::openstack) object: Value,
    /// True if neither a file nor a field is given.
    pub(super) is_default: bool,
    /// True if a file is given.
    pub(super) has_file: bool,
    /// Fields set by the defaults of the place, as `FIELD=VALUE`.
    pub(super) filled: Vec<String>,
    pub(in crate::commands::openstack) warnings: Vec<String>,
}

impl Asked {
    /// [`Cloud`] of the object.
    pub(in crate::commands::openstack) fn cloud(&self) -> anyhow::Result<Cloud> {
        let (parameters, _) = Parameters::read(&self.object)?;
        Ok(Cloud::new(&self.object, parameters)?)
    }
}

/// Reads the file, overridden by the fields. Missing fields are taken from `defaults`, the defaults of the place.
pub(in crate::commands::openstack) fn read(
    file: Option<&Path>,
    fields: &[String],
    defaults: &Value,
) -> anyhow::Result<Asked> {
    let (mut document, place) = match file {
        Some(path) => {
            let document = source::read_one(path)?;
            (document.value, Some((document.file, document.lines)))
        }
        None => (json!({"release": Release::DEFAULT.name()}), None),
    };
    let file_is_given = file.is_some();
    let is_object = !Parameters::prefix(&document).is_empty();
    for field in fields {
        let (path, value) = field.split_once('=').with_context(|| {
            format!("--set {field}: write it as FIELD=VALUE, such as network.mtu=9000")
        })?;
        let spec = if is_object {
            &mut document["spec"]
        } else {
            &mut document
        };
        set(spec, path, value).with_context(|| format!("--set {field}"))?;
    }
    let spec = match is_object {
        true => &mut document["spec"],
        false => &mut document,
    };
    let filled = fill(spec, defaults);
    let located = |path: &str| match &place {
        Some((file, lines)) if fields.is_empty() => format!("{file}:{}: ", lines.of(path)),
        Some((file, _)) => format!("{file} and --set: "),
        None => String::new(),
    };
    let (parameters, prefix) = match Parameters::read(&document) {
        Ok(read) => read,
        Err(error) => bail!("{}{error}", located(&error.path)),
    };
    let cloud = Cloud::new(&document, parameters)
        .map_err(|error| anyhow::anyhow!("{}{error}", located(&error.path)))?;
    let findings = deployer::check(&cloud.parameters);
    let file = place.map(|(name, lines): (String, Lines)| File {
        name,
        lines,
        prefix,
    });
    let of_file = file.as_ref().filter(|_| fields.is_empty());
    let warnings = warnings(&findings, of_file)?;
    let spec = if is_object {
        document["spec"].clone()
    } else {
        document
    };
    let (name, namespace) = (cloud.name, cloud.namespace);
    Ok(Asked {
        object: json!({
            "apiVersion": api::openstack::v1alpha1::API_VERSION, "kind": "OpenStack",
            "metadata": {"name": name, "namespace": namespace}, "spec": apply::without_nulls(&spec),
        }),
        name,
        namespace,
        has_file: file_is_given,
        filled,
        is_default: !file_is_given && fields.is_empty(),
        warnings,
    })
}

/// Sets the fields of `defaults` missing in a spec. Returns their names.
fn fill(spec: &mut Value, defaults: &Value) -> Vec<String> {
    let (Some(spec), Some(defaults)) = (spec.as_object_mut(), defaults.as_object()) else {
        return vec![];
    };
    let missing = defaults.iter().filter(|(name, _)| {
        let there = spec.get(name.as_str());
        there.is_none_or(Value::is_null)
    });
    let missing: Vec<_> = missing
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    spec.extend(missing.iter().cloned());
    let words = missing.iter();
    words
        .map(|(name, value)| format!("{name}={value}"))
        .collect()
}

/// Sets a field, with its parent objects.
fn set(spec: &mut Value, path: &str, value: &str) -> anyhow::Result<()> {
    let parsed = match serde_json::from_str(value) {
        Ok(parsed) if !TEXTS.contains(&path) => parsed,
        _ => Value::from(value),
    };
    let mut at = spec;
    for step in path.split('.') {
        if step.is_empty() {
            bail!("`{path}` is not the path of a field");
        }
        if !(at.is_object() || at.is_null()) {
            bail!("`{path}`: the field above `{step}` is not an object");
        }
        at = &mut at[step];
    }
    *at = parsed;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_kept_and_the_rest_is_as_the_place_has_it() {
        let defaults = json!({
            "compute": {"driver": "Fake", "fake": {"hypervisors": 2}},
            "network": {"physical": [{"name": "public"}]},
        });
        let asked = read(None, &["network.mtu=9000".to_owned()], &defaults).unwrap();
        assert_eq!(asked.object["spec"]["network"], json!({"mtu": 9000}));
        assert_eq!(asked.object["spec"]["compute"], defaults["compute"]);
        let filled = r#"compute={"driver":"Fake","fake":{"hypervisors":2}}"#;
        assert_eq!(asked.filled, [filled]);
        assert!(!asked.is_default);
        // An object with a spec, too.
        let file = tempfile::NamedTempFile::new().unwrap();
        let object = "apiVersion: ferrostack.dev/v1alpha1\nkind: OpenStack\nmetadata: {name: mine}\nspec: {release: zed, compute: {driver: Fake}}\n";
        std::fs::write(file.path(), object).unwrap();
        let asked = read(Some(file.path()), &[], &defaults).unwrap();
        assert_eq!(asked.object["spec"]["compute"], json!({"driver": "Fake"}));
        assert_eq!(asked.object["spec"]["network"], defaults["network"]);
        assert_eq!(asked.name, "mine");
        // As is an object without its head.
        std::fs::write(file.path(), "spec: {release: zed, region: here}\n").unwrap();
        let asked = read(
            Some(file.path()),
            &["network.mtu=9000".to_owned()],
            &Value::Null,
        )
        .unwrap();
        let spec = json!({"release": "zed", "region": "here", "network": {"mtu": 9000}});
        assert_eq!(asked.object["spec"], spec);
        assert_eq!(asked.name, "cloud");
        // Other places have no defaults.
        let asked = read(None, &[], &Value::Null).unwrap();
        assert!(asked.is_default && asked.filled.is_empty());
        assert_eq!(asked.object["spec"], json!({"release": "2026.1"}));
        // What is not accepted is not accepted from there either.
        let wrong = json!({"compute": {"driver": "Other"}});
        assert!(read(None, &[], &wrong).is_err());
    }
}
