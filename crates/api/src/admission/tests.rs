use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Review, default_object, validate};

const RULES: &str = include_str!("testdata/rules.yaml");

#[derive(Deserialize)]
struct Table {
    bases: Map<String, Value>,
    rules: Vec<Rule>,
}

#[derive(Deserialize)]
struct Rule {
    kind: String,
    breaks: Value,
    path: String,
    also: Option<Value>,
}

/// Each rule with a valid object and one that breaks it.
fn each() -> Vec<(Rule, Value, Value)> {
    let Table { bases, rules } = serde_saphyr::from_str(RULES).unwrap();
    let with_objects = |rule: Rule| {
        let valid = bases[&rule.kind].clone();
        let broken = patched(&valid, &rule.breaks);
        (rule, valid, broken)
    };
    rules.into_iter().map(with_objects).collect()
}

fn patched(object: &Value, patch: &Value) -> Value {
    let mut object = object.clone();
    merge(&mut object, patch);
    object
}

/// Applies a JSON merge patch (RFC 7386).
pub(crate) fn merge(into: &mut Value, patch: &Value) {
    let Value::Object(members) = patch else {
        *into = patch.clone();
        return;
    };
    if !into.is_object() {
        *into = json!({});
    }
    for (name, value) in members {
        if value.is_null() {
            into.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut into[name], value);
        }
    }
}

/// The paths of the errors of a write, validated after defaulting, as by the API server.
fn problems(object: &Value, old: Option<&Value>) -> Vec<String> {
    let mut object = object.clone();
    default_object(&mut object, old);
    paths(&object, old)
}

/// The paths of the errors of a write that has its defaults.
pub(crate) fn paths(object: &Value, old: Option<&Value>) -> Vec<String> {
    let review = Review {
        object,
        old,
        dry_run: false,
    };
    let errors = validate(review).err().unwrap_or_default();
    errors.into_iter().map(|error| error.path).collect()
}

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn the_table_has_rules_of_every_kind() {
    let kinds: BTreeSet<_> = each().into_iter().map(|(rule, ..)| rule.kind).collect();
    let ours = crate::crds::all().into_iter();
    let ours: BTreeSet<_> = ours.map(|definition| definition.spec.names.kind).collect();
    let without = ours.difference(&kinds).collect::<Vec<_>>();
    // Beyond their schemas, the first two have rules for changes only, and the last two have none.
    let expected = [
        "ClusterResourceSetBinding",
        "IPAddressClaim",
        "OpenStackClusterIdentity",
        "OpenStackOperation",
    ];
    assert_eq!(without, expected.each_ref());
}

#[test]
fn each_rule_rejects_a_new_object_that_breaks_it() {
    for (rule, valid, broken) in each() {
        assert_eq!(problems(&valid, None), none(), "{valid}");
        assert!(
            problems(&broken, None).contains(&rule.path),
            "{broken}: {:?}",
            problems(&broken, None)
        );
    }
}

#[test]
fn each_rule_rejects_an_update_that_breaks_it() {
    for (rule, valid, broken) in each() {
        if rule.path != "metadata.name" {
            let found = problems(&broken, Some(&valid));
            assert!(!found.is_empty(), "{broken}");
        }
    }
}

#[test]
fn metadata_and_status_of_an_invalid_object_can_be_written() {
    for (_, _, broken) in each() {
        let labelled = patched(&broken, &json!({"metadata": {"labels": {"a": "b"}}}));
        assert_eq!(problems(&labelled, Some(&broken)), none(), "{broken}");
        let held = patched(&broken, &json!({"metadata": {"finalizers": ["a/b"]}}));
        assert_eq!(problems(&broken, Some(&held)), none(), "{broken}");
        let reported = patched(&broken, &json!({"status": {"conditions": []}}));
        assert_eq!(problems(&reported, Some(&broken)), none(), "{broken}");
    }
}

#[test]
fn an_invalid_object_that_is_being_deleted_can_be_written() {
    for (rule, valid, broken) in each() {
        let deletion = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}});
        let (valid, held) = (patched(&valid, &deletion), patched(&broken, &deletion));
        let freed = patched(&held, &json!({"metadata": {"finalizers": null}}));
        assert_eq!(problems(&freed, Some(&held)), none(), "{broken}");
        // Rules no longer apply, unless controllers could not decode the object to finalize it.
        let undecodable = super::decode::problem(&held).map(|error| error.path);
        let found = problems(&held, Some(&valid));
        assert_eq!(found, Vec::from_iter(undecodable), "{}", rule.path);
    }
}

#[test]
fn a_rule_does_not_block_other_changes_of_an_older_object() {
    for (rule, _, broken) in each() {
        let Some(also) = rule.also else { continue };
        let changed = patched(&broken, &json!({"spec": also}));
        assert_ne!(changed, broken);
        assert_eq!(problems(&changed, Some(&broken)), none(), "{broken}");
    }
}

#[test]
fn what_breaks_a_rule_in_another_way_than_before_is_rejected() {
    let rules = each();
    let found = |path: &str| rules.iter().find(|(rule, ..)| rule.path == path).unwrap();
    let (_, _, plane) = rules
        .iter()
        .find(|(rule, ..)| {
            rule.kind == "KubeadmControlPlane" && rule.breaks["spec"]["replicas"] == 2
        })
        .unwrap();
    let four = patched(plane, &json!({"spec": {"replicas": 4}}));
    assert_eq!(problems(&four, Some(plane)), ["spec.replicas"]);
    let (_, _, files) = found("spec.files[0]");
    let mut more = files.clone();
    let list = more["spec"]["files"].as_array_mut().unwrap();
    list.insert(0, json!({"path": "/z"}));
    assert_eq!(problems(&more, Some(files)), none(), "the entry moved");
    more["spec"]["files"][0] = patched(&files["spec"]["files"][0], &json!({"path": "/y"}));
    assert_eq!(problems(&more, Some(files)), ["spec.files[0]"]);
}

#[test]
fn an_object_that_cannot_be_decoded_can_be_repaired() {
    for (rule, valid, broken) in each() {
        if super::decode::problem(&broken).is_some() {
            assert_eq!(problems(&valid, Some(&broken)), none(), "{}", rule.path);
        }
    }
}

#[test]
fn a_number_out_of_range_is_rejected_with_the_range() {
    let (_, _, broken) = each()
        .into_iter()
        .find(|(rule, ..)| rule.path == "spec.rootVolume.sizeGiB")
        .unwrap();
    let review = Review {
        object: &broken,
        old: None,
        dry_run: false,
    };
    let errors = validate(review).unwrap_err();
    let expected = "spec.rootVolume.sizeGiB: invalid value: integer `99999999999`, \
                    expected an integer from -2147483648 to 2147483647";
    assert_eq!(errors[0].to_string(), expected);
}
