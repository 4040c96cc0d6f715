//! Every kind with two versions, with any object that is valid by its schema, and any part of one.

use std::collections::BTreeMap;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use super::convert;
use crate::conversion::stash::admits;

/// Any part of a value that is valid by the schema: every field may be absent, even required ones.
fn part_of(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    if let Some(values) = &schema.enum_ {
        let values: Vec<_> = values.iter().map(|value| value.0.clone()).collect();
        return proptest::sample::select(values).boxed();
    }
    if schema.x_kubernetes_int_or_string == Some(true) {
        return prop_oneof![(0..9_i32).prop_map(Value::from), Just(json!("25%"))].boxed();
    }
    match schema.type_.as_deref() {
        Some("object") => object(schema),
        Some("array") => {
            let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items else {
                return Just(json!([])).boxed();
            };
            let most = schema
                .max_items
                .map_or(2, |most| usize::try_from(most).unwrap());
            let items = proptest::collection::vec(part_of(items), 0..=most.min(2));
            let is_set = schema.x_kubernetes_list_type.as_deref() == Some("set");
            let unique = move |mut items: Vec<Value>| {
                if is_set {
                    items.dedup();
                }
                Value::from(items)
            };
            items.prop_map(unique).boxed()
        }
        Some("string") => text(schema),
        Some("integer" | "number") => {
            let numbers = (0..4_i32).chain([100]).map(Value::from);
            valid(schema, numbers.collect())
        }
        Some("boolean") => any::<bool>().prop_map(Value::from).boxed(),
        // A value of any kind.
        _ => prop_oneof![Just(json!("a")), Just(json!({"b": []})), Just(json!(1))].boxed(),
    }
}

fn object(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
        return proptest::collection::btree_map("[ab/.]{1,2}", part_of(values), 0..3)
            .prop_map(|map| json!(map))
            .boxed();
    }
    let Some(properties) = &schema.properties else {
        return Just(json!({})).boxed();
    };
    let names: Vec<_> = properties.keys().cloned().collect();
    // Few fields at once, so that deep objects stay small.
    let weight = (4.0 / names.len() as f64).clamp(0.1, 0.7);
    let values: Vec<_> = properties
        .values()
        .map(|schema| proptest::option::weighted(weight, part_of(schema)))
        .collect();
    let most = schema.max_properties.unwrap_or(i64::MAX);
    let build = move |values: Vec<Option<Value>>| {
        let set = names.iter().cloned().zip(values);
        let set: BTreeMap<_, _> = set
            .filter_map(|(name, value)| Some((name, value?)))
            .take(usize::try_from(most).unwrap())
            .collect();
        json!(set)
    };
    values.prop_map(build).boxed()
}

fn text(schema: &JSONSchemaProps) -> BoxedStrategy<Value> {
    let about = schema.description.as_deref().unwrap_or_default();
    let texts: &[&str] = if about.contains("A duration such as") {
        &["10m", "1h0m0s", "1.5s", "0", "99999999h"]
    } else if schema.format.as_deref() == Some("date-time") {
        &["2026-01-01T00:00:00Z"]
    } else {
        &[
            "", "a", "b", "x/y", "Ready", "a,b", "True", "v1.34.0", "[1-2]",
        ]
    };
    valid(schema, texts.iter().map(|text| json!(text)).collect())
}

/// The values that the schema admits; any of them if it admits none.
fn valid(schema: &JSONSchemaProps, values: Vec<Value>) -> BoxedStrategy<Value> {
    let admitted: Vec<Value> = values
        .iter()
        .filter(|it| admits(schema, it))
        .cloned()
        .collect();
    let chosen = if admitted.is_empty() {
        values
    } else {
        admitted
    };
    proptest::sample::select(chosen).boxed()
}

/// The object as converted for server-side apply after it removed fields: `null` for what lost its last member.
fn emptied(value: &Value) -> Value {
    match value {
        Value::Object(fields) if fields.is_empty() => Value::Null,
        Value::Array(items) if items.is_empty() => Value::Null,
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), emptied(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        Value::Array(items) => items.iter().map(emptied).collect(),
        plain => plain.clone(),
    }
}

/// The versions of each kind that has several, with their schemas.
fn kinds() -> BTreeMap<(String, String), Vec<(String, JSONSchemaProps)>> {
    let mut kinds: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for crd in &crate::crds::known() {
        for version in &crd.spec.versions {
            let schema = version.schema.as_ref();
            let schema = schema.and_then(|s| s.open_api_v3_schema.clone());
            let kind = (crd.spec.group.clone(), crd.spec.names.kind.clone());
            let versions = kinds.entry(kind).or_default();
            versions.push((version.name.clone(), schema.unwrap_or_default()));
        }
    }
    kinds.retain(|_, versions| versions.len() > 1);
    kinds
}

/// A version of a kind, and another version of it.
#[derive(Debug)]
struct Direction {
    group: String,
    kind: String,
    version: String,
    schema: JSONSchemaProps,
    other: String,
    schema_of_other: JSONSchemaProps,
}

impl Direction {
    /// Objects of the version, with any part of spec and status.
    fn objects(&self) -> BoxedStrategy<Value> {
        let properties = self.schema.properties.clone().unwrap_or_default();
        let part = |name: &str| match properties.get(name) {
            Some(schema) => proptest::option::weighted(0.9, part_of(schema)).boxed(),
            None => Just(None).boxed(),
        };
        let (this, kind) = (self.this(), self.kind.clone());
        let build = move |(spec, status): (Option<Value>, Option<Value>)| {
            let mut object = json!({"apiVersion": this, "kind": kind, "metadata": {"name": "x"}});
            for (name, value) in [("spec", spec), ("status", status)] {
                if let Some(value) = value {
                    object[name] = value;
                }
            }
            object
        };
        (part("spec"), part("status")).prop_map(build).boxed()
    }

