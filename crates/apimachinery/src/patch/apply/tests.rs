use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

mod scenarios;

/// A kind with one version.
pub(crate) struct Kind {
    schema: Option<Schema>,
    api_version: &'static str,
    kind: &'static str,
}

impl Versions for Kind {
    fn types(&self, api_version: &str) -> Option<Types<'_>> {
        (api_version == self.api_version).then(|| match &self.schema {
            Some(schema) => Types::Schema(schema),
            None => {
                let group = self
                    .api_version
                    .split_once('/')
                    .map_or("", |(group, _)| group);
                Types::BuiltIn {
                    group,
                    kind: self.kind,
                }
            }
        })
    }

    fn convert(&self, object: &Value, _: &str) -> Result<Value, String> {
        Ok(object.clone())
    }
}

pub(crate) fn built_in(api_version: &'static str, kind: &'static str) -> Kind {
    Kind {
        schema: None,
        api_version,
        kind,
    }
}

/// A custom resource with a field of each form.
pub(crate) fn custom() -> Kind {
    let schema = Schema::compile(&json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {
            "a": {"type": "integer"},
            "b": {"type": "string"},
            "c": {"type": "object", "additionalProperties": {"type": "integer"}},
            "l": {"type": "array", "items": {"type": "integer"}},
            "s": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
            "m": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
                  "items": {"type": "object", "required": ["k"], "properties": {
                      "k": {"type": "string"}, "v": {"type": "integer"}, "w": {"type": "integer"}}}},
            "f": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}},
    }));
    Kind {
        schema: schema.ok(),
        api_version: "example.com/v1",
        kind: "Foo",
    }
}

impl Kind {
    /// The object with `apiVersion`, `kind` and name, as clients send it.
    pub(crate) fn object(&self, rest: Value) -> Value {
        let mut object =
            json!({"apiVersion": self.api_version, "kind": self.kind, "metadata": {"name": "n"}});
        for (name, value) in rest.as_object().into_iter().flatten() {
            object[name.as_str()] = value.clone();
        }
        object
    }

    pub(crate) fn apply(
        &self,
        live: &Value,
        manager: &str,
        config: Value,
        force: bool,
    ) -> Result<Value, PatchError> {
        self.apply_at(live, manager, config, force, "2026-11-20T10:00:00Z")
    }

    fn apply_at(
        &self,
        live: &Value,
        manager: &str,
        config: Value,
        force: bool,
        time: &str,
    ) -> Result<Value, PatchError> {
        let applier = Applier {
            manager,
            force,
            subresource: "",
            api_version: self.api_version,
            time,
        };
        apply(live, &self.object(config), applier, self)
    }
}

/// The fields of a manager; null if it has none.
fn owned(object: &Value, manager: &str) -> Value {
    let entries = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array);
    let entry = entries
        .into_iter()
        .flatten()
        .find(|entry| entry["manager"] == manager);
    entry.map_or(Value::Null, |entry| entry["fieldsV1"].clone())
}

/// Any spec without nulls, empty sets and empty list maps, which no manager comes to own.
fn any_spec() -> impl Strategy<Value = Value> {
    any_spec_of(1).prop_map(|mut config| {
        let spec = config["spec"].as_object_mut().into_iter();
        spec.for_each(|spec| spec.retain(|_, value| !value.is_null()));
        config
    })
}

/// Any spec whose sets and list maps have at least `least` items.
fn any_spec_of(least: usize) -> impl Strategy<Value = Value> {
    let item = (
        "[k-m]",
        prop::option::of(0..3_i64),
        prop::option::of(0..3_i64),
    )
        .prop_map(|(k, v, w)| {
            let mut item = json!({ "k": k });
            v.into_iter().for_each(|v| item["v"] = json!(v));
            w.into_iter().for_each(|w| item["w"] = json!(w));
            item
        });
    let items = prop::collection::vec(item, least..4).prop_map(|items| {
        let mut unique: Vec<Value> = Vec::new();
        for item in items {
            if unique.iter().all(|other| other["k"] != item["k"]) {
                unique.push(item);
            }
        }
        Value::from(unique)
    });
    let field = prop_oneof![
        (0..3_i64).prop_map(|v| ("a", json!(v))),
        "[xy]".prop_map(|v| ("b", json!(v))),
        prop::collection::btree_map("[xyz]", 0..3_i64, 0..3).prop_map(|v| ("c", json!(v))),
        prop::collection::vec(0..3_i64, 0..3).prop_map(|v| ("l", json!(v))),
        prop::collection::btree_set("[xyz]", least..3).prop_map(|v| ("s", json!(v))),
        items.prop_map(|v| ("m", v)),
        prop::collection::btree_map("[xy]", 0..3_i64, 0..3).prop_map(|v| ("f", json!({ "g": v }))),
        Just(("f", json!(null))),
    ];
    prop::collection::vec(field, 0..6).prop_map(|fields| {
        let fields: serde_json::Map<String, Value> = fields
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        json!({ "spec": fields })
    })
}

