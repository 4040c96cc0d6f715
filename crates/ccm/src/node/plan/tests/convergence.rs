//! A Node follows its server after each change, also when only one of the two requests was sent: status, and then
//! labels, providerID and taints.

use std::collections::BTreeSet;

use converging::System;
use operator::patch::diff;
use proptest::sample::{select, subsequence};

use super::*;

/// Node as stored by the API server, and its server.
#[derive(Clone, Debug)]
struct Scene {
    node: Value,
    instance: Instance,
    controllers: Controllers,
}

/// A merge patch, as [`operator::patch`] sends it.
#[derive(Debug)]
enum Step {
    Status(Value),
    Object(Value),
}

impl Scene {
    fn node(&self) -> Node {
        serde_json::from_value(self.node.clone()).unwrap()
    }

    fn wanted(&self) -> (Node, Option<String>) {
        wanted(&self.node(), &self.instance, self.controllers)
    }
}

impl System for Scene {
    type Step = Step;
    type State = Value;

    fn plan(&self) -> Vec<Step> {
        let split = |node: &Node| {
            let mut object = json!(node);
            let status = object.as_object_mut().unwrap().remove("status");
            (object, status.unwrap_or(json!({})))
        };
        let (before, after) = (split(&self.node()), split(&self.wanted().0));
        let status = diff(&before.1, &after.1).map(Step::Status);
        let object = diff(&before.0, &after.0).map(Step::Object);
        status.into_iter().chain(object).collect()
    }

    fn take(&mut self, step: Step) {
        let before = self.node();
        match step {
            Step::Status(patch) => merge(&mut self.node["status"], &patch),
            Step::Object(patch) => merge(&mut self.node, &patch),
        }
        stored(&mut self.node);
        validate(&before, &self.node());
    }

    fn state(&self) -> Value {
        self.node.clone()
    }
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        match value.is_null() {
            true => drop(target.as_object_mut().unwrap().remove(name)),
            false => merge(&mut target[name], value),
        }
    }
}

/// Empty lists and maps are not stored.
fn stored(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.values_mut().for_each(stored);
        let is_empty = |value: &Value| match value {
            Value::Null => true,
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        fields.retain(|_, value| !is_empty(value));
    }
}

/// Rejects what the validation of Nodes rejects (`ValidateNodeUpdate`).
fn validate(before: &Node, after: &Node) {
    let id = provider_id(before);
    assert!(id.is_none() || id == provider_id(after), "providerID");
    let mut pairs = BTreeSet::new();
    for taint in taints_of(after) {
        assert!(
            pairs.insert((taint.key.clone(), taint.effect.clone())),
            "a second {taint:?}"
        );
    }
    let mut known = BTreeSet::new();
    for address in addresses_of(after) {
        let pair = (address.type_.clone(), address.address.clone());
        assert!(known.insert(pair), "a second {address:?}");
    }
    let mut labels = after.labels().values();
    assert!(labels.all(|value| value.is_empty() || is_label(value)));
}

fn taints_of(node: &Node) -> Vec<Taint> {
    let spec = node.spec.clone().unwrap_or_default();
    spec.taints.unwrap_or_default()
}

fn addresses_of(node: &Node) -> Vec<NodeAddress> {
    let status = node.status.clone().unwrap_or_default();
    status.addresses.unwrap_or_default()
}

const ADDRESSES: [(&str, &str); 7] = [
    ("InternalIP", "10.0.0.5"),
    ("InternalIP", "10.0.0.6"),
    ("InternalIP", "2001:db8::5"),
    ("ExternalIP", "203.0.113.5"),
    ("ExternalIP", "10.0.0.5"),
    ("Hostname", "n"),
    ("Hostname", "n.example.net"),
];

fn addresses() -> impl Strategy<Value = Vec<NodeAddress>> {
    let all = ADDRESSES.map(|(type_, address)| NodeAddress {
        type_: type_.to_owned(),
        address: address.to_owned(),
    });
    subsequence(all.to_vec(), 0..=all.len()).prop_shuffle()
}

prop_compose! {
    fn server()(
        status in select(vec!["ACTIVE", "SHUTOFF", "PAUSED", "BUILD"]),
        addresses in addresses(),
        problem in proptest::option::weighted(0.1, Just("no address".to_owned())),
        instance_type in select(vec!["", "m1.small", "m1.large"]),
        zone in select(vec!["", "az1", "az2"]),
        region in select(vec!["", "R"]),
    ) -> Instance {
        Instance {
            provider_id: "openstack:///s".to_owned(),
            status: status.to_owned(),
            addresses,
            address_problem: problem,
            instance_type: instance_type.to_owned(),
            zone: zone.to_owned(),
            region: region.to_owned(),
        }
    }
}