    fn this(&self) -> String {
        format!("{}/{}", self.group, self.version)
    }

    fn that(&self) -> String {
        format!("{}/{}", self.group, self.other)
    }

    /// True if an API server accepts the spec in the other version, complete or not.
    fn is_accepted(&self, object: &Value) -> bool {
        let properties = self.schema_of_other.properties.as_ref();
        let spec = properties.and_then(|all| all.get("spec"));
        spec.zip(object.get("spec"))
            .is_none_or(|(schema, spec)| admits(schema, spec))
    }
}

/// All directions of all kinds.
fn directions() -> impl Iterator<Item = Direction> {
    kinds().into_iter().flat_map(|((group, kind), versions)| {
        let of = |(version, schema): &(String, JSONSchemaProps)| {
            let others = versions.iter().filter(|(name, _)| name != version);
            let direction = |(other, schema_of_other): &(String, JSONSchemaProps)| Direction {
                group: group.clone(),
                kind: kind.clone(),
                version: version.clone(),
                schema: schema.clone(),
                other: other.clone(),
                schema_of_other: schema_of_other.clone(),
            };
            others.map(direction).collect::<Vec<_>>()
        };
        versions.iter().flat_map(of).collect::<Vec<_>>()
    })
}

/// Tries `property` on objects of each direction: on as many as `PROPTEST_CASES` says, else on a few.
fn in_each_direction(property: impl Fn(&Direction, Value, usize) -> Result<(), TestCaseError>) {
    let cases = std::env::var("PROPTEST_CASES").map_or(12, |it| it.parse().unwrap());
    for direction in directions() {
        let config = ProptestConfig {
            cases,
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let strategy = (direction.objects(), 0..60_usize);
        let tried = TestRunner::new(config).run(&strategy, |(object, choice)| {
            property(&direction, object, choice)
        });
        let Direction {
            kind,
            version,
            other,
            ..
        } = &direction;
        assert!(
            tried.is_ok(),
            "{kind}, {version} to {other}: {}",
            tried.unwrap_err()
        );
    }
}

/// Takes one field or element out of `value`, or turns a list around: which one, `choice` says.
fn edit(value: &mut Value, choice: &mut usize) -> bool {
    let count = match value {
        Value::Object(fields) => fields.len(),
        Value::Array(items) => items.len(),
        _ => 0,
    };
    if *choice < count {
        match value {
            Value::Object(fields) => {
                let name = fields.keys().nth(*choice).cloned().unwrap();
                fields.remove(&name);
            }
            Value::Array(items) if choice.is_multiple_of(2) => items.reverse(),
            Value::Array(items) => drop(items.remove(*choice)),
            _ => unreachable!(),
        }
        return true;
    }
    *choice -= count;
    match value {
        Value::Object(fields) => fields.values_mut().any(|inner| edit(inner, choice)),
        Value::Array(items) => items.iter_mut().any(|inner| edit(inner, choice)),
        _ => false,
    }
}

/// Makes each `availabilityZone` one that the API server accepts, with the default of `from`: an edit may have removed half of it.
fn stored(value: &mut Value) {
    let inner = match value {
        Value::Object(fields) => {
            if let Some(Value::Object(zone)) = fields.get_mut("availabilityZone") {
                let from = if zone.contains_key("name") {
                    "Name"
                } else {
                    "Machine"
                };
                zone.insert("from".to_owned(), json!(from));
            }
            fields.values_mut().collect::<Vec<_>>()
        }
        Value::Array(items) => items.iter_mut().collect(),
        _ => Vec::new(),
    };
    inner.into_iter().for_each(stored);
}

#[test]
fn any_part_of_any_object_is_converted_and_its_spec_comes_back() {
    in_each_direction(|direction, object, _| {
        let (version, other) = (direction.this(), direction.that());
        let there = convert(object.clone(), &other);
        prop_assert!(there.is_ok(), "{}: {:?}", object, there);
        let there = there.unwrap();
        prop_assert_eq!(&there["apiVersion"], &json!(other));
        let back = convert(there, &version).unwrap();
        prop_assert_eq!(back.get("spec"), object.get("spec"));
        if [version, other].iter().all(|name| name.contains("beta")) {
            prop_assert_eq!(back.get("status").is_some(), object.get("status").is_some());
        }
        Ok(())
    });
}

#[test]
fn an_edit_in_the_other_version_wins() {
    in_each_direction(|direction, object, mut choice| {
        let (version, other) = (direction.this(), direction.that());
        let mut there = convert(object, &other).unwrap();
        if !there["spec"].is_null() {
            edit(&mut there["spec"], &mut choice);
            stored(&mut there["spec"]);
        }
        // An older version may have values that a later one refuses: the edit is refused, too.
        if !direction.is_accepted(&there) {
            return Ok(());
        }
        let back = convert(there.clone(), &version).unwrap();
        let again = convert(back, &other).unwrap();
        prop_assert_eq!(again.get("spec"), there.get("spec"));
        Ok(())
    });
}

#[test]
fn what_server_side_apply_leaves_of_an_object_is_converted() {
    in_each_direction(|direction, object, _| {
        let there = convert(emptied(&object), &direction.that());
        prop_assert!(there.is_ok(), "{}: {:?}", emptied(&object), there);
        prop_assert!(convert(there.unwrap(), &direction.this()).is_ok());
        Ok(())
    });
}
