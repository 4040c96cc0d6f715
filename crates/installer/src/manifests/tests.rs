use std::collections::BTreeSet;

use api::providers::Provider;

use super::*;

/// The manifests without the definitions, which are generated.
fn documents() -> Vec<Value> {
    of(&Subset::all())
}

/// The same for a manager of some providers.
fn of(subset: &Subset) -> Vec<Value> {
    let text = render(subset, NAMESPACE, None, None).unwrap();
    let all: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let others = ["CustomResourceDefinition", "Namespace"];
    let by_hand = all.into_iter();
    by_hand
        .filter(|it| !others.iter().any(|kind| it["kind"] == *kind))
        .collect()
}

fn of_kind<'a>(documents: &'a [Value], kind: &str) -> Vec<&'a Value> {
    let found = documents.iter().filter(|document| document["kind"] == kind);
    found.collect()
}

fn texts(value: &Value) -> BTreeSet<String> {
    let items = value.as_array().into_iter().flatten();
    items
        .map(|item| item.as_str().unwrap().to_owned())
        .collect()
}

/// Group and plural of our kinds with more than one version.
fn converted() -> BTreeSet<String> {
    let all = api::crds::all().into_iter();
    all.filter(|definition| definition.spec.versions.len() > 1)
        .map(|definition| definition.metadata.name.unwrap())
        .collect()
}

#[test]
fn the_role_names_what_it_allows() {
    let documents = documents();
    let roles = ["ClusterRole", "Role"].map(|kind| of_kind(&documents, kind));
    for rule in roles
        .iter()
        .flatten()
        .flat_map(|role| role["rules"].as_array().unwrap())
    {
        for field in ["apiGroups", "resources", "verbs"] {
            let named = texts(&rule[field]);
            assert!(
                !named.is_empty() && !named.iter().any(|name| name.contains('*')),
                "{rule}"
            );
        }
        let dangerous = ["escalate", "bind", "impersonate", "deletecollection"];
        assert!(
            dangerous
                .iter()
                .all(|verb| !texts(&rule["verbs"]).contains(*verb)),
            "{rule}"
        );
        if texts(&rule["resources"]).contains("secrets") {
            assert!(!texts(&rule["verbs"]).contains("delete"), "{rule}");
        }
    }
}

#[test]
fn the_role_allows_updates_of_the_definitions_that_are_converted() {
    let documents = documents();
    let role = of_kind(&documents, "ClusterRole")[0];
    assert_eq!(updated(role), converted());
}

/// The definitions that a role allows to update.
fn updated(role: &Value) -> BTreeSet<String> {
    let rules = role["rules"].as_array().unwrap().iter();
    let updates = rules.filter(|rule| {
        texts(&rule["resources"]).contains("customresourcedefinitions")
            && texts(&rule["verbs"]).contains("update")
    });
    updates
        .flat_map(|rule| texts(&rule["resourceNames"]))
        .collect()
}

#[test]
fn the_manifests_of_a_subset_are_about_its_kinds_alone_and_share_no_name_with_others() {
    let mut names = BTreeSet::new();
    let mut objects = 0;
    for provider in Provider::ALL {
        let subset = Subset::new([provider], false);
        let documents = of(&subset);
        let role = of_kind(&documents, "ClusterRole")[0];
        let kinds: BTreeSet<String> = subset
            .definitions()
            .into_iter()
            .filter(|it| it.spec.versions.len() > 1)
            .map(|it| it.metadata.name.unwrap())
            .collect();
        assert_eq!(updated(role), kinds);
        for kind in [
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
        ] {
            for hooks in of_kind(&documents, kind) {
                let hook = &hooks["webhooks"][0];
                let service = &hook["clientConfig"]["service"]["name"];
                assert_eq!(service, &subset.named(SERVICE));
                for rule in hook["rules"].as_array().unwrap() {
                    assert!(
                        texts(&rule["apiGroups"]).is_subset(&subset.groups()),
                        "{rule}"
                    );
                }
            }
        }
        // Of a status, only that of its own kinds, but for the conditions of machines of a control plane and the answers
        // of pools.
        for rule in role["rules"].as_array().unwrap() {
            let foreign = !texts(&rule["apiGroups"]).is_subset(&subset.groups());
            for resource in texts(&rule["resources"]) {
                let status = resource.ends_with("/status") && foreign;
                let known = match provider {
                    Provider::ControlPlane => resource == "machines/status",
                    Provider::Infrastructure => resource == "ipaddressclaims/status",
                    _ => false,
                };
                // The versions that objects are stored in.
                let known = known || resource == "customresourcedefinitions/status";
                assert!(!status || known, "{provider}: {rule}");
            }
        }
        for document in &documents {
            let name = |path: &str| document.pointer(path).and_then(Value::as_str);
            let name = name("/metadata/name").unwrap();
            names.insert(format!("{} {name}", document["kind"]));
            objects += 1;
            assert!(name.ends_with(&format!("-{provider}")), "{name}");
        }
    }
    assert_eq!(names.len(), objects);
}

