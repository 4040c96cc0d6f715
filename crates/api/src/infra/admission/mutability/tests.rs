use serde_json::{Value, json};

use crate::admission::{Review, validate};

const TWO: &str = "infrastructure.cluster.x-k8s.io/v1beta2";

fn object(kind: &str, spec: &Value) -> Value {
    json!({"apiVersion": TWO, "kind": kind, "metadata": {"name": "x"}, "spec": spec})
}

/// Paths of the errors when a spec changes.
fn changing(kind: &str, before: &Value, after: &Value) -> Vec<String> {
    let review = Review {
        object: &object(kind, after),
        old: Some(&object(kind, before)),
        dry_run: false,
    };
    match validate(review) {
        Ok(()) => Vec::new(),
        Err(errors) => errors.into_iter().map(|error| error.path).collect(),
    }
}

fn machine(fields: Value) -> Value {
    let mut spec = json!({"flavor": {"id": "f"}, "image": {"id": "i"}});
    for (name, value) in fields.as_object().unwrap() {
        spec[name] = value.clone();
    }
    spec
}

fn cluster(fields: Value) -> Value {
    let mut spec = json!({"identityRef": {"name": "s", "cloudName": "c"}});
    for (name, value) in fields.as_object().unwrap() {
        spec[name] = value.clone();
    }
    spec
}

#[test]
fn a_value_that_means_the_same_as_none_is_no_change() {
    let machines = [
        (json!({"trunk": false}), json!({})),
        (json!({"configDrive": false}), json!({})),
        (json!({"sshKeyName": ""}), json!({})),
        (
            json!({"serverMetadata": [{"key": "role", "value": ""}]}),
            json!({"serverMetadata": [{"key": "role"}]}),
        ),
        (
            json!({"ports": [{"trunk": false, "adminStateUp": true, "description": "",
                "profile": {"trustedVF": false, "ovsHWOffload": false}}]}),
            json!({"ports": [{}]}),
        ),
        (
            json!({"trunk": true, "ports": [{"trunk": true}]}),
            json!({"trunk": true, "ports": [{}]}),
        ),
    ];
    let clusters = [
        (
            json!({"apiServer": {"port": 0, "fixedIP": "", "floatingIP": ""}}),
            json!({}),
        ),
        (json!({"apiServer": {"enableFloatingIP": true}}), json!({})),
        (json!({"enableExternalNetwork": true}), json!({})),
        (json!({"managedNetwork": {"mtu": 0}}), json!({})),
        (
            json!({"network": {"filter": {"name": "n", "description": ""}}}),
            json!({"network": {"filter": {"name": "n"}}}),
        ),
    ];
    let machines = machines.map(|(a, b)| ("OpenStackMachine", machine(a), machine(b)));
    let clusters = clusters.map(|(a, b)| ("OpenStackCluster", cluster(a), cluster(b)));
    for (kind, one, other) in machines.into_iter().chain(clusters) {
        assert_eq!(
            changing(kind, &one, &other),
            Vec::<String>::new(),
            "{one} -> {other}"
        );
        assert_eq!(
            changing(kind, &other, &one),
            Vec::<String>::new(),
            "{other} -> {one}"
        );
    }
}

#[test]
fn a_value_that_means_something_else_than_none_is_a_change() {
    let machines = [
        (json!({"trunk": true}), json!({}), "spec.trunk"),
        (
            json!({"trunk": true, "ports": [{"trunk": false}]}),
            json!({"trunk": true, "ports": [{}]}),
            "spec.ports[0].trunk",
        ),
        (
            json!({"ports": [{"adminStateUp": false}]}),
            json!({"ports": [{}]}),
            "spec.ports[0].adminStateUp",
        ),
        (
            json!({"ports": [{"enablePortSecurity": false}]}),
            json!({"ports": [{}]}),
            "spec.ports[0].enablePortSecurity",
        ),
    ];
    let clusters = [
        (
            json!({"apiServer": {"enableFloatingIP": false}}),
            json!({}),
            "spec.apiServer.enableFloatingIP",
        ),
        (
            json!({"apiServer": {"managedLoadBalancer": {"enabled": true}}}),
            json!({}),
            "spec.apiServer.managedLoadBalancer.enabled",
        ),
        (
            json!({"managedNetwork": {"enablePortSecurity": false}}),
            json!({}),
            "spec.managedNetwork.enablePortSecurity",
        ),
    ];
    let machines = machines.map(|(a, b, path)| ("OpenStackMachine", machine(a), machine(b), path));
    let clusters = clusters.map(|(a, b, path)| ("OpenStackCluster", cluster(a), cluster(b), path));
    for (kind, one, other, path) in machines.into_iter().chain(clusters) {
        assert_eq!(changing(kind, &one, &other), [path], "{one} -> {other}");
        assert_eq!(changing(kind, &other, &one), [path], "{other} -> {one}");
    }
}