/// Returns the leaves of `part` that are missing or different in `whole`. A map without keys may be missing.
fn missing(part: &Value, whole: &Value) -> Vec<String> {
    match (part, whole) {
        (Value::Object(part), Value::Object(whole)) => part
            .iter()
            .flat_map(|(name, part)| match whole.get(name) {
                Some(whole) => missing(part, whole),
                None if part.as_object().is_some_and(serde_json::Map::is_empty) => Vec::new(),
                None => vec![name.clone()],
            })
            .collect(),
        (Value::Array(part), Value::Array(whole)) if part.iter().all(Value::is_object) => part
            .iter()
            .flat_map(
                |part| match whole.iter().find(|whole| whole["k"] == part["k"]) {
                    Some(whole) => missing(part, whole),
                    None => vec![part.to_string()],
                },
            )
            .collect(),
        (Value::Array(part), Value::Array(whole)) => part
            .iter()
            .filter(|item| !whole.contains(item))
            .map(ToString::to_string)
            .collect(),
        (part, whole) if part == whole => Vec::new(),
        (part, whole) => vec![format!("{part} is {whole}")],
    }
}

proptest! {
    #[test]
    fn applying_is_idempotent(one in any_spec_of(0), two in any_spec_of(0), first in "one|two") {
        let (mut one, mut two) = (one, two);
        for config in [&mut one, &mut two] {
            config["spec"]["b"] = json!("owned"); // a manager without fields has no entry
        }
        let kind = custom();
        let live = kind.apply(&kind.object(json!({})), &first, one, false).unwrap();
        let live = kind.apply(&live, "two", two.clone(), true).unwrap();
        let again = kind.apply_at(&live, "two", two, false, "2026-11-20T11:00:00Z").unwrap();
        prop_assert_eq!(again, live);
    }

    #[test]
    fn applied_fields_are_in_the_object(one in any_spec(), two in any_spec()) {
        let kind = custom();
        let live = kind.apply(&kind.object(json!({})), "one", one, false).unwrap();
        let live = kind.apply(&live, "two", two.clone(), true).unwrap();
        prop_assert_eq!(missing(&two, &live), Vec::<String>::new());
    }

    #[test]
    fn fields_no_longer_applied_are_removed_unless_others_apply_them(one in any_spec(), two in any_spec()) {
        let kind = custom();
        let alone = kind.apply(&kind.object(json!({})), "one", one.clone(), false).unwrap();
        let both = kind.apply(&alone, "two", two, false);
        prop_assume!(both.is_ok());
        let rest = kind.apply(&both.unwrap(), "two", json!({}), false).unwrap();
        prop_assert_eq!(owned(&rest, "one"), owned(&alone, "one"));
        prop_assert_eq!(missing(&one, &rest), Vec::<String>::new());
        let nothing = kind.apply(&rest, "one", json!({}), false).unwrap();
        prop_assert_eq!(nothing.pointer("/metadata/managedFields"), None);
        let leaves: Vec<&Value> = nothing["spec"].as_object().into_iter().flatten().map(|(_, v)| v).collect();
        prop_assert!(leaves.iter().all(|leaf| leaf.as_object().is_some_and(|map| map.is_empty() || map.values().all(|v| v.as_object().is_some_and(|m| m.is_empty())))
            || leaf.as_array().is_some_and(Vec::is_empty)), "{nothing}");
    }

    #[test]
    fn forcing_takes_over_exactly_the_conflicting_fields(one in any_spec(), two in any_spec()) {
        let kind = custom();
        let live = kind.apply(&kind.object(json!({})), "one", one, false).unwrap();
        let forced = kind.apply(&live, "two", two.clone(), true).unwrap();
        match kind.apply(&live, "two", two, false) {
            Ok(unforced) => prop_assert_eq!(unforced, forced),
            Err(PatchError::Conflicts(conflicts)) => {
                prop_assert!(!conflicts.is_empty());
                let before = Set::read(&owned(&live, "one")).unwrap();
                let after = match owned(&forced, "one") {
                    Value::Null => Set::default(),
                    fields => Set::read(&fields).unwrap(),
                };
                let lost: Vec<String> = before.difference(&after).paths().iter()
                    .map(|path| crate::patch::fields::path_text(path)).collect();
                for conflict in &conflicts {
                    prop_assert!(lost.contains(&conflict.field), "{} is not in {lost:?}", conflict.field);
                }
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn no_apply_panics(live in crate::patch::any_json(), config in crate::patch::any_json(), fields in crate::patch::any_json()) {
        let kind = custom();
        let mut object = kind.object(json!({"spec": live}));
        object["metadata"]["managedFields"] = json!([{"manager": "x", "operation": "Apply", "apiVersion": "example.com/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": fields}}]);
        let _ = kind.apply(&object, "m", json!({"spec": config}), true);
        let _ = kind.apply(&live, "m", config.clone(), false);
        let applier = Applier { manager: "m", force: true, subresource: "", api_version: "example.com/v1", time: "" };
        let _ = apply(&live, &config, applier, &kind);
        let pod = built_in("v1", "Pod");
        let _ = pod.apply(&pod.object(json!({"spec": live})), "m", json!({"spec": {"containers": config}}), true);
    }
}

#[test]
fn a_field_applied_as_empty_is_kept_empty_by_the_first_apply() {
    let kind = custom();
    let full = json!({"f": {"g": {"h": [1]}}, "c": {"x": 1}, "s": ["x"], "b": "y"});
    for (field, empty) in [("f", json!(null)), ("c", json!({})), ("s", json!([]))] {
        let config = json!({"spec": {field: &empty, "b": "y"}});
        let live = kind.object(json!({}));
        let live = kind
            .apply(&live, "a", json!({"spec": full}), false)
            .unwrap();
        let live = kind.apply(&live, "a", config.clone(), false).unwrap();
        assert_eq!(live["spec"], config["spec"]);
        let again = kind.apply_at(&live, "a", config, false, "2027-01-01T00:00:00Z");
        assert_eq!(again.unwrap(), live);
    }
}
