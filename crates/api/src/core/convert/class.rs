//! Conversion of ClusterClass.

use serde_json::{Value, json};

use super::topology;
use crate::conversion::fields::{Done, Fields, nested, rename, take, within};

/// Fields with values of the user: nulls and empty values have a meaning.
const VERBATIM: [&str; 3] = ["value", "openAPIV3Schema", "settings"];

/// From v1beta1 to v1beta2.
pub(super) fn up(fields: &mut Fields) -> Done {
    tidy(fields);
    let naming = fields.remove("infrastructureNamingStrategy");
    within(fields, &["infrastructure"], template_up)?;
    if let Some(naming) = naming {
        nested(fields, &["infrastructure"]).insert("naming".to_owned(), naming);
    }
    within(fields, &["controlPlane"], |plane| {
        template_up(plane)?;
        within(plane, &["machineInfrastructure"], template_up)?;
        rename(plane, "namingStrategy", "naming");
        topology::part_up(plane)
    })?;
    each(fields, "machineDeployments", |class| {
        workers_up(class)?;
        topology::deployment_up(class)
    })?;
    each(fields, "machinePools", |class| {
        workers_up(class)?;
        topology::part_up(class)
    })?;
    for variable in objects(fields, "variables") {
        rename(variable, "metadata", "deprecatedV1Beta1Metadata");
        schema_up(variable);
    }
    for patch in objects(fields, "patches") {
        if let Some(external) = patch.get_mut("external").and_then(Value::as_object_mut) {
            for (old, new) in EXTENSIONS {
                rename(external, old, new);
            }
        }
    }
    prune(fields);
    Ok(())
}

/// From v1beta2 to v1beta1.
pub(super) fn down(fields: &mut Fields) -> Done {
    let naming = take(fields, &["infrastructure", "naming"]);
    within(fields, &["infrastructure"], template_down)?;
    fields.extend(naming.map(|naming| ("infrastructureNamingStrategy".to_owned(), naming)));
    within(fields, &["controlPlane"], |plane| {
        template_down(plane)?;
        within(plane, &["machineInfrastructure"], template_down)?;
        rename(plane, "naming", "namingStrategy");
        topology::part_down(plane)
    })?;
    each(fields, "machineDeployments", |class| {
        topology::deployment_down(class)?;
        workers_down(class)
    })?;
    each(fields, "machinePools", |class| {
        topology::part_down(class)?;
        workers_down(class)
    })?;
    for variable in objects(fields, "variables") {
        rename(variable, "deprecatedV1Beta1Metadata", "metadata");
    }
    for patch in objects(fields, "patches") {
        if let Some(external) = patch.get_mut("external").and_then(Value::as_object_mut) {
            for (old, new) in EXTENSIONS {
                rename(external, new, old);
            }
        }
    }
    Ok(())
}

/// Status, from v1beta1 to v1beta2.
pub(super) fn status_up(fields: &mut Fields) -> Done {
    definitions(fields, "metadata", "deprecatedV1Beta1Metadata");
    super::status::conditions_up(fields)
}

/// Inverse of [`status_up`].
pub(super) fn status_down(fields: &mut Fields) -> Done {
    definitions(fields, "deprecatedV1Beta1Metadata", "metadata");
    super::status::conditions_down(fields)
}

/// Names of runtime extensions in v1beta1 and in v1beta2.
const EXTENSIONS: [(&str, &str); 2] = [
    ("generateExtension", "generatePatchesExtension"),
    ("validateExtension", "validateTopologyExtension"),
];

fn template_up(fields: &mut Fields) -> Done {
    if let Some(Value::Object(mut reference)) = fields.remove("ref") {
        reference.retain(|name, _| ["apiVersion", "kind", "name"].contains(&name.as_str()));
        fields.insert("templateRef".to_owned(), Value::Object(reference));
    }
    Ok(())
}

fn template_down(fields: &mut Fields) -> Done {
    rename(fields, "templateRef", "ref");
    Ok(())
}

/// Parts of a class of workers; in v1beta1 inside `template`.
const OF_TEMPLATE: [&str; 3] = ["metadata", "bootstrap", "infrastructure"];

fn workers_up(class: &mut Fields) -> Done {
    if let Some(Value::Object(mut template)) = class.remove("template") {
        for name in OF_TEMPLATE {
            class.extend(template.remove(name).map(|part| (name.to_owned(), part)));
        }
    }
    within(class, &["bootstrap"], template_up)?;
    within(class, &["infrastructure"], template_up)?;
    rename(class, "namingStrategy", "naming");
    Ok(())
}

fn workers_down(class: &mut Fields) -> Done {
    within(class, &["bootstrap"], template_down)?;
    within(class, &["infrastructure"], template_down)?;
    rename(class, "naming", "namingStrategy");
    for name in OF_TEMPLATE {
        if let Some(part) = class.remove(name) {
            nested(class, &["template"]).insert(name.to_owned(), part);
        }
    }
    Ok(())
}

/// Removes keywords valid only in schemas of v1beta1; the rest belongs to the user.
fn schema_up(variable: &mut Fields) {
    let schema = variable
        .get_mut("schema")
        .and_then(|schema| schema.get_mut("openAPIV3Schema"))
        .and_then(Value::as_object_mut);
    if let Some(schema) = schema {
        let lists = ["required", "x-kubernetes-validations"];
        schema.retain(|name, value| {
            let empty = *value == json!([]) && lists.contains(&name.as_str());
            let none = value.is_null() && name != "default" && name != "example";
            !empty && !none
        });
    }
}

fn definitions(status: &mut Fields, from: &str, to: &str) {
    for variable in objects(status, "variables") {
        for definition in objects(variable, "definitions") {
            rename(definition, from, to);
        }
    }
}

fn objects<'a>(fields: &'a mut Fields, name: &str) -> impl Iterator<Item = &'a mut Fields> {
    let items = fields.get_mut(name).and_then(Value::as_array_mut);
    items.into_iter().flatten().filter_map(Value::as_object_mut)
}

fn each(fields: &mut Fields, name: &str, turn: fn(&mut Fields) -> Done) -> Done {
    let Some(workers) = fields.get_mut("workers").and_then(Value::as_object_mut) else {
        return Ok(());
    };
    for class in objects(workers, name) {
        turn(class).map_err(|problem| format!("workers.{name}: {problem}"))?;
    }
    Ok(())
}

/// Removes nulls and empty lists like [`super::tidy`], except in variables and schemas.
fn tidy(fields: &mut Fields) {
    retain(fields, |value| {
        !value.is_null() && value.as_array().is_none_or(|items| !items.is_empty())
    });
}

/// Removes empty objects: v1beta2 rejects them.
fn prune(fields: &mut Fields) {
    retain(fields, |value| {
        value.as_object().is_none_or(|inner| !inner.is_empty())
    });
}

fn retain(fields: &mut Fields, keep: fn(&Value) -> bool) {
    fields.retain(|name, value| {
        if VERBATIM.contains(&name.as_str()) {
            return true;
        }
        match value {
            Value::Object(inner) => retain(inner, keep),
            Value::Array(items) => {
                let inner = items.iter_mut().filter_map(Value::as_object_mut);
                inner.for_each(|inner| retain(inner, keep));
            }
            _ => {}
        }
        keep(value)
    });
}

#[cfg(test)]
mod tests;
