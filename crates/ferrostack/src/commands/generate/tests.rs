use std::collections::BTreeMap;

use serde_json::Value;

use super::*;
use crate::cli::{ClusterOptions, FromConfigMap, ServerArgs};

const SET: [(&str, &str); 13] = [
    ("OPENSTACK_CLOUD", "mycloud"),
    ("OPENSTACK_CLOUD_YAML_B64", "e30K"),
    (
        "OPENSTACK_EXTERNAL_NETWORK_ID",
        "2c8b8a3e-5b1c-4c6e-9a51-0d5f2a1d0c11",
    ),
    ("OPENSTACK_DNS_NAMESERVERS", "9.9.9.9"),
    ("OPENSTACK_FAILURE_DOMAIN", "az1"),
    ("OPENSTACK_IMAGE_NAME", "image"),
    ("OPENSTACK_IMAGE_NAME_UPGRADE_FROM", "old"),
    ("OPENSTACK_FLATCAR_IMAGE_NAME", "flatcar"),
    ("FLATCAR_IMAGE_NAME", "flatcar"),
    ("OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR", "big"),
    ("OPENSTACK_NODE_MACHINE_FLAVOR", "small"),
    ("OPENSTACK_SSH_KEY_NAME", ""),
    ("KUBERNETES_VERSION", "v1.34.2"),
];

/// What `generate cluster` prints where there is no cloud to ask.
fn cluster(
    name: &str,
    options: &ClusterOptions,
    list_variables: bool,
    environment: &Environment,
) -> anyhow::Result<String> {
    let args = GenerateCluster {
        name: name.to_owned(),
        list_variables,
        output: Output::Text,
        write_to: None,
        provider: None,
        cloud: None,
        config_map: FromConfigMap {
            from_config_map: None,
            from_config_map_namespace: "default".to_owned(),
            from_config_map_key: "template".to_owned(),
        },
        server: ServerArgs::default(),
        options: options.clone(),
    };
    let source = Source::new(&args.name, &args.options, None, environment, COUNTS)?;
    finish(&args, &source)
}

fn options(flavor: &str) -> ClusterOptions {
    ClusterOptions {
        flavor: Some(flavor.to_owned()),
        ..ClusterOptions::default()
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(all) => all.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

#[test]
fn every_flavor_renders_to_objects_of_one_cluster() {
    for (flavor, control_planes) in [
        ("default", 3),
        ("without-lb", 1),
        ("flatcar", 3),
        ("flatcar-sysext", 3),
        ("capi-v1beta1", 3),
    ] {
        let options = ClusterOptions {
            control_plane_machine_count: Some(control_planes),
            worker_machine_count: Some(2),
            target_namespace: Some("team".to_owned()),
            ..options(flavor)
        };
        let text = cluster("x", &options, false, &Environment::with(&SET)).unwrap();
        let documents = manifest::read("f", &text).unwrap();
        assert_eq!(documents.len(), 8);
        for document in &documents {
            assert_eq!(document.text(&["metadata", "namespace"]), "team");
            // API servers refuse it in a server-side apply.
            assert!(!has_null(&document.value), "{flavor}: {text}");
        }
        let control_plane = documents
            .iter()
            .find(|d| d.text(&["kind"]) == "KubeadmControlPlane")
            .unwrap();
        assert_eq!(control_plane.value["spec"]["replicas"], control_planes);
        let workers = documents
            .iter()
            .find(|d| d.text(&["kind"]) == "MachineDeployment")
            .unwrap();
        assert_eq!(workers.value["spec"]["replicas"], 2);
    }
}

#[test]
fn flags_win_over_the_environment_and_it_over_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("clusterctl.yaml");
    std::fs::write(
        &config,
        "KUBERNETES_VERSION: v1.30.0\nOPENSTACK_IMAGE_NAME: from-file\nX: [1]\n",
    )
    .unwrap();
    let environment: Vec<_> = SET
        .into_iter()
        .filter(|(name, _)| *name != "OPENSTACK_IMAGE_NAME")
        .collect();
    let options = ClusterOptions {
        config: Some(config),
        kubernetes_version: Some("v1.35.0".to_owned()),
        ..options("default")
    };
    let text = cluster("x", &options, false, &Environment::with(&environment)).unwrap();
    assert!(
        text.contains("version: v1.35.0") && text.contains("name: from-file"),
        "{text}"
    );
}

#[test]
fn what_is_missing_or_wrong_is_said_at_once() {
    let nothing = Environment::with(&[]);
    let error = format!(
        "{:#}",
        cluster("x", &options("default"), false, &nothing).unwrap_err()
    );
    assert!(
        error.contains("KUBERNETES_VERSION, OPENSTACK_CLOUD, OPENSTACK_CLOUD_YAML_B64"),
        "{error}"
    );
    for (flavor, why) in [
        ("nosuch", ""),
        ("development", ": it is the flavor `topology` now"),
        (
            "external-cloud-provider",
            ": it is the flavor `default` now",
        ),
    ] {
        let error = cluster("x", &options(flavor), false, &nothing).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "there is no flavor `{flavor}`{why}; there are: default, without-lb, flatcar, flatcar-sysext, topology, clusterclass-dev-test, capi-v1beta1. For a template of your own use --from FILE"
            )
        );
    }
    for name in ["", "Upper", "a_b", "-a", "a-", "a..b", &"a".repeat(64)] {
        assert!(check_name(name).is_err(), "{name}");
    }
}

