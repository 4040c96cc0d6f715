use serde_json::{Value, json};

use super::super::FILES;
use super::*;

fn documents() -> Vec<Value> {
    let all = FILES.iter();
    all.flat_map(|file| serde_saphyr::from_multiple::<Value>(file).unwrap())
        .collect()
}

/// The manifests with these values, and what is named of them.
fn applied(text: &str) -> (Vec<Value>, Vec<String>) {
    let values = parse(text).unwrap();
    let mut documents = documents();
    apply(&mut documents, &values, "kube-system").unwrap();
    (documents, values.notes)
}

fn rejected(text: &str) -> String {
    let error =
        parse(text).map(|values| apply(&mut documents(), &values, "kube-system").unwrap_err());
    match error {
        Ok(error) | Err(error) => format!("{error:#}"),
    }
}

fn of_kind<'a>(all: &'a [Value], kind: &str) -> &'a Value {
    all.iter().find(|it| it["kind"] == kind).unwrap()
}

#[test]
fn an_empty_file_and_the_defaults_for_nothing_change_nothing() {
    for text in [
        "",
        "{}",
        "commonAnnotations: {}\nimage: {tag: \"\"}\npriorityClassName:\nlivenessProbe: {}\ncloudConfig: {global:, route:}\n",
    ] {
        let (all, notes) = applied(text);
        assert_eq!(all, documents(), "{text}");
        assert!(notes.is_empty(), "{notes:?}");
    }
}

