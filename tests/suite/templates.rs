//! The cluster templates of released versions, generated and brought up as they are.

use std::path::{Path, PathBuf};

use crate::cloud::{FLATCAR, TestCloud};
use crate::process::{PROGRAM, Up, ferrostack, texts};

/// Beside the workspace, where it is present.
pub(crate) fn released() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/upstream/templates");
    if path.is_dir() {
        return Some(path);
    }
    skipped::because(format_args!("no released templates at {}", path.display()));
    None
}

/// The manifests of cluster `x`, one control plane machine and one worker on `cloud`, from `source`:
/// a flavor or a file, as `generate cluster` takes them.
pub(crate) async fn generate(home: &Path, cloud: &TestCloud, source: &[&str]) -> String {
    let clouds = std::fs::read(home.join("clouds.yaml")).unwrap();
    let clouds = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, clouds);
    let external = cloud.external_network().await;
    let output = ferrostack(home)
        .args(["generate", "cluster", "x"])
        .args(source)
        .envs(cloud.variables())
        .envs([
            // Not as flags, which are refused where the template has no such variable: a class has none.
            ("CONTROL_PLANE_MACHINE_COUNT", "1"),
            ("WORKER_MACHINE_COUNT", "1"),
            ("OPENSTACK_CLOUD", "simulated"),
            ("OPENSTACK_CLOUD_YAML_B64", clouds.as_str()),
            ("OPENSTACK_CLOUD_CACERT_B64", "Cg=="),
            ("OPENSTACK_EXTERNAL_NETWORK_ID", external.as_str()),
            ("OPENSTACK_FAILURE_DOMAIN", "nova"),
            ("OPENSTACK_FLATCAR_IMAGE_NAME", FLATCAR),
            ("FLATCAR_IMAGE_NAME", FLATCAR),
        ])
        .output()
        .await;
    let (manifests, errors) = texts(&output);
    assert!(output.status.success(), "{errors}");
    manifests
}