#[test]
fn a_number_of_machines_that_the_template_does_not_take_is_refused() {
    let options = ClusterOptions {
        control_plane_machine_count: Some(3),
        ..options("without-lb")
    };
    let error = cluster("x", &options, false, &Environment::with(&SET)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "template flavor without-lb has no CONTROL_PLANE_MACHINE_COUNT, so that --control-plane-machine-count 3 would change nothing: leave the flag out, or take another template"
    );
    // The number that it has.
    let options = ClusterOptions {
        control_plane_machine_count: Some(1),
        ..options
    };
    let environment = Environment::with(&SET);
    let parsed = Source::new("x", &options, None, &environment, (3, 0));
    assert!(parsed.is_ok(), "{:?}", parsed.err());
}

#[test]
fn variables_are_listed_with_their_values_and_where_these_come_from() {
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("clusterctl.yaml");
    std::fs::write(
        &config,
        "OPENSTACK_IMAGE_NAME: from-file\nNODE_CIDR: 10.7.0.0/24\n",
    )
    .unwrap();
    let options = ClusterOptions {
        config: Some(config),
        kubernetes_version: Some("v1.35.0".to_owned()),
        ..options("default")
    };
    let environment = Environment::with(&[
        ("OPENSTACK_SSH_KEY_NAME", ""),
        ("OPENSTACK_CLOUD_YAML_B64", "c2VjcmV0IHRoaW5n"),
    ]);
    let text = cluster("x", &options, true, &environment).unwrap();
    let text = text.replace(&dir.path().display().to_string(), "DIR");
    insta::assert_snapshot!(text, @r#"
    Required Variables:
      - CLUSTER_NAME                            x  (argument NAME)
      - CONTROL_PLANE_MACHINE_COUNT             1  (default)
      - KUBERNETES_VERSION                      v1.35.0  (flag --kubernetes-version)
      - OPENSTACK_CLOUD                         not set
      - OPENSTACK_CLOUD_YAML_B64                (16 bytes)  (environment)
      - OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR  not set
      - OPENSTACK_DNS_NAMESERVERS               not set
      - OPENSTACK_EXTERNAL_NETWORK_ID           not set
      - OPENSTACK_FAILURE_DOMAIN                not set
      - OPENSTACK_IMAGE_NAME                    from-file  (DIR/clusterctl.yaml)
      - OPENSTACK_NODE_MACHINE_FLAVOR           not set
      - OPENSTACK_SSH_KEY_NAME                  ""  (environment)
      - WORKER_MACHINE_COUNT                    0  (default)

    Optional Variables:
      - NODE_CIDR                               10.7.0.0/24  (DIR/clusterctl.yaml)
      - OPENSTACK_CLOUD_CACERT_B64              Cg==  (default)
      - POD_CIDR                                192.168.0.0/16  (default)
    "#);
}

/// `NAME` (default) in the tables of the page about templates.
fn documented_defaults() -> BTreeMap<String, String> {
    let page = include_str!("../../../../../docs/guides/templates.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let mut found = BTreeMap::new();
    for cell in rows.filter_map(|row| row.split('|').nth(1)) {
        for name in cell.split(',') {
            let Some((name, default)) = name.split_once("` (") else {
                continue;
            };
            let name = name.trim().trim_start_matches('`');
            found.insert(
                name.to_owned(),
                default.trim().trim_end_matches(')').to_owned(),
            );
        }
    }
    found
}

#[test]
fn the_documented_defaults_are_those_of_the_templates() {
    let mut listed = BTreeMap::new();
    for flavor in [
        "default",
        "without-lb",
        "flatcar",
        "flatcar-sysext",
        "topology",
        "clusterclass-dev-test",
        "capi-v1beta1",
    ] {
        let text = cluster("x", &options(flavor), true, &Environment::with(&[])).unwrap();
        listed.extend(text.lines().filter_map(|line| {
            let line = line.strip_prefix("  - ")?.strip_suffix("  (default)")?;
            let (name, value) = line.split_once("  ")?;
            Some((name.to_owned(), value.trim().to_owned()))
        }));
    }
    assert_eq!(listed, documented_defaults());
}

#[test]
fn the_configuration_of_clusterctl_is_found_where_clusterctl_finds_it() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().display().to_string();
    let write = |directory: &str, image: &str| {
        let directory = home.path().join(directory);
        std::fs::create_dir_all(&directory).unwrap();
        let text = format!("OPENSTACK_IMAGE_NAME: {image}\n");
        std::fs::write(directory.join("clusterctl.yaml"), text).unwrap();
    };
    let listed = |variables: &[(&str, &str)]| {
        cluster(
            "x",
            &options("default"),
            true,
            &Environment::with(variables),
        )
        .unwrap()
    };
    write(".cluster-api", "old");
    assert!(listed(&[("HOME", &path)]).contains("  old  ("));
    write(".config/cluster-api", "new");
    assert!(listed(&[("HOME", &path)]).contains("  new  ("));
    write("xdg/cluster-api", "xdg");
    let xdg = home.path().join("xdg").display().to_string();
    let variables = [("HOME", path.as_str()), ("XDG_CONFIG_HOME", xdg.as_str())];
    assert!(listed(&variables).contains("  xdg  ("));
    let with_environment = [variables[0], variables[1], ("OPENSTACK_IMAGE_NAME", "env")];
    assert!(listed(&with_environment).contains("  env  (environment)"));
}

/// What a template says, apart from what the words of its author are: fields in any order, rules without their
/// descriptions, and what is empty.
fn essence(text: &str) -> BTreeMap<String, Value> {
    let variables = regex::Regex::new(r"\$\{(\w+)(:=([^}]*))?\}").unwrap();
    let text = variables.replace_all(text, |found: &regex::Captures<'_>| {
        // Our ranges of addresses are variables with the values that theirs have.
        match (&found[1], found.get(3)) {
            ("POD_CIDR" | "NODE_CIDR", Some(default)) => default.as_str().to_owned(),
            (name, _) => format!("{name}-value"),
        }
    });
    let documents = manifest::read("template", &text).unwrap();
    let named = documents.into_iter().map(|document| {
        let key = format!("{} {}", document.text(&["apiVersion"]), document.label());
        let mut value = document.value;
        for rules in [
            "clusterNodesSecurityGroupRules",
            "allNodesSecurityGroupRules",
        ] {
            let path = format!("/spec/managedSecurityGroups/{rules}");
            let rules = value.pointer_mut(&path).and_then(Value::as_array_mut);
            for rule in rules.into_iter().flatten() {
                for words in ["name", "description"] {
                    rule.as_object_mut().unwrap().remove(words);
                }
            }
        }
        for path in ["/spec/kubeadmConfigSpec", "/spec/template/spec"] {
            let path = format!("{path}/ignition/containerLinuxConfig/additionalConfig");
            if let Some(config) = value.pointer_mut(&path) {
                *config = container_linux_config(config.as_str().unwrap());
            }
        }
        without_empty(&mut value);
        (key, value)
    });
    named.collect()
}