#[test]
fn every_key_of_the_chart_has_its_effect_or_is_named_to_have_none() {
    let (all, notes) = applied(
        r#"
commonAnnotations: {owner: ops}
imagePullSecrets: [one, {name: two}]
image: {repository: registry.example.net/occm, tag: v1}
extraInitContainers: [{name: wait, image: busybox}]
extraEnv: [{name: OS_CCM_REGIONAL, value: "true"}]
resources: {requests: {cpu: 200m}}
livenessProbe: {httpGet: {path: /livez, port: 10258}}
readinessProbe: {httpGet: {path: /readyz, port: 10258}}
dnsPolicy: Default
nodeSelector: {disk: ssd, node-role.kubernetes.io/control-plane: null}
tolerations: [{operator: Exists}]
podAnnotations: {note: a}
podLabels: {team: b}
podSecurityContext: {runAsUser: 2000}
enabledControllers: [cloud-node, -route]
controllerExtraArgs: |-
  - --node-monitor-period=10s
serviceMonitor: {enabled: true}
secret: {enabled: true, create: true, name: conf}
logVerbosityLevel: 4
cloudConfig:
  global: {auth-url: "https://k", user-id: u, password: 'p"\', tenant-id: t}
  loadBalancer: {max-shared-lb: 3, create-monitor: true}
hostAliases: [{ip: 192.0.2.1, hostnames: [keystone]}]
priorityClassName: high
extraVolumes: [{name: certs, hostPath: {path: /etc/pki}}]
extraVolumeMounts: [{name: certs, mountPath: /etc/pki}]
cluster: {name: blue}
clusterRoleName: role
serviceAccountName: account
"#,
    );
    let named: Vec<&str> = notes.iter().filter_map(|it| it.split(' ').next()).collect();
    assert_eq!(
        named,
        ["image.repository", "image.tag", "serviceMonitor.enabled"]
    );
    assert!(
        all.iter()
            .all(|it| it["metadata"]["annotations"]["owner"] == "ops")
    );
    let secret = of_kind(&all, "Secret");
    assert_eq!(secret["metadata"]["name"], "conf");
    let text = secret["stringData"]["cloud.conf"].as_str().unwrap();
    let program = cloud_conf::Program::CloudControllerManager;
    let conf = cloud_conf::CloudConf::parse(text, program).unwrap().conf;
    assert_eq!(conf.load_balancer.max_shared, 3);
    assert!(text.contains(r#"password = "p\"\\""#), "the quotes");
    assert_eq!(
        of_kind(&all, "ServiceAccount")["metadata"]["name"],
        "account"
    );
    assert_eq!(of_kind(&all, "ClusterRole")["metadata"]["name"], "role");
    let binding = of_kind(&all, "ClusterRoleBinding");
    assert_eq!(binding["roleRef"]["name"], "role");
    assert_eq!(binding["subjects"][0]["name"], "account");
    let template = &of_kind(&all, "DaemonSet")["spec"]["template"];
    assert_eq!(template["metadata"]["labels"]["team"], "b");
    assert_eq!(
        template["metadata"]["annotations"],
        json!({"owner": "ops", "note": "a"})
    );
    let pod = &template["spec"];
    let expected = json!({"serviceAccountName": "account", "imagePullSecrets": [{"name": "one"}, {"name": "two"}],
        "dnsPolicy": "Default", "nodeSelector": {"disk": "ssd"}, "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "high", "initContainers": [{"name": "wait", "image": "busybox"}],
        "volumes": [{"name": "cloud-config", "secret": {"secretName": "conf"}}, {"name": "certs", "hostPath": {"path": "/etc/pki"}}]});
    for (key, value) in expected.as_object().unwrap() {
        assert_eq!(&pod[key], value, "{key}");
    }
    assert_eq!(pod["securityContext"]["runAsUser"], 2000);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    let manager = &pod["containers"][0];
    assert_eq!(
        manager["args"],
        json!([
            "cloud-controller-manager",
            "--cloud-config=/etc/config/cloud.conf",
            "--leader-elect=true",
            "--bind-address=127.0.0.1",
            "--v=4",
            "--cluster-name=blue",
            "--controllers=cloud-node,-route",
            "--node-monitor-period=10s"
        ])
    );
    assert_eq!(manager["resources"], json!({"requests": {"cpu": "200m"}}));
    assert_eq!(manager["livenessProbe"]["httpGet"]["path"], "/livez");
    assert_eq!(manager["readinessProbe"]["httpGet"]["path"], "/readyz");
    assert_eq!(manager["env"][0]["name"], "OS_CCM_REGIONAL");
    assert_eq!(manager["volumeMounts"].as_array().unwrap().len(), 2);
}

#[test]
fn the_flags_of_the_values_are_flags_of_the_manager() {
    use clap::Parser as _;
    let (all, _) = applied(
        "logVerbosityLevel: 2\ncluster: {name: a}\nenabledControllers: [cloud-node, route]\n",
    );
    let args =
        of_kind(&all, "DaemonSet")["spec"]["template"]["spec"]["containers"][0]["args"].clone();
    let args = args
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it.as_str().unwrap());
    crate::cli::Cli::try_parse_from(std::iter::once("ferrostack").chain(args)).unwrap();
}

#[test]
fn a_flag_is_there_once_and_that_of_extra_args_counts() {
    let (all, _) = applied(
        "logVerbosityLevel: 2\ncluster: {name: a}\ncontrollerExtraArgs: [-v=4, --cluster-name=b, --bind-address=::1]\n",
    );
    let pod = &of_kind(&all, "DaemonSet")["spec"]["template"]["spec"];
    assert_eq!(
        pod["containers"][0]["args"],
        json!([
            "cloud-controller-manager",
            "--cloud-config=/etc/config/cloud.conf",
            "--leader-elect=true",
            "-v=4",
            "--cluster-name=b",
            "--bind-address=::1"
        ])
    );
}

#[test]
fn without_a_secret_nothing_is_mounted_for_one() {
    let (all, _) = applied("secret: {enabled: false}\ncloudConfig: {global: {auth-url: x}}\n");
    assert!(all.iter().all(|it| it["kind"] != "Secret"));
    let pod = &of_kind(&all, "DaemonSet")["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"], json!([]));
    assert_eq!(pod["containers"][0]["volumeMounts"], json!([]));
    // One that is there already.
    let (all, _) = applied("secret: {create: false, name: there}\n");
    assert!(all.iter().all(|it| it["kind"] != "Secret"));
    let pod = &of_kind(&all, "DaemonSet")["spec"]["template"]["spec"];
    assert_eq!(pod["volumes"][0]["secret"]["secretName"], "there");
}

#[test]
fn what_the_chart_does_not_have_or_the_manager_refuses_is_named() {
    for (text, word) in [
        (
            "replicas: 3",
            "replicas is no key of the chart; there are: cloudConfig, cluster, ",
        ),
        (
            "cloudConfig: {globl: {}}",
            "cloudConfig.globl is no key of the chart; there are: blockStorage, ",
        ),
        (
            "tolerations: {}\nnodeSelector: [a]",
            "nodeSelector: this is not a map",
        ),
        ("podLabels: {k8s-app: x}", "podLabels: the label `k8s-app`"),
        ("secret: {create: true}", "cloudConfig: there is nothing"),
        (
            "cloudConfig: {global: {auth-url: [a]}}",
            "cloudConfig.global.auth-url: this is not the value of one key",
        ),
        (
            "cloudConfig: {loadBalancer: {max-shared-lb: many}}",
            "max-shared-lb",
        ),
        (
            "enabledControllers: [1]",
            "enabledControllers: these are not all names",
        ),
        (
            "controllerExtraArgs: '{{ .Values.x }}'",
            "controllerExtraArgs: templates of Helm are not evaluated",
        ),
    ] {
        let error = rejected(text);
        assert!(error.contains(word), "{text}: {error}");
    }
}
