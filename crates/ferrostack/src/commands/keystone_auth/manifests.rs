//! `generate keystone-auth`: the webhook as a Deployment or a static pod, and, as comments, the files of the API server.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use keystone_auth::keystone::normal_url;
use secrecy::{ExposeSecret, SecretString};

use crate::cli::GenerateKeystone;
use crate::commands::cloud_controller_manager::manifests::{IMAGE, NAMESPACE};
use crate::pki;

const RBAC: &str = include_str!("../../../../../config/keystone-auth/rbac.yaml");
const POLICY: &str = include_str!("../../../../../config/keystone-auth/policy.yaml");
const SYNC: &str = include_str!("../../../../../config/keystone-auth/sync.yaml");
const DEPLOYMENT: &str = include_str!("../../../../../config/keystone-auth/deployment.yaml");
const STATIC_POD: &str = include_str!("../../../../../config/keystone-auth/static-pod.yaml");
const AUTHORIZATION: &str = include_str!("../../../../../config/keystone-auth/authorization.yaml");

/// Flag of the Deployment before a further flag.
const STRICT: &str = "        - --policy-mode=strict\n";
/// Additions of `--prune`: the rights on namespaces, the flags, and the Secret with the service user.
const NAMESPACES: &str = "  resources: [namespaces]\n  verbs: [get, create]\n";
const PRUNED: &str = "  resources: [namespaces]\n  verbs: [get, list, create, delete]\n";
const PRUNE: &str =
    "        - --prune=delete\n        - --cloud-config=/etc/keystone-auth/cloud.conf\n";
const MOUNT: &str = "volumeMounts: [";
const MOUNTED: &str =
    "volumeMounts: [{name: cloud-config, mountPath: /etc/keystone-auth, readOnly: true}, ";
const VOLUME: &str = "      - name: cloud-config\n        secret:\n          secretName: keystone-auth-cloud-config\n          defaultMode: 0440\n";
/// Placeholder of the manifests for the URL of Keystone.
const URL: &str = "KEYSTONE_URL";
/// Directory of an API server for its files.
const DIRECTORY: &str = "/etc/kubernetes/keystone-auth";

/// Manifests, as one YAML stream. The Deployment's stream has a certificate, for ten years, with its key.
pub(crate) fn render(args: &GenerateKeystone) -> anyhow::Result<SecretString> {
    let url =
        normal_url(&args.keystone_url).map_err(|why| anyhow::anyhow!("--keystone-url: {why}"))?;
    let fill = |file: &str| {
        let namespace = format!("namespace: {}\n", args.namespace);
        let file = file.replace(&format!("namespace: {NAMESPACE}\n"), &namespace);
        file.replace(IMAGE, &args.image).replace(URL, &url)
    };
    let (objects, authority, server) = match args.static_pod {
        true => {
            let authority = "certificate-authority: /etc/kubernetes/pki/ca.crt".to_owned();
            (fill(STATIC_POD), authority, "127.0.0.1".to_owned())
        }
        false => {
            let host = format!("k8s-keystone-auth-service.{}.svc", args.namespace);
            let names = vec![host.clone(), format!("{host}.cluster.local")];
            let (authority, identity) = pki::self_issued("k8s-keystone-auth", names)?;
            let secret = secret(&args.namespace, &identity);
            // ConfigMaps are those of kube-system, wherever the webhook and its account are.
            let account = "name: k8s-keystone\n  namespace: ";
            let fixed = |file: &str| {
                let moved = format!("{account}{}\n", args.namespace);
                file.replace(&format!("{account}{NAMESPACE}\n"), &moved)
            };
            let mut parts = vec![fixed(RBAC), fixed(POLICY), secret];
            let mut deployment = fill(DEPLOYMENT);
            if args.sync {
                let sync = fixed(SYNC);
                parts.push(match args.prune {
                    true => sync.replace(NAMESPACES, PRUNED),
                    false => sync,
                });
                let flag = "        - --sync-configmap-name=keystone-sync-policy\n";
                deployment = deployment.replace(STRICT, &format!("{STRICT}{flag}"));
            }
            if args.prune {
                deployment = deployment.replace(STRICT, &format!("{STRICT}{PRUNE}"));
                deployment = deployment.replace(MOUNT, MOUNTED);
                deployment.push_str(VOLUME);
            }
            parts.push(deployment);
            let objects = parts.join("---\n");
            let authority = format!("certificate-authority-data: {}", STANDARD.encode(authority));
            (objects, authority, host)
        }
    };
    let files = [
        (
            format!("{DIRECTORY}/webhook.kubeconfig"),
            kubeconfig(&server, &authority),
        ),
        (
            format!("{DIRECTORY}/authorization.yaml"),
            AUTHORIZATION.to_owned(),
        ),
    ];
    let mut text = objects;
    text.push_str(
        "# Files of each API server, and its flags for them:\n\
         #   --authentication-token-webhook-config-file=/etc/kubernetes/keystone-auth/webhook.kubeconfig\n\
         #   --authentication-token-webhook-version=v1\n\
         #   --authorization-config=/etc/kubernetes/keystone-auth/authorization.yaml (in place of --authorization-mode)\n",
    );
    for (name, content) in files {
        text.push_str(&format!("#\n# {name}:\n"));
        for line in content.lines() {
            text.push_str(&format!("#   {line}\n"));
        }
    }
    Ok(SecretString::from(text))
}

