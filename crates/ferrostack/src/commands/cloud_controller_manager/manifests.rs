//! `generate cloud-controller-manager`: Secret, permissions and DaemonSet.

mod values;

use std::path::Path;

use anyhow::{Context, bail};
use openstack::config::CloudConfig;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use crate::cli::GenerateCcm;
use crate::cloud;
pub(crate) use crate::defaults::{IMAGE, KUBE_SYSTEM as NAMESPACE};
use crate::environment::Environment;

/// Flag of the DaemonSet before added flags.
const FIRST_FLAG: &str = "        - --cloud-config=/etc/config/cloud.conf\n";

const FILES: [&str; 2] = [
    include_str!("../../../../../config/ccm/rbac.yaml"),
    include_str!("../../../../../config/ccm/daemonset.yaml"),
];

/// Manifests, as one YAML stream; with a cloud of a clouds.yaml, including the Secret `cloud-config` with the
/// credentials of the cloud. `note` reports values of the Go manager's chart without an effect.
pub(crate) fn render(
    args: &GenerateCcm,
    environment: &Environment,
    note: impl Fn(&str),
) -> anyhow::Result<SecretString> {
    let found = match &args.cloud {
        None => None,
        Some(name) => Some((name.as_str(), cloud::find(name, environment)?)),
    };
    let found = found.as_ref().map(|(name, found)| (*name, found));
    let text = stream(found, &args.namespace, &args.image)?;
    match &args.values {
        Some(file) => changed(file, &text, args, note),
        None => Ok(text),
    }
}

/// Manifests with the [`Values`](crate::chart_values::Values) of a file.
fn changed(
    file: &Path,
    manifests: &SecretString,
    args: &GenerateCcm,
    note: impl Fn(&str),
) -> anyhow::Result<SecretString> {
    let title = || format!("--values {}", file.display());
    let text = SecretString::from(std::fs::read_to_string(file).with_context(title)?);
    let values = values::parse(text.expose_secret()).with_context(title)?;
    if args.cloud.is_some() && (values.has("secret") || values::has_cloud(&values)) {
        bail!(
            "--cloud creates the Secret cloud-config: leave it out, or remove `secret` and `cloudConfig` from {}",
            file.display()
        );
    }
    for sentence in &values.notes {
        note(sentence);
    }
    let mut documents: Vec<Value> = serde_saphyr::from_multiple(manifests.expose_secret())?;
    values::apply(&mut documents, &values, &args.namespace).with_context(title)?;
    let texts = documents.iter().map(terminal::yaml);
    let texts: Result<Vec<String>, _> = texts.collect();
    Ok(SecretString::from(texts?.join("---\n")))
}

/// The manifests for a cluster with this name, with credentials.
pub(crate) fn of_cluster(
    cloud: &CloudConfig,
    cluster: &str,
    image: &str,
) -> anyhow::Result<SecretString> {
    let text = stream(Some((&cloud.name, cloud)), NAMESPACE, image)?;
    Ok(named(&text, cluster))
}

/// The manifests for a cluster with this name, with credentials in another Secret, which is not among them.
pub(crate) fn with_secret(
    secret: &str,
    cluster: &str,
    image: &str,
) -> anyhow::Result<SecretString> {
    let text = stream(None, NAMESPACE, image)?;
    let (usual, other) = (
        "secretName: cloud-config\n",
        format!("secretName: {secret}\n"),
    );
    let text = text.expose_secret().replace(usual, &other);
    Ok(named(&SecretString::from(text), cluster))
}

/// The manifests with the name of the cluster among the flags.
fn named(text: &SecretString, cluster: &str) -> SecretString {
    let named = format!("{FIRST_FLAG}        - --cluster-name={cluster}\n");
    SecretString::from(text.expose_secret().replace(FIRST_FLAG, &named))
}

/// Secret `cloud-config` with the credentials of a [`CloudConfig`]; `cloud` is its name in errors.
pub(crate) fn secret(
    name: &str,
    cloud: &CloudConfig,
    namespace: &str,
) -> anyhow::Result<SecretString> {
    let mut cloud = cloud.clone();
    if cloud.ca_pem.is_some() {
        // The path at which the Secret is mounted.
        cloud.cacert = Some("/etc/config/ca.pem".to_owned());
    }
    let generated = cloud_conf::from_cloud(&cloud)
        .map_err(anyhow::Error::msg)
        .with_context(|| format!("cloud `{name}`"))?;
    let mut files = json!({"cloud.conf": generated.text.expose_secret()});
    if let Some(pem) = &cloud.ca_pem {
        files["ca.pem"] = json!(String::from_utf8_lossy(pem));
    }
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque",
        "metadata": {"name": "cloud-config", "namespace": namespace}, "stringData": files});
    Ok(SecretString::from(serde_saphyr::to_string(&secret)?))
}