/// A Container Linux Config without its comments and the empty lines of its units.
fn container_linux_config(text: &str) -> Value {
    // The same file: extensions.flatcar.org has it with and without the folder, and the released template names both.
    let text = text.replace(
        "/extensions/kubernetes/kubernetes-${KUBERNETES",
        "/extensions/kubernetes-${KUBERNETES",
    );
    let text = text.replace(
        "/extensions/kubernetes/kubernetes-KUBERNETES",
        "/extensions/kubernetes-KUBERNETES",
    );
    let mut config: Value = serde_saphyr::from_str(&text).unwrap();
    for list in ["/storage/files", "/storage/links", "/systemd/units"] {
        let entries = config.pointer_mut(list).and_then(Value::as_array_mut);
        let Some(entries) = entries else { continue };
        entries.sort_by_key(|it| format!("{}{}", it["path"], it["name"]));
        for drop_in in entries
            .iter_mut()
            .filter_map(|it| it.get_mut("dropins")?.as_array_mut())
            .flatten()
        {
            let contents = drop_in["contents"].as_str().unwrap();
            let lines: Vec<&str> = contents.lines().filter(|line| !line.is_empty()).collect();
            drop_in["contents"] = lines.join("\n").into();
        }
    }
    config
}

/// Removes fields that say nothing; what is not enabled says as much as what is not there.
fn without_empty(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for field in fields.values_mut() {
                without_empty(field);
            }
            fields.retain(|_, field| match field {
                Value::Null => false,
                Value::Array(list) => !list.is_empty(),
                Value::Object(fields) => {
                    let off =
                        fields.len() == 1 && fields.get("enabled") == Some(&Value::Bool(false));
                    !fields.is_empty() && !off
                }
                _ => true,
            });
        }
        Value::Array(list) => list.iter_mut().for_each(without_empty),
        _ => {}
    }
}