prop_compose! {
    /// Node as registered by a kubelet, or as left by an interrupted manager, another manager, or a person.
    fn any_node()(
        taints in subsequence(vec![
            (UNINITIALIZED, "NoSchedule"), (UNINITIALIZED, "NoExecute"), (SHUTDOWN, "NoSchedule"),
            (SHUTDOWN, "NoExecute"), ("mine", "NoSchedule"),
        ], 0..=5),
        labels in proptest::collection::btree_map(
            select([&INSTANCE_TYPE[..], &ZONE, &REGION, &["mine"]].concat()), select(vec!["", "by-hand", "az1"]), 0..5),
        provider_id in select(vec![None, Some(""), Some("openstack:///s"), Some("openstack://R/other")]),
        addresses in addresses(),
        provided in select(vec![
            None, Some(""), Some("10.0.0.5"), Some("2001:db8::5, 10.0.0.5"), Some("10.0.0.5,10.0.0.5"), Some("10.0.0.77"),
        ]),
    ) -> Value {
        let taints: Vec<_> = taints.iter().map(|(key, effect)| json!({"key": key, "effect": effect})).collect();
        let annotations = provided.map(|ip| json!({PROVIDED_NODE_IP: ip}));
        let mut node = json!({
            "metadata": {"name": "n", "labels": labels, "annotations": annotations},
            "spec": {"taints": taints, "providerID": provider_id},
            "status": {"addresses": addresses},
        });
        stored(&mut node);
        node
    }
}

fn set_ready(node: &mut Value, ready: Option<&str>) {
    node["status"]["conditions"] = match ready {
        Some(status) => json!([{"type": "Ready", "status": status}]),
        None => json!([]),
    };
    stored(node);
}

fn readiness() -> impl Strategy<Value = Option<&'static str>> {
    select(vec![None, Some("True"), Some("False"), Some("Unknown")])
}

/// The Node follows its server, and settings of others are kept.
fn check_end(before: &Scene, end: &Scene) {
    let (was, node) = (before.node(), end.node());
    let has = |node: &Node, key: &str| taints_of(node).iter().any(|taint| taint.key == key);
    let is_initialised = end.controllers.node && end.wanted().1.is_none();
    assert_eq!(
        has(&node, UNINITIALIZED),
        has(&was, UNINITIALIZED) && !is_initialised
    );
    assert_eq!(has(&node, "mine"), has(&was, "mine"));
    assert_eq!(node.labels().get("mine"), was.labels().get("mine"));
    if is_initialised {
        let id = provider_id(&was).unwrap_or("openstack:///s");
        assert_eq!(provider_id(&node), Some(id));
        for names in [INSTANCE_TYPE, ZONE, REGION] {
            let [new, old] = names.map(|name| node.labels().get(name));
            let unknown = match names {
                INSTANCE_TYPE => end.instance.instance_type.is_empty(),
                ZONE => end.instance.zone.is_empty(),
                _ => end.instance.region.is_empty(),
            };
            assert!(unknown || new.is_some() && new == old, "{new:?} {old:?}");
        }
    }
    if end.controllers.node_lifecycle {
        let is_off = end.instance.status == "SHUTOFF" || has(&was, SHUTDOWN);
        assert_eq!(has(&node, SHUTDOWN), is_off && !is_ready(&node));
    }
}

proptest! {
    #[test]
    fn from_any_node_and_each_cut_a_node_comes_to_be_what_its_server_says(
        node in any_node(),
        (first, second) in (server(), server()),
        (before, after) in (readiness(), readiness()),
        (node_controller, node_lifecycle) in any::<(bool, bool)>(),
    ) {
        let controllers = Controllers { node: node_controller, node_lifecycle, ..Controllers::ALL };
        let mut scene = Scene { node, instance: first, controllers };
        set_ready(&mut scene.node, before);
        let mut next = converging::check(&scene);
        check_end(&scene, &next);
        // The server and the state of the kubelet change.
        next.instance = second;
        set_ready(&mut next.node, after);
        check_end(&next, &converging::check(&next));
    }
}