/// Documents of the manifests; `cloud` has a name for errors.
fn stream(
    cloud: Option<(&str, &CloudConfig)>,
    namespace: &str,
    image: &str,
) -> anyhow::Result<SecretString> {
    let mut documents = Vec::new();
    if let Some((name, found)) = cloud {
        let secret = secret(name, found, namespace)?;
        documents.push(secret.expose_secret().to_owned());
    }
    for file in FILES {
        let file = file.replace(
            &format!("namespace: {NAMESPACE}\n"),
            &format!("namespace: {namespace}\n"),
        );
        documents.push(file.replace(IMAGE, image));
    }
    Ok(SecretString::from(documents.join("---\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANAGER: cloud_conf::Program = cloud_conf::Program::CloudControllerManager;

    fn arguments() -> GenerateCcm {
        GenerateCcm {
            cloud: None,
            namespace: NAMESPACE.to_owned(),
            image: IMAGE.to_owned(),
            values: None,
        }
    }

    fn documents(text: &SecretString) -> Vec<Value> {
        serde_saphyr::from_multiple(text.expose_secret()).unwrap()
    }

    #[test]
    fn a_named_cloud_gives_a_secret_whose_cloud_conf_is_valid() {
        let directory = tempfile::tempdir().unwrap();
        let (file, bundle) = (
            directory.path().join("clouds.yaml"),
            directory.path().join("ca.pem"),
        );
        std::fs::write(&bundle, "-----BEGIN CERTIFICATE-----\n").unwrap();
        let clouds = format!(
            "clouds: {{mine: {{auth: {{auth_url: 'https://k', user_id: u, password: p, project_id: t}}, cacert: '{}'}}}}",
            bundle.display()
        );
        std::fs::write(&file, clouds).unwrap();
        let environment =
            Environment::with(&[("OS_CLIENT_CONFIG_FILE", &file.display().to_string())]);
        let args = GenerateCcm {
            cloud: Some("mine".to_owned()),
            ..arguments()
        };
        let all = documents(&render(&args, &environment, |note| panic!("{note}")).unwrap());
        assert_eq!(
            (&all[0]["kind"], &all[0]["metadata"]["name"]),
            (&json!("Secret"), &json!("cloud-config"))
        );
        let conf = all[0]["stringData"]["cloud.conf"].as_str().unwrap();
        let parsed = cloud_conf::CloudConf::parse(conf, MANAGER).unwrap();
        assert_eq!(parsed.conf.global.ca_file(), Some("/etc/config/ca.pem"));
        assert!(
            all[0]["stringData"]["ca.pem"]
                .as_str()
                .unwrap()
                .contains("BEGIN")
        );
    }

    #[test]
    fn the_manager_of_a_cluster_has_its_name_and_the_ca_that_is_beside_its_credentials() {
        let clouds = "clouds: {mine: {auth: {auth_url: 'https://k', user_id: u, password: p, project_id: t}}}";
        let mut cloud = CloudConfig::parse(clouds, "mine").unwrap();
        cloud.ca_pem = Some(b"-----BEGIN CERTIFICATE-----".to_vec());
        let all = documents(&of_cluster(&cloud, "blue", "registry/ferrostack:1").unwrap());
        let conf = all[0]["stringData"]["cloud.conf"].as_str().unwrap();
        let parsed = cloud_conf::CloudConf::parse(conf, MANAGER).unwrap();
        assert_eq!(parsed.conf.global.ca_file(), Some("/etc/config/ca.pem"));
        let container = &all.last().unwrap()["spec"]["template"]["spec"]["containers"][0];
        let flags = container["args"].as_array().unwrap();
        assert!(flags.contains(&json!("--cluster-name=blue")), "{flags:?}");
        assert_eq!(container["image"], "registry/ferrostack:1");
    }

    #[test]
    fn the_manager_of_a_cluster_may_have_its_credentials_in_another_secret() {
        let all = documents(&with_secret("other", "blue", "registry/ferrostack:1").unwrap());
        assert!(all.iter().all(|it| it["kind"] != "Secret"));
        let pod = &all.last().unwrap()["spec"]["template"]["spec"];
        assert!(
            pod["volumes"]
                .to_string()
                .contains("\"secretName\":\"other\"")
        );
        let flags = pod["containers"][0]["args"].to_string();
        assert!(flags.contains("--cluster-name=blue"), "{flags}");
    }

    #[test]
    fn namespace_and_image_are_those_that_are_given() {
        let args = GenerateCcm {
            namespace: "cloud".to_owned(),
            image: "registry/ferrostack:1".to_owned(),
            ..arguments()
        };
        let text = render(&args, &Environment::default(), |note| panic!("{note}"));
        let all = documents(&text.unwrap());
        let kinds: Vec<_> = all
            .iter()
            .map(|document| document["kind"].as_str().unwrap())
            .collect();
        assert_eq!(
            kinds,
            [
                "ServiceAccount",
                "ClusterRole",
                "ClusterRoleBinding",
                "Role",
                "RoleBinding",
                "DaemonSet"
            ]
        );
        // The record of routes stays where it is.
        assert_eq!(all[3]["metadata"]["namespace"], "kube-system");
        assert_eq!(all[4]["metadata"]["namespace"], "kube-system");
        assert_eq!(all[4]["subjects"][0]["namespace"], "cloud");
        let daemons = &all[5];
        assert_eq!(daemons["metadata"]["namespace"], "cloud");
        assert_eq!(all[2]["subjects"][0]["namespace"], "cloud");
        let container = &daemons["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], "registry/ferrostack:1");
    }
}
