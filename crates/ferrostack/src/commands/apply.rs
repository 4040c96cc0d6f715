//! `apply`: manifests from files, directories, URLs or standard input, all validated before the first is written.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::Context;
use apply::Preview;
use kube::api::DynamicObject;
use manifest::Document;
use manifest::convert::unified;
use serde_json::{Map, Value, json};
use terminal::counted;

use crate::cli::{Apply, DryRun, Output};
use crate::connect;
use crate::environment::Environment;
use crate::output::{print, say};
use crate::source;

/// Runs the command.
pub(super) async fn execute(args: &Apply, environment: &Environment) -> anyhow::Result<ExitCode> {
    run(args, environment, print, say).await
}

/// Exit status of `--diff` if an apply would change objects, as of `plan`.
const CHANGES: u8 = 2;

/// Applies the manifests in `args`, and reports the number of objects of each kind; or shows the changes.
pub(crate) async fn run(
    args: &Apply,
    environment: &Environment,
    print: impl Fn(&str) -> anyhow::Result<()>,
    say: impl Fn(&str),
) -> anyhow::Result<ExitCode> {
    let documents = source::read_all(&args.files).await?;
    let client = connect::client(&args.server, environment).await?;
    let rejected = "the manifests were rejected";
    if args.diff || args.dry_run == DryRun::Server {
        let previews = apply::preview(&client, &documents, &args.namespace).await;
        let previews = previews.context(rejected)?;
        let is_json = args.output.output == Output::Json;
        return match (args.diff, is_json) {
            (true, false) => differences(&previews, print),
            (_, true) => {
                let objects: Vec<Value> = previews.iter().map(listed).collect::<Result<_, _>>()?;
                let changes = objects.iter().any(|it| it["difference"] != "");
                print(&terminal::json(
                    &json!({"dryRun": true, "objects": objects}),
                )?)?;
                Ok(exit_status(args.diff && changes))
            }
            (false, false) => {
                report(&documents, "applied (server dry run)", say);
                Ok(ExitCode::SUCCESS)
            }
        };
    }
    apply::all(&client, &documents, &args.namespace)
        .await
        .context(rejected)?;
    match args.output.output {
        Output::Text => report(&documents, "applied", say),
        Output::Json => {
            let objects: Vec<Value> = documents.iter().map(applied).collect();
            print(&terminal::json(
                &json!({"dryRun": false, "objects": objects}),
            )?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn exit_status(changes: bool) -> ExitCode {
    match changes {
        true => ExitCode::from(CHANGES),
        false => ExitCode::SUCCESS,
    }
}

/// An object of a dry run, for programs.
fn listed(preview: &Preview) -> anyhow::Result<Value> {
    let types = preview.after.types.clone().unwrap_or_default();
    Ok(json!({
        "apiVersion": types.api_version,
        "kind": types.kind,
        "namespace": preview.after.metadata.namespace,
        "name": preview.after.metadata.name,
        "exists": preview.before.is_some(),
        "difference": difference(preview)?,
    }))
}

/// An object that was applied, for programs.
fn applied(document: &Document) -> Value {
    let namespace = document.text(&["metadata", "namespace"]);
    json!({
        "apiVersion": document.text(&["apiVersion"]),
        "kind": document.text(&["kind"]),
        // Null where the document leaves it to the flag, or the kind is in no namespace.
        "namespace": Some(namespace).filter(|it| !it.is_empty()),
        "name": document.text(&["metadata", "name"]),
    })
}

fn report(documents: &[Document], done: &str, say: impl Fn(&str)) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for document in documents {
        *counts.entry(document.text(&["kind"])).or_default() += 1;
    }
    for (kind, count) in counts {
        say(&format!("{} {done}", counted(count, kind)));
    }
}

fn differences(
    previews: &[Preview],
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<ExitCode> {
    let mut text = String::new();
    for preview in previews {
        text.push_str(&difference(preview)?);
    }
    if !text.is_empty() {
        print(&text)?;
    }
    Ok(exit_status(!text.is_empty()))
}

/// Unified difference of a [`Preview`], without fields of the server, and without the values of a Secret.
fn difference(preview: &Preview) -> anyhow::Result<String> {
    let mut before = preview.before.as_ref().map(comparable).transpose()?;
    let mut after = comparable(&preview.after)?;
    if after["kind"] == "Secret" {
        mask(before.as_mut(), &mut after);
    }
    let before = match &before {
        Some(value) => terminal::yaml(value)?,
        None => String::new(),
    };
    let after = terminal::yaml(&after)?;
    Ok(unified(&preview.label, "applied", &before, &after))
}

/// Object without fields set by the server.
fn comparable(object: &DynamicObject) -> anyhow::Result<Value> {
    let mut value = serde_json::to_value(object)?;
    if let Some(fields) = value.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = value["metadata"].as_object_mut() {
        for field in [
            "managedFields",
            "resourceVersion",
            "generation",
            "uid",
            "creationTimestamp",
        ] {
            metadata.remove(field);
        }
    }
    Ok(value)
}

/// Replaces the values of a Secret: only their changes are shown.
fn mask(mut before: Option<&mut Value>, after: &mut Value) {
    for field in ["data", "stringData"] {
        let mut empty = Map::new();
        let old = before
            .as_mut()
            .and_then(|it| it.get_mut(field)?.as_object_mut());
        let old = old.unwrap_or(&mut empty);
        let mut none = Map::new();
        let new = after.get_mut(field).and_then(Value::as_object_mut);
        let new = new.unwrap_or(&mut none);
        for (key, value) in &mut *new {
            let same = old.get(key) == Some(value);
            *value = if same { "***" } else { "*** (after)" }.into();
        }
        for (key, value) in old {
            let same = new.get(key).is_some_and(|it| it == "***");
            *value = if same { "***" } else { "*** (before)" }.into();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preview(before: Option<Value>, after: Value) -> String {
        let object = |value: Value| serde_json::from_value(value).unwrap();
        difference(&Preview {
            label: "Kind name".to_owned(),
            before: before.map(object),
            after: object(after),
        })
        .unwrap()
    }

    #[test]
    fn a_difference_has_the_changed_fields_of_users_alone() {
        let of = |replicas: i64, version: &str| {
            json!({"apiVersion": "v1", "kind": "Kind", "spec": {"replicas": replicas}, "status": {"a": version},
                "metadata": {"name": "name", "uid": "u", "resourceVersion": version, "managedFields": []}})
        };
        assert_eq!(preview(Some(of(1, "1")), of(1, "2")), "");
        let changed = preview(Some(of(1, "1")), of(2, "2"));
        assert!(
            changed.starts_with("--- Kind name\n+++ Kind name, applied\n"),
            "{changed}"
        );
        assert!(
            changed.contains("\n-  replicas: 1\n+  replicas: 2\n"),
            "{changed}"
        );
        assert!(!changed.contains("resourceVersion"), "{changed}");
        let new = preview(None, of(2, "2"));
        assert!(new.contains("+kind: Kind\n"), "{new}");
    }

    #[tokio::test]
    async fn an_object_in_a_new_namespace_is_shown_without_fields_that_are_null() {
        let management = testbed::Management::open([]).await;
        let text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: new}\n---\napiVersion: v1\nkind: ConfigMap\n\
                    metadata: {name: a, namespace: new, labels: null}\ndata: {key: value}\nbinaryData:\n";
        let documents = manifest::read("a.yaml", text).unwrap();
        let previews = apply::preview(&management.client, &documents, "default");
        let previews = previews.await.unwrap();
        let object = listed(&previews[1]).unwrap();
        assert_eq!(
            (&object["namespace"], &object["exists"]),
            (&json!("new"), &json!(false))
        );
        let text = difference(&previews[1]).unwrap();
        assert_eq!(object["difference"], text);
        assert!(text.contains("+  key: value\n"), "{text}");
        assert!(!text.contains("null"), "{text}");
    }

    #[test]
    fn the_values_of_a_secret_are_in_no_difference() {
        let of = |password: &str, other: &str| {
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"},
                "data": {"password": password, "other": other}, "stringData": {"new": other}})
        };
        for before in [None, Some(of("canary-1", "canary-2"))] {
            let text = preview(before, of("canary-3", "canary-2"));
            assert!(text.contains("*** (after)"), "{text}");
            assert!(!text.contains("canary"), "{text}");
        }
        let same = of("canary-1", "canary-2");
        assert_eq!(preview(Some(same.clone()), same), "");
        let without = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}});
        let text = preview(None, without);
        assert!(!text.contains("stringData"), "{text}");
    }
}