#[test]
fn only_kinds_with_defaults_have_a_webhook_for_them() {
    for (provider, expected) in [
        (Provider::Core, true),
        (Provider::Bootstrap, false),
        (Provider::ControlPlane, true),
        (Provider::Infrastructure, false),
    ] {
        let subset = Subset::new([provider], false);
        assert_eq!(has_defaults(&subset).unwrap(), expected, "{provider}");
    }
}

#[test]
fn the_manager_of_a_subset_is_deployed_with_its_flag() {
    let subset = Subset::new([Provider::Infrastructure], false);
    let text = render(&subset, "elsewhere", Some("example.org/f:1"), None).unwrap();
    assert!(
        text.contains("        - --webhook-addr=:9443\n        - --providers=infrastructure\n")
    );
    let (_, deployment) = text.rsplit_once("---\n").unwrap();
    let deployment: Value = serde_saphyr::from_str(deployment).unwrap();
    let name = "ferrostack-manager-infrastructure";
    assert_eq!(deployment["metadata"]["name"], name);
    let pod = &deployment["spec"]["template"];
    assert_eq!(pod["spec"]["serviceAccountName"], name);
    assert_eq!(pod["metadata"]["labels"]["app.kubernetes.io/name"], name);
    assert_eq!(pod["spec"]["containers"][0]["image"], "example.org/f:1");
}

#[test]
fn every_kind_with_rules_of_its_own_is_validated() {
    let documents = documents();
    let hooks = of_kind(&documents, "ValidatingWebhookConfiguration")[0];
    let mut validated = BTreeSet::new();
    for rule in hooks["webhooks"][0]["rules"].as_array().unwrap() {
        let group = rule["apiGroups"][0].as_str().unwrap();
        validated.extend(
            texts(&rule["resources"])
                .iter()
                .map(|name| format!("{name}.{group}")),
        );
    }
    let mut expected = converted();
    // A value that is invalid in spec.replicas must be rejected by the subresource scale, too.
    expected.insert("kubeadmcontrolplanes/scale.controlplane.cluster.x-k8s.io".to_owned());
    // One version.
    for name in ["openstackfloatingippools", "openstackservers"] {
        expected.insert(format!("{name}.infrastructure.cluster.x-k8s.io"));
    }
    // One version, and options that only the tables of the releases know.
    expected.insert("openstacks.ferrostack.dev".to_owned());
    assert_eq!(validated, expected);
}

#[test]
fn everything_is_in_the_requested_namespace() {
    let text = render(
        &Subset::all(),
        "elsewhere",
        Some("registry.example/ferrostack:1"),
        None,
    )
    .unwrap();
    assert!(text.starts_with("apiVersion: v1\nkind: Namespace\nmetadata:\n  name: elsewhere\n"));
    assert!(!text.contains(NAMESPACE));
    let definitions = text.matches("\nkind: CustomResourceDefinition\n").count();
    assert_eq!(definitions, api::crds::all().len());
    let (_, rest) = text
        .rsplit_once("kind: CustomResourceDefinition\n")
        .unwrap();
    let by_hand = rest.split_once("\n---\n").unwrap().1;
    let by_hand: Vec<Value> = serde_saphyr::from_multiple(by_hand).unwrap();
    // With a Deployment, its budget and its policy.
    assert_eq!(by_hand.len(), documents().len() + 3);
    let deployment = of_kind(&by_hand, "Deployment")[0];
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["image"], "registry.example/ferrostack:1");
    // Included only if an image is given.
    assert!(
        DEPLOYMENT.contains("kind: Deployment") && of_kind(&documents(), "Deployment").is_empty()
    );
}