#[test]
fn empty_texts_and_zero_are_accepted_where_a_value_is_optional() {
    let rule =
        json!({"name": "n", "direction": "ingress", "remoteIPPrefix": "", "remoteGroupID": "g"});
    let accepted = [
        (
            "OpenStackCluster",
            cluster(json!({"apiServer": {"port": 0, "fixedIP": "", "floatingIP": ""}})),
        ),
        (
            "OpenStackCluster",
            cluster(
                json!({"managedRouter": {"externalIPs": [{"fixedIP": "", "subnet": {"id": "s"}}]}}),
            ),
        ),
        (
            "OpenStackCluster",
            cluster(json!({"managedSecurityGroups": {"workerNodesSecurityGroupRules": [rule]}})),
        ),
        (
            "OpenStackMachine",
            machine(json!({"ports": [{"fixedIPs": [{"ipAddress": ""}], "nameSuffix": ""}]})),
        ),
    ];
    for (kind, spec) in accepted {
        let review = Review {
            object: &object(kind, &spec),
            old: None,
            dry_run: false,
        };
        assert_eq!(validate(review), Ok(()), "{spec}");
    }
}

/// Defaults in the schema of a spec: path of the object, field and value.
fn defaults(schema: &Value, path: &str, found: &mut Vec<(String, String, Value)>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        if let Some(default) = property.get("default") {
            found.push((path.to_owned(), name.clone(), default.clone()));
        }
        defaults(property, &super::below(path, name), found);
    }
    if let Some(items) = schema.get("items") {
        defaults(items, &format!("{path}[]"), found);
    }
}

#[test]
fn defaults_that_an_old_object_lacks_change_no_field() {
    const SPEC: &str = "/schema/openAPIV3Schema/properties/spec";
    let mut tried = 0;
    for crd in crate::crds::all() {
        let kind = crd.spec.names.kind.as_str();
        let spec = match kind {
            "OpenStackCluster" | "OpenStackMachine" => SPEC.to_owned(),
            "OpenStackClusterTemplate" | "OpenStackMachineTemplate" => {
                format!("{SPEC}/properties/template/properties/spec")
            }
            _ => continue,
        };
        let mut versions = crd.spec.versions.iter();
        let version = versions.find(|version| version.name == "v1beta2");
        let version = serde_json::to_value(version).unwrap();
        let mut found = Vec::new();
        defaults(version.pointer(&spec).unwrap(), "", &mut found);
        for (path, field, default) in found {
            // An object at that path which is empty but for the default.
            let mut with = json!({ &field: default });
            let mut without = json!({});
            for step in path.rsplit('.').filter(|step| !step.is_empty()) {
                let wrap = |value: Value| match step.strip_suffix("[]") {
                    Some(name) => json!({ name: [value] }),
                    None => json!({ step: value }),
                };
                (with, without) = (wrap(with), wrap(without));
            }
            super::add_defaults(&mut without, "");
            super::add_defaults(&mut with, "");
            assert_eq!(with, without, "{kind}: {path}.{field}");
            tried += 1;
        }
    }
    assert!(tried > 10, "{tried}");
}

#[test]
fn a_template_of_before_the_defaults_can_be_written_without_a_change() {
    let template = |spec: Value| json!({"template": {"spec": spec}});
    let before = cluster(json!({
        "managedSecurityGroups": {}, "apiServer": {"managedLoadBalancer": {}},
        "bastion": {"spec": machine(json!({"rootVolume": {"sizeGiB": 5, "availabilityZone": {"name": "z"}}}))},
    }));
    let mut after = before.clone();
    after["identityRef"]["type"] = json!("Secret");
    after["managedSecurityGroups"]["allowAllInClusterTraffic"] = json!(false);
    after["apiServer"]["managedLoadBalancer"]["enabled"] = json!(true);
    after["bastion"]["enabled"] = json!(true);
    after["bastion"]["spec"]["rootVolume"]["availabilityZone"]["from"] = json!("Name");
    let kind = "OpenStackClusterTemplate";
    let none: [String; 0] = [];
    assert_eq!(
        changing(kind, &template(before.clone()), &template(after)),
        none
    );
    let mut other = before.clone();
    other["identityRef"]["type"] = json!("ClusterIdentity");
    assert_eq!(
        changing(kind, &template(before), &template(other)),
        ["spec.template.spec.identityRef.type"]
    );
}
