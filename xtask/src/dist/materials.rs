//! Bill of materials in CycloneDX: crates in a program, and bundled code of others.

use std::collections::BTreeSet;
use std::fs;

use anyhow::Context;
use serde_json::{Value, json};

use super::builds::Program;
use super::elf::Needs;
use super::libraries::Package;
use super::{VERSION, sha256};
use crate::linked::{Crate, Id};
use crate::notices::SQLITE;

/// Crate with jemalloc; the version of jemalloc is behind the crate's own: `0.6.1+5.3.0-1-g…`.
const JEMALLOC: &str = "tikv-jemalloc-sys";

/// Bill of a [`Program`], with further packages in an image. `time` is in seconds since 1970.
pub(super) fn cyclonedx<'a>(
    program: &Program,
    crates: &[Crate],
    packages: impl IntoIterator<Item = &'a Package>,
    rust: &str,
    time: u64,
) -> anyhow::Result<String> {
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for krate in crates {
        let mut needs: BTreeSet<String> = krate.needs.iter().map(reference).collect();
        if let Some(library) = library_in(krate)? {
            needs.extend(reference_of(&library));
            components.push(library);
        }
        if krate.id.name == "ferrostack" {
            needs.insert("rust-std".to_owned());
        } else {
            components.push(component(krate));
        }
        dependencies.push(json!({"ref": reference(&krate.id), "dependsOn": needs}));
    }
    components.push(standard_library(rust)?);
    components.extend(packages.into_iter().map(installed));
    components.sort_by_key(reference_of);
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": jiff::Timestamp::from_second(time.try_into()?)?.to_string(),
            "component": subject(program),
        },
        "components": components,
        "dependencies": dependencies,
    });
    Ok(serde_json::to_string_pretty(&bill)? + "\n")
}

/// Component for the program itself.
fn subject(program: &Program) -> Value {
    let mut properties = vec![json!({"name": "ferrostack:target", "value": program.target})];
    if let Needs::Libraries { glibc, .. } = &program.needs {
        properties.push(json!({"name": "ferrostack:glibc", "value": glibc.to_string()}));
    }
    let id = Id {
        name: "ferrostack".to_owned(),
        version: VERSION.to_owned(),
    };
    json!({
        "type": "application",
        "bom-ref": reference(&id),
        "name": id.name,
        "version": id.version,
        "licenses": [{"expression": "Apache-2.0"}],
        "hashes": [{"alg": "SHA-256", "content": sha256(&program.content)}],
        "properties": properties,
    })
}

fn component(krate: &Crate) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(&krate.id),
        "name": krate.id.name,
        "version": krate.id.version,
        "licenses": [{"expression": krate.licence}],
    });
    // Crates of the workspace are not on crates.io.
    if let Some(sum) = &krate.checksum {
        component["purl"] = purl(&krate.id).into();
        component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]);
    }
    component
}

/// Component for the C library bundled in a crate.
fn library_in(krate: &Crate) -> anyhow::Result<Option<Value>> {
    if krate.id.name == SQLITE.0 {
        let header = krate.directory.join(SQLITE.1);
        let header = fs::read_to_string(&header).with_context(|| header.display().to_string())?;
        let mut lines = header.lines();
        let version = lines.find_map(|line| line.strip_prefix("#define SQLITE_VERSION "));
        let version = version.context("the header of SQLite has no version")?;
        let version = version.trim().trim_matches('"');
        return Ok(Some(library("sqlite", version, "blessing")));
    }
    if krate.id.name == JEMALLOC {
        let (_, version) =
            krate.id.version.split_once('+').with_context(|| {
                format!("{JEMALLOC} {}: no version of jemalloc", krate.id.version)
            })?;
        return Ok(Some(library("jemalloc", version, "BSD-2-Clause")));
    }
    Ok(None)
}

fn library(name: &str, version: &str, licence: &str) -> Value {
    json!({
        "type": "library",
        "bom-ref": name,
        "name": name,
        "version": version,
        "licenses": [{"expression": licence}],
        "purl": format!("pkg:generic/{name}@{version}"),
    })
}

/// Component for the standard library, from a compiler version `rustc 1.95.0 (…)`.
fn standard_library(rust: &str) -> anyhow::Result<Value> {
    let version = rust.split_whitespace().nth(1);
    let version = version.with_context(|| format!("{rust}: no version"))?;
    Ok(json!({
        "type": "library",
        "bom-ref": "rust-std",
        "name": "rust-std",
        "version": version,
        "licenses": [{"expression": "MIT OR Apache-2.0"}],
    }))
}

/// Component for a [`Package`] of a distribution; its licences are in its copyright file.
fn installed(package: &Package) -> Value {
    let Package {
        name,
        version,
        source,
        distribution,
    } = package;
    let escaped = version.replace('+', "%2B").replace(':', "%3A");
    json!({
        "type": "library",
        "bom-ref": format!("{distribution}/{name}"),
        "name": name,
        "version": version,
        "licenses": [{"license": {"name": format!("/usr/share/doc/{name}/copyright")}}],
        "purl": format!("pkg:deb/{distribution}/{name}@{escaped}"),
        "properties": [{"name": "ferrostack:source", "value": source}],
    })
}

fn reference(id: &Id) -> String {
    format!("{}@{}", id.name, id.version)
}

fn reference_of(component: &Value) -> Option<String> {
    Some(component.get("bom-ref")?.as_str()?.to_owned())
}

/// Package URL, with `+` escaped.
fn purl(id: &Id) -> String {
    format!("pkg:cargo/{}@{}", id.name, id.version.replace('+', "%2B"))
}
