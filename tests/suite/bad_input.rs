//! One clear message for each mistake, no panic, and nothing half-created.

use std::collections::BTreeMap;
use std::path::Path;

use kube::api::{Api, DynamicObject, ListParams};

use crate::cloud::TestCloud;
use crate::main_job;
use crate::process::{Up, eventually, ferrostack, run, texts};
use crate::templates;

const CLOUD: [&str; 2] = ["--cloud", "simulated"];

/// Runs `up` with a manifest and expects it to be refused; gives the message.
async fn refused(manifest: &str) -> String {
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::start(home.path()).await;
    let file = home.path().join("m.yaml");
    std::fs::write(&file, manifest).unwrap();
    let output = ferrostack(home.path())
        .args([
            "up",
            "--cloud",
            "simulated",
            "--exit-when-ready",
            "--timeout",
            "60s",
            "-f",
        ])
        .arg(&file)
        .arg("--data-dir")
        .arg(home.path().join("data"))
        .envs(cloud.variables())
        .output()
        .await;
    let (_, errors) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{errors}");
    assert!(!errors.contains("panicked"), "{errors}");
    assert_eq!(cloud.cloud.writes(), 0);
    errors.replace(&home.path().display().to_string(), "")
}

#[tokio::test(flavor = "multi_thread")]
async fn manifests_are_refused_with_file_line_and_field() {
    for (manifest, expected) in [
        ("apiVersion: v1\nkind: [\n", "/m.yaml:"),
        (
            "kind: X\nmetadata: {name: a}\n",
            "/m.yaml:1: the field apiVersion is missing",
        ),
        (
            "apiVersion: nowhere.io/v1\nkind: Thing\nmetadata: {name: a}\n",
            "/m.yaml:2: the kind Thing of nowhere.io/v1 is not known here",
        ),
        (
            "apiVersion: cluster.x-k8s.io/v1beta2\nkind: MachineDeployment\nmetadata: {name: a}\nspec:\n  clusterName: a\n  replicas: many\n",
            "/m.yaml:6: MachineDeployment a: spec.replicas",
        ),
        (
            "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: a}\nspec:\n  clusterNetwork:\n    podz: {}\n",
            "/m.yaml:6: Cluster a: there is no field spec.clusterNetwork.podz",
        ),
        (
            "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: OpenStackCluster\nmetadata: {name: a}\nspec:\n  identityRef: {name: a, cloudName: b}\n  managedSubnets:\n  - cidr: 10.6.0.0/240\n",
            "/m.yaml:7: OpenStackCluster a: spec.managedSubnets[0].cidr",
        ),
    ] {
        let message = refused(manifest).await;
        assert!(message.contains(expected), "{expected}\n{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_edit_of_an_immutable_field_is_refused_with_file_line_and_field() {
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::start(home.path()).await;
    let manifests = templates::generate(home.path(), &cloud, &["--flavor", "default"]).await;
    let file = home.path().join("x.yaml");
    std::fs::write(&file, &manifests).unwrap();
    let args = ["--exit-when-ready", "-f", file.to_str().unwrap()];
    let args = [&CLOUD[..], &args].concat();
    let mut up = Up::start(home.path(), &args, &cloud.variables());
    up.ready().await;
    assert_eq!(up.ended().await, Some(0), "{}", up.story());
    let written = cloud.cloud.writes();
    for (line, edited_line, expected) in [
        (
            "  - cidr: 10.6.0.0/24",
            "  - cidr: 10.9.0.0/24",
            "OpenStackCluster x: spec.managedSubnets",
        ),
        (
            "          name: ",
            "          name: larger",
            "OpenStackMachineTemplate x-control-plane: spec.template.spec",
        ),
        (
            "  clusterName: x",
            "  clusterName: y",
            "MachineDeployment x-md-0: spec.clusterName",
        ),
    ] {
        let line = manifests
            .lines()
            .position(|text| text.starts_with(line))
            .unwrap_or_else(|| panic!("no line {line:?} in\n{manifests}"));
        let mut edited: Vec<String> = manifests.lines().map(str::to_owned).collect();
        edited[line] = edited_line.to_owned();
        std::fs::write(&file, edited.join("\n")).unwrap();
        let mut up = Up::start(home.path(), &args, &cloud.variables());
        assert_eq!(up.ended().await, Some(1), "{}", up.story());
        let story = up.story();
        let place = format!("x.yaml:{}: {expected}", line + 1);
        assert!(story.contains(&place), "{place}\n{story}");
    }
    // Nothing was changed on the way to the mistake.
    assert_eq!(cloud.cloud.writes(), written);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_say_what_is_missing() {
    let home = tempfile::tempdir().unwrap();
    for (args, expected) in [
        (
            &["describe", "cluster", "x"][..],
            "start `ferrostack up` first",
        ),
        (
            &["get", "kubeconfig", "x", "--kubeconfig", "/nowhere"][..],
            "cannot use kubeconfig /nowhere",
        ),
        (
            &["up", "--cloud", "x"][..],
            "there is no clouds.yaml; searched:",
        ),
        (
            &["up", "-f", "/nowhere.yaml"][..],
            "cannot read /nowhere.yaml",
        ),
        (
            &["generate", "cluster", "x"][..],
            "these variables are not set: KUBERNETES_VERSION, ",
        ),
        (
            &["up", "--from", "/nowhere.yaml"][..],
            "cannot read template /nowhere.yaml",
        ),
        (
            &["up", "--data-dir", "/etc/passwd"][..],
            "the data directory /etc/passwd is a file",
        ),
        (
            &["up", "--data-dir", "/etc"][..],
            "/etc is not empty and is not a data directory of ferrostack",
        ),
        (
            &["generate", "manager", "-n", "Bad NS"][..],
            "`Bad NS` is not a namespace",
        ),
        (
            &["apply", "-f", "/nowhere.yaml"][..],
            "cannot read /nowhere.yaml",
        ),
        (
            &["generate", "cluster", "X_"][..],
            "`X_` is not a cluster name",
        ),
    ] {
        let output = run(home.path(), args).await;
        let (_, errors) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{args:?} {errors}");
        assert!(errors.contains(expected), "{args:?}: {errors}");
        assert_eq!(errors.lines().count(), 1, "{errors}");
        assert!(!errors.contains("os error"), "{errors}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_locked_or_newer_data_directory_and_a_taken_port_are_refused() {
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::start(home.path()).await;
    let empty = home.path().join("empty.yaml");
    std::fs::write(
        &empty,
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n",
    )
    .unwrap();
    let args = [&CLOUD[..], &["-f", empty.to_str().unwrap()]].concat();
    let first = Up::start(home.path(), &args, &cloud.variables());
    let kubeconfig = home.path().join("data/kubeconfig");
    eventually("the first start", || async {
        kubeconfig.exists().then_some(())
    })
    .await;
    let up = async |data: &str, more: &[&str]| {
        let output = ferrostack(home.path())
            .args(["up", "--data-dir", data, "-f", empty.to_str().unwrap()])
            .args(CLOUD)
            .args(more)
            .envs(cloud.variables())
            .output()
            .await;
        assert_eq!(output.status.code(), Some(1));
        texts(&output).1
    };
    let data = home.path().join("data").display().to_string();
    let message = up(&data, &[]).await;
    assert!(
        message.contains("is in use by another ferrostack (process "),
        "{message}"
    );
    let taken = cloud.url.strip_prefix("http://").unwrap();
    let other = home.path().join("other").display().to_string();
    let message = up(&other, &["--listen", taken]).await;
    assert!(
        message.contains(&format!(
            "{taken}, the address of the management API, is in use"
        )),
        "{message}"
    );
    first.stop().await;
    std::fs::write(home.path().join("data/version"), "99\n").unwrap();
    let message = up(&data, &[]).await;
    assert!(
        message.contains("was written by a newer ferrostack (format 99"),
        "{message}"
    );
}

/// Brings a cluster up that cannot come up, and waits until a condition of `kind` holds the words.
async fn condition_says(
    home: &Path,
    cloud: &TestCloud,
    overrides: &[(&str, &str)],
    kind: &str,
    words: &[&str],
) {
    let mut variables = cloud.variables();
    for (name, value) in overrides {
        variables.retain(|(known, _)| known != name);
        variables.push((name, value));
    }
    let args = [
        &CLOUD[..],
        &[
            "--control-plane-machine-count",
            "1",
            "--worker-machine-count",
            "0",
        ],
    ]
    .concat();
    let up = Up::start(home, &args, &variables);
    let kubeconfig = home.join("data/kubeconfig");
    eventually("the management API", || async {
        kubeconfig.exists().then_some(())
    })
    .await;
    let resource = main_job::kind("infrastructure.cluster.x-k8s.io", kind);
    let api: Api<DynamicObject> = Api::namespaced_with(up.client().await, "default", &resource);
    let events: Api<k8s_openapi::api::events::v1::Event> =
        Api::namespaced(up.client().await, "default");
    eventually(&format!("{words:?} in a condition of {kind}"), || async {
        let list = api.list(&ListParams::default()).await.ok()?;
        let conditions: Vec<String> = list
            .items
            .iter()
            .flat_map(|object| {
                object.data["status"]["conditions"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default()
            })
            .map(|condition| condition.to_string())
            .collect();
        conditions
            .iter()
            .any(|text| words.iter().all(|word| text.contains(word)))
            .then_some(())
    })
    .await;
    eventually("an event with the same words", || async {
        let list = events.list(&ListParams::default()).await.ok()?;
        let notes = list.items.into_iter().filter_map(|event| event.note);
        notes
            .into_iter()
            .any(|note| words.iter().all(|word| note.contains(word)))
            .then_some(())
    })
    .await;
    up.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_cloud_does_not_have_is_named_in_a_condition_and_an_event() {
    for (variable, value, kind) in [
        (
            "OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR",
            "no-such-flavor",
            "OpenStackMachine",
        ),
        ("OPENSTACK_IMAGE_NAME", "no-such-image", "OpenStackMachine"),
        (
            "OPENSTACK_EXTERNAL_NETWORK_ID",
            "b5cbf5a7-8b1c-4fb0-a51e-67e0b0c12345",
            "OpenStackCluster",
        ),
    ] {
        let home = tempfile::tempdir().unwrap();
        let cloud = TestCloud::start(home.path()).await;
        condition_says(home.path(), &cloud, &[(variable, value)], kind, &[value]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_exhausted_quota_is_told_in_the_clouds_own_words() {
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::with(
        home.path(),
        BTreeMap::from([("instances".to_owned(), 0)]),
        simulator::guest::Options::default(),
    )
    .await;
    condition_says(
        home.path(),
        &cloud,
        &[],
        "OpenStackMachine",
        &["uota", "instances"],
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_credentials_are_told_in_the_clouds_own_words() {
    let edit = |clouds: String, _: &str| clouds.replace("password: secret", "password: wrong");
    with_clouds(edit, "requires authentication").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_cloud_is_named_with_its_address() {
    // Nobody listens on port 1.
    let edit = |clouds: String, url: &str| clouds.replace(url, "http://127.0.0.1:1");
    with_clouds(edit, "127.0.0.1:1").await;
}

/// Brings a cluster up whose Secret holds another clouds.yaml than `up` itself was started with.
async fn with_clouds(edit: fn(String, &str) -> String, words: &str) {
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::start(home.path()).await;
    let clouds = std::fs::read_to_string(home.path().join("clouds.yaml")).unwrap();
    let clouds = edit(clouds, &cloud.url);
    let clouds = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, clouds);
    let overrides = [("OPENSTACK_CLOUD_YAML_B64", clouds.as_str())];
    condition_says(
        home.path(),
        &cloud,
        &overrides,
        "OpenStackCluster",
        &[words],
    )
    .await;
}
