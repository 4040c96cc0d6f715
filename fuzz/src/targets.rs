//! Targets of apimachinery. Unreadable input is skipped. All other input must keep the asserted properties, without a
//! panic, a stack overflow or an endless loop.

use apimachinery::{
    patch::{
        self, Applier, PatchError, Types, Versions,
        managed::{self, Writer},
    },
    schema::Schema,
    selector::{FieldSelector, LabelSelector},
};
use serde_json::{Value, json};

/// Input `{"doc": .., "patch": ..}`: a JSON patch, a merge patch, and a strategic merge patch of several kinds.
pub fn patch_json(data: &[u8]) {
    let Some(input) = read(data) else { return };
    let (doc, patch) = (&input["doc"], &input["patch"]);
    if let Ok(patched) = patch::json(doc, patch) {
        assert!(fits_a_reader(&patched), "too deep to be read again");
    }
    let mut once = doc.clone();
    if patch::merge(&mut once, patch).is_ok() {
        let mut twice = once.clone();
        assert!(patch::merge(&mut twice, patch).is_ok());
        assert_eq!(once, twice, "merging twice is not merging once");
    }
    for gvk in [
        ("", "v1", "Pod"),
        ("apps", "v1", "Deployment"),
        ("", "v1", "Unknown"),
    ] {
        if let Ok(patched) = patch::strategic(doc, patch, gvk) {
            assert!(patched.is_object());
        }
    }
}

/// Input `{"schema": .., "steps": [{"apply": true, "manager": .., "force": .., "object": ..}, ..]}`: applies and
/// updates of one object, of a custom resource if the schema compiles, otherwise of a Pod.
pub fn patch_apply(data: &[u8]) {
    let Some(input) = read(data) else { return };
    let schema = Schema::compile(&input["schema"]).ok();
    let kind = Kind { schema };
    let mut live = kind.object(&json!({}));
    for step in input["steps"].as_array().into_iter().flatten().take(8) {
        let object = kind.object(&step["object"]);
        let manager = step["manager"].as_str().unwrap_or("fuzz");
        if step["apply"] == json!(false) {
            let mut new = object;
            let writer = Writer {
                manager,
                subresource: "",
                api_version: kind.api_version(),
                time: TIME,
            };
            if managed::update(Some(&live), &mut new, writer, &kind).is_ok() {
                live = new;
            }
            continue;
        }
        let apply = |live: &Value, force: bool, time: &str| {
            let applier = Applier {
                manager,
                force,
                subresource: "",
                api_version: kind.api_version(),
                time,
            };
            patch::apply(live, &object, applier, &kind)
        };
        match apply(&live, step["force"] == json!(true), TIME) {
            Ok(applied) => {
                // kubectl's annotation in an applied configuration differs from the one kept up to date. A manager
                // without fields has no record; the present fields then belong to `before-first-apply`.
                let recorded = applied["metadata"].get("managedFields").is_some();
                if manager != "kubectl" && recorded {
                    match apply(&applied, false, "2027-01-01T00:00:00Z") {
                        Ok(again) => assert_eq!(again, applied, "applying again changed something"),
                        Err(error) => panic!("applying again failed: {error}"),
                    }
                }
                live = applied;
            }
            Err(PatchError::Conflicts(conflicts)) => assert!(!conflicts.is_empty()),
            Err(error) => assert!(error.code() >= 400),
        }
    }
}

/// Input: a [`LabelSelector`] or [`FieldSelector`], as text.
pub fn selector(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let labels = json!({"a": "b", "app.kubernetes.io/name": "x", "n": "5"});
    if let Ok(parsed) = LabelSelector::parse(text) {
        let again = LabelSelector::parse(&parsed.to_string());
        assert_eq!(again.as_ref(), Ok(&parsed), "printed as {parsed}");
        let _ = (parsed.matches(&labels), parsed.matches(&Value::Null));
    }
    if let Ok(parsed) = FieldSelector::parse(text) {
        let selected = parsed.matches(|field| (field == "metadata.name").then(|| "a".to_owned()));
        if let Some(name) = parsed.required("metadata.name") {
            assert!(!selected || name == "a");
        }
        assert!(
            FieldSelector::parse(&parsed.to_string()).is_ok(),
            "printed as {parsed}"
        );
    }
    if let Some(object) = read(data) {
        let _ = LabelSelector::from_object(&object);
    }
}

/// Input `{"schema": .., "object": .., "old": ..}`: a [`Schema`] and two versions of an object.
pub fn schema(data: &[u8]) {
    let Some(input) = read(data) else { return };
    let Ok(schema) = Schema::compile(&input["schema"]) else {
        return;
    };
    let mut object = input["object"].clone();
    schema.prune(&mut object);
    let mut pruned = object.clone();
    assert!(
        schema.prune(&mut pruned).is_empty(),
        "pruning left something unknown"
    );
    assert_eq!(pruned, object);
    if schema.default(&mut object).is_err() {
        return;
    }
    let mut defaulted = object.clone();
    assert!(schema.default(&mut defaulted).is_ok());
    assert_eq!(defaulted, object, "defaulting twice is not defaulting once");
    let _ = schema.validate(&object, None);
    let _ = schema.validate(&object, Some(&input["old"]));
}

const TIME: &str = "2026-11-20T10:00:00Z";

/// JSON, at most as deep as the parser of the API server accepts.
fn read(data: &[u8]) -> Option<Value> {
    serde_json::from_slice(data).ok()
}

fn fits_a_reader(value: &Value) -> bool {
    serde_json::from_str::<Value>(&value.to_string()).is_ok()
}

struct Kind {
    schema: Option<Schema>,
}

impl Kind {
    fn api_version(&self) -> &'static str {
        if self.schema.is_some() {
            "example.com/v1"
        } else {
            "v1"
        }
    }

    fn object(&self, given: &Value) -> Value {
        let mut object = if given.is_object() {
            given.clone()
        } else {
            json!({})
        };
        object["apiVersion"] = json!(self.api_version());
        object["kind"] = json!(if self.schema.is_some() { "Foo" } else { "Pod" });
        object
    }
}

impl Versions for Kind {
    fn types(&self, api_version: &str) -> Option<Types<'_>> {
        let served = api_version == self.api_version();
        served.then_some(match &self.schema {
            Some(schema) => Types::Schema(schema),
            None => Types::BuiltIn {
                group: "",
                kind: "Pod",
            },
        })
    }

    fn convert(&self, object: &Value, _: &str) -> Result<Value, String> {
        Ok(object.clone())
    }
}