#[test]
fn our_flavors_say_what_the_released_ones_say() {
    let released = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../../shared/upstream/templates/capo-v0.15.0-beta.0");
    if !released.is_dir() {
        skipped::because(format_args!(
            "no released templates at {}",
            released.display()
        ));
        return;
    }
    for name in [
        "cluster-template.yaml",
        "cluster-template-without-lb.yaml",
        "cluster-template-flatcar.yaml",
        "cluster-template-flatcar-sysext.yaml",
        "cluster-template-capi-v1beta1.yaml",
    ] {
        let ours = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/templates");
        let [ours, mut theirs] = [ours.join(name), released.join(name)]
            .map(|file| essence(&std::fs::read_to_string(file).unwrap()));
        // docs/guides/templates.md names the difference.
        if name.contains("flatcar") {
            let cluster = theirs
                .iter_mut()
                .find(|(key, _)| key.contains("OpenStackCluster "));
            cluster.unwrap().1["spec"]["apiServer"] =
                serde_json::json!({"managedLoadBalancer": {"enabled": true}});
        }
        assert_eq!(
            ours.keys().collect::<Vec<_>>(),
            theirs.keys().collect::<Vec<_>>(),
            "{name}"
        );
        for (key, object) in &ours {
            assert_eq!(object, &theirs[key], "{name}: {key}");
        }
    }
}

#[test]
fn the_flavor_has_the_short_flag_of_clusterctl_too() {
    use clap::Parser;
    for flag in ["-f", "-F", "--flavor"] {
        let words = ["ferrostack", "generate", "cluster", "x", flag, "without-lb"];
        let cli = crate::cli::Cli::try_parse_from(words).unwrap();
        let crate::cli::Command::Generate(Generate::Cluster(args)) = cli.command else {
            panic!("another command");
        };
        assert_eq!(args.options.flavor.as_deref(), Some("without-lb"));
    }
}

#[test]
fn the_flavor_of_a_class_has_the_class_its_templates_and_a_cluster() {
    let of = |flavor: &str, more: &[(&str, &str)]| {
        let environment = Environment::with(&[&SET[..], more].concat());
        let options = ClusterOptions {
            // The class alone takes no numbers.
            control_plane_machine_count: (flavor == "topology").then_some(3),
            worker_machine_count: (flavor == "topology").then_some(2),
            target_namespace: Some("team".to_owned()),
            ..options(flavor)
        };
        let text = cluster("x", &options, false, &environment).unwrap();
        manifest::read(flavor, &text).unwrap()
    };
    let kinds = |documents: &[manifest::Document]| -> Vec<String> {
        let kinds = documents.iter().map(|it| it.text(&["kind"]).to_owned());
        kinds.collect()
    };
    let class = [
        "ClusterClass",
        "OpenStackClusterTemplate",
        "KubeadmControlPlaneTemplate",
        "KubeadmConfigTemplate",
        "OpenStackMachineTemplate",
        "OpenStackMachineTemplate",
    ];
    assert_eq!(kinds(&of("clusterclass-dev-test", &[])), class);
    let all = of("topology", &[]);
    assert_eq!(kinds(&all)[..6], class);
    assert_eq!(kinds(&all)[6..], ["Secret", "Cluster"]);
    assert!(
        all.iter()
            .all(|it| it.text(&["metadata", "namespace"]) == "team")
    );
    assert_eq!(all[6].text(&["metadata", "name"]), "x-cloud-config");
    let topology = &all[7].value["spec"]["topology"];
    assert_eq!(topology["version"], "v1.34.2");
    assert_eq!(topology["controlPlane"]["replicas"], 3);
    assert_eq!(topology["workers"]["machineDeployments"][0]["replicas"], 2);
    let values = variables_of(topology);
    assert_eq!(
        values["identityRef"],
        serde_json::json!({"name": "x-cloud-config", "cloudName": "mycloud"})
    );
    // An image that is selected by its name.
    assert_eq!(values["imageName"], "image");
    assert_eq!(values["imageRef"], "");
    assert_eq!(values["addImageVersion"], false);
    assert_eq!(values["injectIgnitionSysext"], false);
    assert_eq!(values["allowedCIDRs"], serde_json::json!([]));
    assert_eq!(values["bastion"]["enabled"], false);

    let other = of(
        "topology",
        &[
            ("CLOUD_CONFIG_SECRET", "shared"),
            ("IMAGE_REF", "node-image"),
            ("ADD_IMAGE_VERSION", "true"),
            ("OPENSTACK_API_SERVER_ALLOWED_CIDRS", "[10.0.0.0/8]"),
        ],
    );
    let values = variables_of(&other[7].value["spec"]["topology"]);
    assert_eq!(other[6].text(&["metadata", "name"]), "shared");
    assert_eq!(values["identityRef"]["name"], "shared");
    assert_eq!(values["imageRef"], "node-image");
    assert_eq!(values["addImageVersion"], true);
    assert_eq!(values["allowedCIDRs"], serde_json::json!(["10.0.0.0/8"]));
}