#[test]
fn the_controller_of_clouds_may_act_in_their_namespace_alone() {
    let text = render(
        &Subset::all(),
        "elsewhere",
        Some("registry.example/ferrostack:1"),
        Some("clouds"),
    )
    .unwrap();
    assert!(
        text.contains("        - --webhook-addr=:9443\n        - --openstack-namespace=clouds\n")
    );
    let (_, rest) = text
        .rsplit_once("kind: CustomResourceDefinition\n")
        .unwrap();
    let rest = rest.split_once("\n---\n").unwrap().1;
    let all: Vec<Value> = serde_saphyr::from_multiple(rest).unwrap();
    let named = |kind: &str, name: &str| {
        let mut found = of_kind(&all, kind).into_iter();
        found.find(|it| it["metadata"]["name"] == name).unwrap()
    };
    named("Namespace", "clouds");
    let role = named("Role", "ferrostack-openstack");
    let binding = named("RoleBinding", "ferrostack-openstack");
    for object in [role, binding] {
        assert_eq!(object["metadata"]["namespace"], "clouds");
    }
    assert_eq!(binding["subjects"][0]["namespace"], "elsewhere");
    // In all namespaces it may do no more than without clouds, but for reading nodes.
    let before = documents();
    let mut wide = of_kind(&all, "ClusterRole");
    let nodes = wide.pop().unwrap();
    assert_eq!(wide, of_kind(&before, "ClusterRole"));
    assert_eq!(nodes["metadata"]["name"], NODES_OF_CLOUDS);
    let rules = serde_json::json!([{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list", "watch"]}]);
    assert_eq!(nodes["rules"], rules);
    for rule in role["rules"].as_array().unwrap() {
        let verbs = texts(&rule["verbs"]);
        let wide = ["*", "deletecollection", "update", "escalate", "bind"];
        assert!(wide.iter().all(|it| !verbs.contains(*it)), "{rule}");
    }
}

/// Deployment of a subset with its budget and its policy, in the order of the manifests.
fn deployed(subset: &Subset) -> Vec<Value> {
    let text = render(subset, NAMESPACE, Some("example.org/f:1"), None).unwrap();
    let all: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
    let kinds = ["PodDisruptionBudget", "NetworkPolicy", "Deployment"];
    let of_these = |it: &Value| kinds.iter().any(|kind| it["kind"] == *kind);
    let found: Vec<Value> = all.into_iter().filter(of_these).collect();
    assert_eq!(found.len(), kinds.len());
    found
}

#[test]
fn two_managers_run_apart_and_a_drain_or_a_rollout_leaves_one() {
    for subset in [Subset::all(), Subset::new([Provider::Core], false)] {
        let all = deployed(&subset);
        let [budget, policy, deployment] = &all[..] else {
            panic!("other objects");
        };
        let spec = &deployment["spec"];
        assert_eq!(spec["replicas"], 2);
        assert_eq!(spec["strategy"]["rollingUpdate"]["maxUnavailable"], 0);
        assert_eq!(budget["spec"]["maxUnavailable"], 1);
        // All of them select the same pods, and no others.
        let labels = &spec["template"]["metadata"]["labels"];
        assert_eq!(labels["app.kubernetes.io/name"], subset.named(MANAGER));
        let pod = &spec["template"]["spec"];
        let rule = "preferredDuringSchedulingIgnoredDuringExecution";
        let apart = &pod["affinity"]["podAntiAffinity"][rule][0]["podAffinityTerm"];
        for selector in [
            &budget["spec"]["selector"],
            &policy["spec"]["podSelector"],
            &spec["selector"],
            &apart["labelSelector"],
            &pod["topologySpreadConstraints"][0]["labelSelector"],
        ] {
            assert_eq!(&selector["matchLabels"], labels, "{selector}");
        }
        assert_eq!(apart["topologyKey"], "kubernetes.io/hostname");
    }
}

#[test]
fn the_ports_that_are_open_are_those_that_are_listened_on() {
    let all = deployed(&Subset::all());
    let numbers = |value: &Value, name: &str| -> BTreeSet<u64> {
        let items = value.as_array().unwrap().iter();
        items.map(|it| it[name].as_u64().unwrap()).collect()
    };
    let container = &all[2]["spec"]["template"]["spec"]["containers"][0];
    let listened = numbers(&container["ports"], "containerPort");
    let ingress = all[1]["spec"]["ingress"].as_array().unwrap();
    assert_eq!(ingress.len(), 1);
    assert_eq!(numbers(&ingress[0]["ports"], "port"), listened);
    let args = texts(&container["args"]);
    for port in listened {
        assert!(args.iter().any(|it| it.ends_with(&format!("=:{port}"))));
    }
}

#[test]
fn the_pod_has_what_the_restricted_profile_asks_for_and_a_limit_of_memory() {
    let all = deployed(&Subset::all());
    let pod = &all[2]["spec"]["template"]["spec"];
    for field in [
        "hostNetwork",
        "hostPID",
        "hostIPC",
        "volumes",
        "initContainers",
    ] {
        assert!(pod[field].is_null(), "{field}");
    }
    let context = &pod["securityContext"];
    assert_eq!(context["runAsNonRoot"], true);
    assert_eq!(context["seccompProfile"]["type"], "RuntimeDefault");
    // The user of the image.
    assert_eq!(context["runAsUser"], 65532);
    assert_eq!(pod["containers"].as_array().unwrap().len(), 1);
    let container = &pod["containers"][0];
    let context = &container["securityContext"];
    assert_eq!(context["allowPrivilegeEscalation"], false);
    assert_eq!(context["readOnlyRootFilesystem"], true);
    assert_eq!(context["capabilities"]["drop"], serde_json::json!(["ALL"]));
    assert!(context["capabilities"]["add"].is_null() && context["privileged"].is_null());
    let resources = &container["resources"];
    for value in [
        &resources["requests"]["cpu"],
        &resources["requests"]["memory"],
        &resources["limits"]["memory"],
    ] {
        assert!(value.is_string(), "{resources}");
    }
}