/// Brings a template up; one with our group in a version before v1beta1 is converted first.
async fn comes_up(version: &str, template: &str) {
    let Some(released) = released() else { return };
    let template = released.join(version).join(template);
    let home = tempfile::tempdir().unwrap();
    let cloud = match template.to_string_lossy().contains("flatcar") {
        true => TestCloud::of_flatcar(home.path()).await,
        false => TestCloud::start(home.path()).await,
    };
    let source = ["--from", template.to_str().unwrap()];
    let manifests = generate(home.path(), &cloud, &source).await;
    let file = home.path().join("x.yaml");
    let is_older = manifests.contains("infrastructure.cluster.x-k8s.io/v1alpha");
    std::fs::write(&file, manifests).unwrap();
    if is_older {
        let mut convert = tokio::process::Command::new(PROGRAM);
        let convert = convert.arg("convert").arg(&file).env("HOME", home.path());
        let output = convert.output().await.unwrap();
        // The annotations of the conversion have quoted JSON, and the name of the old version.
        let converted = String::from_utf8(output.stdout).unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        let is_old = |line: &str| line.contains("apiVersion: ") && line.contains("/v1alpha");
        assert!(!converted.lines().any(is_old), "{converted}");
        std::fs::write(&file, converted).unwrap();
    }
    let args = [
        "--cloud",
        "simulated",
        "--exit-when-ready",
        "-f",
        file.to_str().unwrap(),
    ];
    let mut up = Up::start(home.path(), &args, &cloud.variables());
    up.ready().await;
    assert_eq!(up.ended().await, Some(0), "{}", up.story());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_with_our_group_in_v1alpha4_is_converted_and_comes_up() {
    comes_up(
        "capo-v0.5.3",
        "cluster-template-external-cloud-provider.yaml",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_with_our_group_in_v1alpha5_is_converted_and_comes_up() {
    comes_up(
        "capo-v0.6.4",
        "cluster-template-external-cloud-provider.yaml",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_with_our_group_in_v1alpha6_is_converted_and_comes_up() {
    comes_up(
        "capo-v0.7.2",
        "cluster-template-external-cloud-provider.yaml",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_with_our_group_in_v1alpha7_is_converted_and_comes_up() {
    comes_up("capo-v0.9.0", "cluster-template.yaml").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_with_everything_in_v1beta1_comes_up() {
    comes_up("capo-v0.12.0", "cluster-template.yaml").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_with_everything_in_v1beta1_and_no_load_balancer_comes_up() {
    comes_up("capo-v0.12.0", "cluster-template-without-lb.yaml").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_with_our_group_in_v1beta1_comes_up() {
    comes_up("capo-v0.14.0", "cluster-template.yaml").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_with_our_group_in_v1beta1_and_no_load_balancer_comes_up() {
    comes_up("capo-v0.14.0", "cluster-template-without-lb.yaml").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_with_everything_in_v1beta2_comes_up() {
    comes_up("capo-v0.15.0-beta.0", "cluster-template.yaml").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_with_everything_in_v1beta2_and_no_load_balancer_comes_up() {
    comes_up("capo-v0.15.0-beta.0", "cluster-template-without-lb.yaml").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_for_flatcar_comes_up() {
    comes_up("capo-v0.15.0-beta.0", "cluster-template-flatcar.yaml").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_for_flatcar_in_v1beta1_comes_up() {
    comes_up("capo-v0.10.0", "cluster-template-flatcar.yaml").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_for_flatcar_with_kubernetes_as_an_extension_comes_up() {
    comes_up(
        "capo-v0.15.0-beta.0",
        "cluster-template-flatcar-sysext.yaml",
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_flavor_with_everything_in_v1beta1_comes_up() {
    our_flavor_comes_up("capi-v1beta1", &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_flavor_for_flatcar_comes_up() {
    let home = tempfile::tempdir().unwrap();
    let cloud = TestCloud::of_flatcar(home.path()).await;
    let manifests = generate(home.path(), &cloud, &["--flavor", "flatcar"]).await;
    let file = home.path().join("x.yaml");
    std::fs::write(&file, manifests).unwrap();
    let file = file.to_str().unwrap();
    let args = ["--cloud", "simulated", "--exit-when-ready", "-f", file];
    let mut up = Up::start(home.path(), &args, &cloud.variables());
    up.ready().await;
    assert_eq!(up.ended().await, Some(0), "{}", up.story());
}

#[tokio::test(flavor = "multi_thread")]
async fn our_flavor_for_flatcar_comes_up_on_the_cloud_of_up() {
    our_flavor_comes_up("flatcar", &[]).await;
}

/// One control plane machine and one worker on the cloud of `up`.
async fn our_flavor_comes_up(flavor: &str, variables: &[(&str, &str)]) {
    let home = tempfile::tempdir().unwrap();
    let args = [
        "--flavor",
        flavor,
        "--control-plane-machine-count",
        "1",
        "--worker-machine-count",
        "1",
        "--exit-when-ready",
    ];
    let mut up = Up::start(home.path(), &args, variables);
    up.ready().await;
    assert_eq!(up.ended().await, Some(0), "{}", up.story());
}

#[tokio::test(flavor = "multi_thread")]
async fn our_flavor_for_flatcar_with_kubernetes_as_an_extension_comes_up_on_the_cloud_of_up() {
    our_flavor_comes_up("flatcar-sysext", &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_flavor_with_a_class_comes_up_on_the_cloud_of_up() {
    our_flavor_comes_up("topology", &[]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn our_flavor_with_a_class_comes_up_with_kubernetes_as_an_extension_of_flatcar() {
    let variables = [
        ("INJECT_IGNITION_SYSEXT", "true"),
        ("OPENSTACK_IMAGE_NAME", "flatcar-stable"),
    ];
    our_flavor_comes_up("topology", &variables).await;
}
