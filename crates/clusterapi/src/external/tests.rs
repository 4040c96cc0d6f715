use std::collections::BTreeMap;

use api::core::v1beta2::ContractReference;
use api::k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use api::kube::api::TypeMeta;
use serde_json::{Value, json};

use super::template::adoption;
use super::*;
use crate::inplace::{MACHINE_SET_METADATA, Wanted};
use api::names::SET_NAME_LABEL;

fn object(data: Value) -> DynamicObject {
    let types = TypeMeta {
        api_version: "g.io/v1beta2".to_owned(),
        kind: "KTemplate".to_owned(),
    };
    DynamicObject {
        types: Some(types),
        metadata: ObjectMeta::default(),
        data,
    }
}

fn crd(labels: &[(&str, &str)]) -> CustomResourceDefinition {
    let mut crd = CustomResourceDefinition::default();
    let pairs = labels
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    crd.metadata.labels = Some(pairs.collect());
    crd
}

fn owner(kind: &str, name: &str, uid: &str, controller: bool) -> OwnerReference {
    OwnerReference {
        api_version: "cluster.x-k8s.io/v1beta2".to_owned(),
        kind: kind.to_owned(),
        name: name.to_owned(),
        uid: uid.to_owned(),
        controller: controller.then_some(true),
        block_owner_deletion: None,
    }
}

#[test]
fn the_contract_label_names_the_version() {
    type Case<'a> = (&'a [(&'a str, &'a str)], Option<(&'a str, Contract)>);
    let cases: [Case<'_>; 5] = [
        (&[], None),
        (
            &[("cluster.x-k8s.io/v1beta1", "v1beta1")],
            Some(("v1beta1", Contract::V1Beta1)),
        ),
        (
            &[
                ("cluster.x-k8s.io/v1beta1", "v1beta1"),
                ("cluster.x-k8s.io/v1beta2", "v1beta2"),
            ],
            Some(("v1beta2", Contract::V1Beta2)),
        ),
        (
            &[("cluster.x-k8s.io/v1beta2", "v1_v2")],
            Some(("v2", Contract::V1Beta2)),
        ),
        (&[("cluster.x-k8s.io/v1beta2", "")], None),
    ];
    for (labels, expected) in cases {
        let found = contract::version_of(&crd(labels));
        let found = found
            .as_ref()
            .map(|(version, contract)| (version.as_str(), *contract));
        assert_eq!(found, expected);
    }
}

#[test]
fn each_contract_has_its_own_words_for_ready() {
    let old = object(json!({ "status": { "ready": true } }));
    let new = object(json!({ "status": { "initialization": { "provisioned": true } } }));
    assert!(contract::provisioned(&old, Contract::V1Beta1));
    assert!(!contract::provisioned(&old, Contract::V1Beta2));
    assert!(contract::provisioned(&new, Contract::V1Beta2));
    assert!(!contract::provisioned(&new, Contract::V1Beta1));
}

#[test]
fn failure_domains_are_read_from_either_form() {
    let list = json!({ "status": { "failureDomains": [
        { "name": "b", "controlPlane": true }, { "name": "a" }, { "odd": 1 },
    ]}});
    let map = json!({ "status": { "failureDomains": { "b": { "controlPlane": true }, "a": {} } } });
    let (list, map) = (object(list), object(map));
    assert_eq!(
        contract::failure_domains(&list),
        contract::failure_domains(&map)
    );
    assert_eq!(contract::failure_domains(&list)[0].name, "a");
}

#[test]
fn a_clone_carries_its_origin_and_its_cluster() {
    let template = object(json!({ "spec": { "template": {
        "metadata": { "labels": { "a": "1", "b": "1" }, "annotations": { "c": "1" } },
        "spec": { "flavor": "small" },
    }}}));
    let reference = ContractReference::new("g.io", "KTemplate", "t");
    let request = CloneRequest {
        template: &reference,
        namespace: "default",
        name: "x",
        cluster_name: "demo",
        owner: Some(owner("MachineSet", "ms", "1", true)),
        metadata: Wanted {
            labels: [
                ("b".to_owned(), "2".to_owned()),
                (SET_NAME_LABEL.to_owned(), "ms".to_owned()),
            ]
            .into(),
            annotations: [("d".to_owned(), "1".to_owned())].into(),
        },
        manager: &MACHINE_SET_METADATA,
    };
    let clone = instance_of(&template, &request).unwrap();
    assert_eq!(clone.types.as_ref().unwrap().kind, "K");
    assert_eq!(clone.data, json!({ "spec": { "flavor": "small" } }));
    assert_eq!(
        (clone.labels()["a"].as_str(), clone.labels()["b"].as_str()),
        ("1", "1"),
        "what may leave the object is applied later"
    );
    assert!(!clone.annotations().contains_key("d"));
    assert_eq!(clone.labels()[SET_NAME_LABEL], "ms");
    assert_eq!(clone.labels()["cluster.x-k8s.io/cluster-name"], "demo");
    assert_eq!(
        clone.annotations()["cluster.x-k8s.io/cloned-from-name"],
        "t"
    );
    assert_eq!(
        clone.annotations()["cluster.x-k8s.io/cloned-from-groupkind"],
        "KTemplate.g.io"
    );
    let error = instance_of(&object(json!({})), &request).unwrap_err();
    assert_eq!(
        error.to_string(),
        "KTemplate t cannot be cloned: it has no spec.template"
    );
}

#[test]
fn a_machine_takes_the_place_of_the_set_that_made_its_objects() {
    let (set, machine) = (
        owner("MachineSet", "ms", "1", true),
        owner("Machine", "m", "2", true),
    );
    let other = owner("Other", "o", "3", false);
    let metadata = ObjectMeta {
        owner_references: Some(vec![other.clone(), set]),
        ..ObjectMeta::default()
    };
    let patch = adoption(&metadata, &machine, &BTreeMap::new()).unwrap();
    assert_eq!(
        patch["metadata"]["ownerReferences"],
        json!([other, machine])
    );
    let metadata = ObjectMeta {
        owner_references: Some(vec![other, machine.clone()]),
        ..ObjectMeta::default()
    };
    assert_eq!(adoption(&metadata, &machine, &BTreeMap::new()), None);
    // A plain owner replaces no other owner, except for an outdated reference to itself (after a move).
    let cluster = owner("Cluster", "demo", "5", false);
    let metadata = ObjectMeta {
        owner_references: Some(vec![owner("Cluster", "demo", "4", false), machine.clone()]),
        ..ObjectMeta::default()
    };
    let patch = adoption(&metadata, &cluster, &BTreeMap::new()).unwrap();
    assert_eq!(
        patch["metadata"]["ownerReferences"],
        json!([machine, cluster])
    );
}
