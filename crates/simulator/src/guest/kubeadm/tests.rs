use proptest::prelude::*;

use super::*;

const INIT_V1BETA4: &str = r#"---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: demo
controlPlaneEndpoint: 127.1.2.3:6443
kubernetesVersion: v1.34.1
networking:
  dnsDomain: cluster.local
  podSubnet: 192.168.0.0/16
  serviceSubnet: 10.96.0.0/12
controllerManager:
  extraArgs:
  - name: cloud-provider
    value: external
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
localAPIEndpoint: {}
nodeRegistration:
  imagePullPolicy: IfNotPresent
  name: node-0
  kubeletExtraArgs:
  - name: cloud-provider
    value: external
  - name: provider-id
    value: openstack:///'11-22'
  taints: null
"#;

const JOIN_V1BETA3: &str = r#"---
apiVersion: kubeadm.k8s.io/v1beta3
kind: JoinConfiguration
discovery:
  bootstrapToken:
    apiServerEndpoint: 127.1.2.3:6443
    caCertHashes:
    - sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789ABCDEF
    token: abcdef.0123456789abcdef
nodeRegistration:
  kubeletExtraArgs:
    provider-id: openstack:///'11-22'
  name: worker-0
  taints: []
"#;

#[test]
fn init_reads_both_documents() {
    let init = init(INIT_V1BETA4).unwrap();
    assert_eq!(
        init.cluster.endpoint(),
        Some(("127.1.2.3".to_owned(), 6443))
    );
    assert_eq!(
        init.cluster.networking.service_subnet.as_deref(),
        Some("10.96.0.0/12")
    );
    assert_eq!(init.node.name.as_deref(), Some("node-0"));
    assert_eq!(
        init.node.kubelet_argument("provider-id").as_deref(),
        Some("openstack:///11-22")
    );
    assert_eq!(
        init.node.kubelet_argument("cloud-provider").as_deref(),
        Some("external")
    );
    assert_eq!(init.node.kubelet_argument("node-ip"), None);
    assert_eq!((init.bind_port, init.node.taints), (6443, None));
    assert_eq!(
        init.document["controllerManager"]["extraArgs"][0]["name"],
        "cloud-provider"
    );
}

#[test]
fn join_reads_discovery_and_tells_workers_from_control_planes() {
    let worker = join(JOIN_V1BETA3).unwrap();
    assert_eq!(worker.endpoint, "127.1.2.3:6443");
    assert_eq!(worker.discovery_token.id, "abcdef");
    assert_eq!(worker.ca_hashes.len(), 1);
    assert_eq!(
        worker.node.kubelet_argument("provider-id").as_deref(),
        Some("openstack:///11-22")
    );
    assert_eq!(worker.node.taints, Some(Vec::new()));
    assert_eq!(worker.control_plane, None);
    let text = format!("{JOIN_V1BETA3}controlPlane:\n  localAPIEndpoint:\n    bindPort: 7443\n");
    assert_eq!(join(&text).unwrap().control_plane, Some(7443));
    let text = format!("{JOIN_V1BETA3}controlPlane: {{}}\n");
    assert_eq!(join(&text).unwrap().control_plane, Some(6443));
}

#[test]
fn the_command_is_found_in_any_form() {
    let shell = |line: &str| vec![Command::Shell(line.to_owned())];
    let program = |words: &[&str]| {
        vec![Command::Program(
            words.iter().map(|w| (*w).to_owned()).collect(),
        )]
    };
    let init = Some(Run::Init("/a.yaml".to_owned()));
    let join = Some(Run::Join("/a.yaml".to_owned()));
    for (commands, expected) in [
        (
            shell("kubeadm init --config /a.yaml  && echo success > /run/x"),
            init.clone(),
        ),
        (
            shell("set -e; /usr/bin/kubeadm join --config=/a.yaml --v 5"),
            join.clone(),
        ),
        (shell("(kubeadm join --config '/a.yaml')"), join.clone()),
        (
            program(&["kubeadm", "init", "--config", "/a.yaml"]),
            init.clone(),
        ),
        (
            program(&["sh", "-c", "kubeadm init --config /a.yaml || false"]),
            init,
        ),
        (shell("echo kubeadm"), None),
        (shell("kubeadm version"), None),
        (Vec::new(), None),
    ] {
        assert_eq!(command(&commands).unwrap(), expected, "{commands:?}");
    }
    assert_eq!(
        command(&shell("kubeadm init")),
        Err(Error::NoConfig("init"))
    );
}

