//! `openstack config SERVICE --explain OPTION`.

mod description;

use std::fmt::Write;

use anyhow::bail;
use deployer::{Config, Found, Parameters, Service};
use serde_json::{Value, json};

use super::{source, table, version};
use crate::cli::Output;

/// Type of an option, with default, value and origin of the value; in each section with an option of this name, or in
/// the named one.
pub(super) fn option(
    service: Service,
    name: &str,
    parameters: &Parameters,
    output: Output,
) -> anyhow::Result<String> {
    let table = table(service, parameters)?;
    // The name of a section can hold dots, that of an option cannot.
    let found: Vec<Found<'_>> = match name.rsplit_once('.') {
        Some((section, option)) => table.find(section, option).into_iter().collect(),
        None => {
            let sections = table.sections_with(name);
            let each = sections
                .iter()
                .filter_map(|section| table.find(section, name));
            each.collect()
        }
    };
    if found.is_empty() {
        let mut problem = format!("{} has no option {name}", version(service, parameters)?);
        if let Some(near) = nearest(table, name) {
            write!(problem, "; did you mean {near}?")?;
        }
        bail!(problem);
    }
    let config = deployer::configure(service, parameters);
    if output == Output::Json {
        let document = |it: &Found<'_>| {
            let text = description::of(parameters.release, service, it.section, it.name);
            document(it, &config, text)
        };
        let all: Vec<Value> = found.iter().map(document).collect();
        return Ok(terminal::json(&all)?);
    }
    let mut text = String::new();
    for option in &found {
        if !text.is_empty() {
            text.push('\n');
        }
        describe(&mut text, option, &config, &version(service, parameters)?)?;
        let words = description::of(parameters.release, service, option.section, option.name);
        for line in words.iter().flat_map(|words| words.lines()) {
            match line.is_empty() {
                true => text.push('\n'),
                false => writeln!(text, "    {line}")?,
            }
        }
    }
    Ok(text)
}

fn nearest(table: &deployer::Table, name: &str) -> Option<String> {
    let (section, option) = name.rsplit_once('.').unwrap_or(("DEFAULT", name));
    if !table.has_section(section) {
        let near = table.nearest_section(section)?;
        return Some(format!("{near}.{option}"));
    }
    let near = table.nearest_option(section, option)?;
    Some(format!("{section}.{near}"))
}

fn describe(
    text: &mut String,
    option: &Found<'_>,
    config: &Config,
    version: &str,
) -> std::fmt::Result {
    writeln!(text, "[{}] {} ({version})", option.section, option.name)?;
    let mut line = |label: &str, value: &str| writeln!(text, "  {label:<9}{value}");
    let entry = option.entry;
    line("takes", &entry.takes())?;
    if let Some(default) = &entry.default {
        let default = default
            .as_str()
            .map_or_else(|| default.to_string(), str::to_owned);
        line("default", &default)?;
    }
    match config.get(option.section, option.name) {
        Some(setting) => {
            let (_, reason) = source(&setting.source);
            line("value", &format!("{} ({reason})", setting.value.masked()))?;
        }
        None => line("value", "not set")?,
    }
    let notes = [
        (entry.required, "the service does not start without it"),
        (entry.secret, "it is a secret"),
        (entry.deprecated, "it is deprecated"),
        (
            entry.mutable,
            "the service could read it again without a restart; here every change is a restart",
        ),
        (
            option.renamed,
            "the name that was asked for is an earlier one",
        ),
    ];
    for (_, note) in notes.iter().filter(|(holds, _)| *holds) {
        line("note", note)?;
    }
    Ok(())
}

fn document(option: &Found<'_>, config: &Config, description: Option<String>) -> Value {
    let setting = config.get(option.section, option.name);
    json!({
        "section": option.section,
        "name": option.name,
        "description": description,
        "takes": option.entry.takes(),
        "default": option.entry.default,
        "value": setting.map(|it| it.value.masked()),
        "source": setting.map(|it| source(&it.source).0),
        "required": option.entry.required,
        "secret": option.entry.secret,
        "deprecated": option.entry.deprecated,
        "mutable": option.entry.mutable,
        "renamed": option.renamed,
    })
}