/// The values of a topology's variables.
fn variables_of(topology: &Value) -> BTreeMap<String, Value> {
    let variables = topology["variables"].as_array().unwrap().iter();
    let named = variables.map(|it| (it["name"].as_str().unwrap().to_owned(), it["value"].clone()));
    named.collect()
}

/// The names of the class's patches, and its variables without the words of their author.
fn interface(text: &str) -> (Vec<String>, BTreeMap<String, Value>) {
    fn without_words(schema: &mut Value) {
        let Some(fields) = schema.as_object_mut() else {
            return;
        };
        fields.remove("description");
        fields.values_mut().for_each(without_words);
    }
    let variables = regex::Regex::new(r"\$\{(\w+)(:=([^}]*))?\}").unwrap();
    let text = variables.replace_all(text, "$3");
    let class = manifest::read("class", &text).unwrap().remove(0).value;
    let names = class["spec"]["patches"].as_array().unwrap().iter();
    let mut names: Vec<String> = names
        .map(|it| it["name"].as_str().unwrap().to_owned())
        .collect();
    names.sort();
    let variables = class["spec"]["variables"].as_array().unwrap().iter();
    let variables = variables.map(|it| {
        let mut schema = it["schema"]["openAPIV3Schema"].clone();
        without_words(&mut schema);
        (it["name"].as_str().unwrap().to_owned(), schema)
    });
    (names, variables.collect())
}

#[test]
fn our_class_has_the_variables_and_patches_of_the_released_one() {
    let name = "clusterclass-dev-test.yaml";
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let released = root
        .join("../shared/upstream/templates/capo-v0.15.0-beta.0")
        .join(name);
    let Ok(theirs) = std::fs::read_to_string(&released) else {
        skipped::because(format_args!("no released class at {}", released.display()));
        return;
    };
    let ours = std::fs::read_to_string(root.join("config/templates").join(name)).unwrap();
    let (our_patches, our_variables) = interface(&ours);
    let (patches, mut variables) = interface(&theirs);
    assert_eq!(our_patches, patches);
    // What docs/guides/templates.md names: no Image of ORC by default, and the cloud is that of the template.
    let image = variables.get_mut("imageRef").unwrap();
    image.as_object_mut().unwrap().remove("default");
    let identity = variables.get_mut("identityRef").unwrap();
    identity["properties"]["cloudName"]["default"] = "".into();
    assert_eq!(our_variables, variables);
}

#[test]
fn the_provider_of_the_templates_is_ours_in_any_version() {
    for given in ["openstack", "openstack:v0.15.0", "openstack:latest"] {
        check_provider(given).unwrap();
    }
    for given in ["aws", "aws:v2.0.0", "", "infrastructure-openstack"] {
        let error = check_provider(given).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("--infrastructure {given}: there are templates for the provider openstack alone, in the flavors default, ")),
            "{error}"
        );
    }
    use clap::Parser;
    let words = "ferrostack generate cluster x -i openstack:v0.14.0 --flavor topology";
    crate::cli::Cli::try_parse_from(words.split(' ')).unwrap();
    let words = "ferrostack generate cluster x --infrastructure openstack --from t.yaml";
    crate::cli::Cli::try_parse_from(words.split(' ')).unwrap_err();
}