fn secret(namespace: &str, identity: &pki::Identity) -> String {
    let encoded = |text: &str| STANDARD.encode(text);
    format!(
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: keystone-auth-certs\n  namespace: {namespace}\ntype: kubernetes.io/tls\n\
         data:\n  tls.crt: {}\n  tls.key: {}\n",
        encoded(&identity.certificate),
        encoded(identity.key.expose_secret()),
    )
}

fn kubeconfig(server: &str, authority: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\nclusters:\n- name: webhook\n  cluster:\n    server: https://{server}:8443/webhook\n    {authority}\n\
         users:\n- name: webhook\n  user: {{}}\ncontexts:\n- name: webhook\n  context: {{cluster: webhook, user: webhook}}\n\
         current-context: webhook\n"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::commands::keystone_auth::{check, tls};

    fn rendered(static_pod: bool) -> (Vec<Value>, String) {
        rendered_with(static_pod, false, false)
    }

    fn rendered_with(static_pod: bool, sync: bool, prune: bool) -> (Vec<Value>, String) {
        let args = GenerateKeystone {
            keystone_url: "https://k:5000".to_owned(),
            static_pod,
            sync,
            prune,
            namespace: "auth".to_owned(),
            image: "registry/ferrostack:1".to_owned(),
        };
        let text = render(&args).unwrap().expose_secret().to_owned();
        (serde_saphyr::from_multiple(&text).unwrap(), text)
    }

    /// A file of the API server in the comments.
    fn file(text: &str, name: &str) -> String {
        let (_, rest) = text
            .split_once(&format!("# {DIRECTORY}/{name}:\n"))
            .unwrap();
        let lines = rest.lines().map_while(|line| line.strip_prefix("#   "));
        lines.map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn the_objects_are_those_of_the_examples_with_less_rights_and_a_certificate() {
        let (all, text) = rendered(false);
        let of = |kind: &str, name: &str| {
            let found = all
                .iter()
                .find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
            found.unwrap_or_else(|| panic!("{kind} {name}")).clone()
        };
        assert_eq!(
            of("ConfigMap", "k8s-auth-policy")["metadata"]["namespace"],
            "kube-system"
        );
        assert_eq!(
            of("Role", "k8s-keystone-auth")["metadata"]["namespace"],
            "kube-system"
        );
        assert_eq!(
            of("RoleBinding", "k8s-keystone-auth")["subjects"][0]["namespace"],
            "auth"
        );
        for (kind, name) in [
            ("ServiceAccount", "k8s-keystone"),
            ("Secret", "keystone-auth-certs"),
            ("Service", "k8s-keystone-auth-service"),
            ("Deployment", "k8s-keystone-auth"),
        ] {
            assert_eq!(of(kind, name)["metadata"]["namespace"], "auth", "{kind}");
        }
        let container =
            of("Deployment", "k8s-keystone-auth")["spec"]["template"]["spec"]["containers"][0]
                .clone();
        assert_eq!(container["image"], "registry/ferrostack:1");
        assert!(
            container["args"]
                .to_string()
                .contains("--keystone-url=https://k:5000/v3")
        );
        let data = &of("Secret", "keystone-auth-certs")["data"];
        let decoded = |key: &str| {
            String::from_utf8(STANDARD.decode(data[key].as_str().unwrap()).unwrap()).unwrap()
        };
        tls::config(&decoded("tls.crt"), &decoded("tls.key"), None).unwrap();
        assert!(
            file(&text, "webhook.kubeconfig")
                .contains("https://k8s-keystone-auth-service.auth.svc:8443/webhook")
        );
        let policy = of("ConfigMap", "k8s-auth-policy")["data"]["policies"]
            .as_str()
            .unwrap()
            .to_owned();
        keystone_auth::policy::Policy::compile(&policy, keystone_auth::policy::Mode::Strict)
            .unwrap();
    }

    #[test]
    fn what_is_written_to_the_cluster_needs_rights_which_are_there_only_then() {
        let (without, _) = rendered(false);
        assert!(without.iter().all(|it| it["kind"] != "ClusterRole"));
        let (with, _) = rendered_with(false, true, false);
        let of = |kind: &str| with.iter().find(|it| it["kind"] == kind).unwrap();
        assert_eq!(of("ClusterRoleBinding")["subjects"][0]["namespace"], "auth");
        let rules = of("ClusterRole")["rules"].as_array().unwrap();
        let bind = rules.iter().find(|it| it["verbs"][0] == "bind").unwrap();
        assert!(bind["resourceNames"].is_array());
        let pod = &of("Deployment")["spec"]["template"]["spec"];
        let flags = pod["containers"][0]["args"].to_string();
        assert!(
            flags.contains("--sync-configmap-name=keystone-sync-policy"),
            "{flags}"
        );
        let named = |name: &str| {
            with.iter()
                .find(|it| it["metadata"]["name"] == name)
                .unwrap()
        };
        let text = named("keystone-sync-policy")["data"]["syncConfig"]
            .as_str()
            .unwrap();
        keystone_auth::sync::Config::parse(text).unwrap();
    }

    #[test]
    fn deletion_has_a_service_user_and_the_right_to_list_and_delete_namespaces() {
        use clap::Parser as _;

        let verbs = |all: &[Value]| {
            let role = all.iter().find(|it| it["kind"] == "ClusterRole").unwrap();
            let rules = role["rules"].as_array().unwrap().clone();
            let of = rules
                .into_iter()
                .find(|it| it["resources"][0] == "namespaces");
            of.unwrap()["verbs"].to_string()
        };
        let (without, _) = rendered_with(false, true, false);
        assert_eq!(verbs(&without), r#"["get","create"]"#);
        let (with, _) = rendered_with(false, true, true);
        assert_eq!(verbs(&with), r#"["get","list","create","delete"]"#);
        let pod = with.last().unwrap()["spec"]["template"]["spec"].clone();
        let mounts = pod["containers"][0]["volumeMounts"].as_array().unwrap();
        let volumes = pod["volumes"].as_array().unwrap();
        assert_eq!((mounts.len(), volumes.len()), (2, 2));
        assert!(volumes.iter().any(|it| it["name"] == mounts[0]["name"]));
        let flags = pod["containers"][0]["args"].as_array().unwrap().clone();
        let flags = flags.iter().map(|flag| flag.as_str().unwrap().to_owned());
        let words: Vec<String> = std::iter::once("ferrostack".to_owned())
            .chain(flags)
            .collect();
        assert!(words.contains(&"--prune=delete".to_owned()), "{words:?}");
        assert!(crate::cli::Cli::try_parse_from(words).is_ok());
    }

    #[test]
    fn a_static_pod_is_one_object_that_needs_no_api_server() {
        let (all, _) = rendered(true);
        assert_eq!(all.len(), 1);
        assert_eq!(
            (&all[0]["kind"], &all[0]["spec"]["hostNetwork"]),
            (&"Pod".into(), &true.into())
        );
        assert!(!all[0].to_string().contains("configmap"));
    }

    #[test]
    fn the_flags_and_files_are_ones_that_work() {
        use clap::Parser as _;

        for static_pod in [true, false] {
            let (all, text) = rendered(static_pod);
            let directory = tempfile::tempdir().unwrap();
            let write = |name: &str| {
                let path = directory.path().join(name);
                std::fs::write(&path, file(&text, name)).unwrap();
                path.display().to_string()
            };
            let command = format!(
                "ferrostack keystone-auth check --webhook-kubeconfig {} --authorization-config {}",
                write("webhook.kubeconfig"),
                write("authorization.yaml")
            );
            let crate::cli::Command::KeystoneAuth(crate::cli::KeystoneAuth::Check(args)) =
                crate::cli::Cli::try_parse_from(command.split(' '))
                    .unwrap()
                    .command
            else {
                panic!("{command}");
            };
            let (lines, usable) = check::run(&args);
            assert!(usable && !lines.contains("doubtful"), "{lines}");
            let pod = all.last().unwrap();
            let spec = if static_pod {
                &pod["spec"]
            } else {
                &pod["spec"]["template"]["spec"]
            };
            let flags = spec["containers"][0]["args"].as_array().unwrap().clone();
            let flags = flags.iter().map(|flag| flag.as_str().unwrap().to_owned());
            let words = std::iter::once("ferrostack".to_owned()).chain(flags);
            assert!(crate::cli::Cli::try_parse_from(words).is_ok());
        }
    }
}