#[test]
fn endpoints_are_split_as_kubeadm_does() {
    for (text, expected) in [
        ("127.0.0.1:6443", Some(("127.0.0.1", 6443))),
        ("127.0.0.1", Some(("127.0.0.1", 6443))),
        ("api.example.com:443", Some(("api.example.com", 443))),
        ("[fd00::1]:8443", Some(("fd00::1", 8443))),
        ("fd00::1", Some(("fd00::1", 6443))),
        ("", None),
        (":6443", None),
        ("a:b", None),
        ("a:0", None),
        ("a b", None),
        ("[x]:1", None),
    ] {
        let expected = expected.map(|(host, port)| (host.to_owned(), port));
        assert_eq!(split_endpoint(text), expected, "{text}");
    }
}

#[test]
fn mistakes_are_reported_as_kubeadm_does() {
    let changed = |text: &str, from: &str, to: &str| text.replace(from, to);
    for (text, message) in [
        ("a: [".to_owned(), "invalid YAML"),
        (String::new(), "no ClusterConfiguration"),
        (changed(INIT_V1BETA4, "v1beta4", "v1beta2"), "not supported"),
        (
            changed(INIT_V1BETA4, "v1.34.1", "v1.30.1"),
            "no kind \"ClusterConfiguration\"",
        ),
        (changed(INIT_V1BETA4, "v1.34.1", "newest"), "doesn't match"),
        (
            changed(INIT_V1BETA4, "127.1.2.3:6443", "a:b"),
            "controlPlaneEndpoint",
        ),
        (
            changed(INIT_V1BETA4, "v1beta4", "v1beta3"),
            "cannot unmarshal array",
        ),
    ] {
        let error = init(&text).unwrap_err().to_string();
        assert!(error.contains(message), "{error:?} lacks {message:?}");
    }
    for (from, to, message) in [
        ("JoinConfiguration", "Other", "no JoinConfiguration"),
        ("abcdef.0123456789abcdef", "abcdef.short", "not of the form"),
        ("sha256:", "md5:", "invalid public key hash"),
        ("127.1.2.3:6443", "''", "apiServerEndpoint"),
        ("bootstrapToken:", "other:", "bootstrapToken or file"),
        ("v1beta3", "v1beta4", "cannot unmarshal object"),
    ] {
        let error = join(&changed(JOIN_V1BETA3, from, to))
            .unwrap_err()
            .to_string();
        assert!(error.contains(message), "{error:?} lacks {message:?}");
        assert!(!error.contains("abcdef.0123"), "no token in {error:?}");
    }
}

proptest! {
    #[test]
    fn files_and_commands_never_panic(text in "[-\\[\\]{}:, \na-zA-Z0-9./'\"]{0,160}") {
        let _ = init(&text);
        let _ = join(&text);
        let _ = join(&format!("apiVersion: kubeadm.k8s.io/v1beta4\nkind: JoinConfiguration\n{text}"));
        let _ = command(&[Command::Shell(text.clone())]);
        let _ = split_endpoint(&text);
    }
}

#[test]
fn certificates_are_valid_for_a_year_or_the_period_of_the_configuration() {
    let validity = |period: Option<&str>| {
        ClusterConfiguration {
            certificate_validity_period: period.map(str::to_owned),
            ..ClusterConfiguration::default()
        }
        .certificate_validity()
    };
    let hour = Duration::from_secs(3600);
    assert_eq!(validity(None).unwrap(), 365 * 24 * hour);
    assert_eq!(validity(Some("720h0m0s")).unwrap(), 30 * 24 * hour);
    assert_eq!(validity(Some("1h30m")).unwrap(), 3 * hour / 2);
    for wrong in ["", "720", "h", "1d", "-1h", "99999999999999999999h"] {
        let error = validity(Some(wrong)).unwrap_err();
        assert!(error.contains("certificateValidityPeriod"), "{error}");
    }
}
