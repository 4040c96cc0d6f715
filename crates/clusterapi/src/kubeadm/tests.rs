use api::bootstrap::v1beta2 as spec;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    ApiVersion, ClusterFacts, cluster_document, go_duration, host_port, init_document,
    join_document, with_local_mode,
};
use api::version::Version;

fn facts() -> ClusterFacts {
    ClusterFacts {
        cluster_name: "demo".to_owned(),
        control_plane_endpoint: "203.0.113.5:6443".to_owned(),
        kubernetes_version: "v1.34.1".to_owned(),
        dns_domain: Some("cluster.local".to_owned()),
        pod_subnet: Some("192.168.0.0/16".to_owned()),
        service_subnet: None,
    }
}

fn cluster() -> spec::ClusterConfiguration {
    serde_json::from_value(json!({
        "apiServer": {
            "extraArgs": [{"name": "v", "value": "1"}, {"name": "v", "value": "2"}],
            "extraEnvs": [{"name": "A", "value": "b"}],
            "certSANs": ["api.example.org"],
        },
        "etcd": {"local": {"extraArgs": [{"name": "quota", "value": "8"}]}},
        "certificateValidityPeriodDays": 90,
        "caCertificateValidityPeriodDays": 3650,
        "encryptionAlgorithm": "ECDSA-P256",
        "featureGates": {"X": true},
    }))
    .unwrap()
}

fn join() -> spec::JoinConfiguration {
    serde_json::from_value(json!({
        "controlPlane": {},
        "nodeRegistration": {
            "name": "{{ local_hostname }}",
            "kubeletExtraArgs": [
                {"name": "cloud-provider", "value": "external"},
                {"name": "provider-id", "value": "openstack:///'{{ instance_id }}'"},
            ],
            "imagePullSerial": true,
            "taints": [],
        },
        "discovery": {"bootstrapToken": {
            "token": "abcdef.0123456789abcdef",
            "apiServerEndpoint": "203.0.113.5:6443",
            "caCertHashes": ["sha256:00"],
        }},
        "timeouts": {"tlsBootstrapSeconds": 300, "controlPlaneComponentHealthCheckSeconds": 60},
    }))
    .unwrap()
}

#[test]
fn v1beta4_has_lists_durations_and_certificate_settings() {
    let text = cluster_document(&cluster(), &facts(), None, ApiVersion::V1Beta4);
    insta::assert_snapshot!(text);
    insta::assert_snapshot!(join_document(&join(), ApiVersion::V1Beta4));
}

#[test]
fn v1beta3_leaves_out_what_it_cannot_say() {
    let timeouts = join().timeouts;
    let text = cluster_document(&cluster(), &facts(), timeouts.as_ref(), ApiVersion::V1Beta3);
    insta::assert_snapshot!(text);
    insta::assert_snapshot!(join_document(&join(), ApiVersion::V1Beta3));
}

#[test]
fn init_tells_tokens_and_endpoint() {
    let init: spec::InitConfiguration = serde_json::from_value(json!({
        "bootstrapTokens": [{"token": "abcdef.0123456789abcdef", "ttlSeconds": 900}],
        "skipPhases": ["addon/kube-proxy"],
    }))
    .unwrap();
    insta::assert_snapshot!(init_document(&init, ApiVersion::V1Beta4), @r#"
    apiVersion: kubeadm.k8s.io/v1beta4
    bootstrapTokens:
    - token: abcdef.0123456789abcdef
      ttl: "15m0s"
    kind: InitConfiguration
    localAPIEndpoint: {}
    nodeRegistration: {}
    skipPhases:
    - addon/kube-proxy
    "#);
}

#[test]
fn the_api_version_follows_kubernetes() {
    for (version, expected) in [
        ("v1.21.14", None),
        ("v1.22.0", Some(ApiVersion::V1Beta3)),
        ("v1.30.9", Some(ApiVersion::V1Beta3)),
        ("v1.31.0-alpha.1", Some(ApiVersion::V1Beta4)),
        ("v1.31.0", Some(ApiVersion::V1Beta4)),
        ("v1.36.0", Some(ApiVersion::V1Beta4)),
    ] {
        let version: Version = version.parse().unwrap();
        assert_eq!(
            ApiVersion::from_version(&version).ok(),
            expected,
            "{version}"
        );
    }
}

#[test]
fn the_kubelet_talks_to_its_own_api_server_where_that_is_not_yet_the_rule() {
    for (version, expected) in [
        ("v1.30.9", None),
        ("v1.31.0", Some(true)),
        ("v1.35.4", Some(true)),
        ("v1.36.0", None),
    ] {
        let config = with_local_mode(
            spec::ClusterConfiguration::default(),
            &version.parse().unwrap(),
        );
        let gate = config
            .feature_gates
            .get("ControlPlaneKubeletLocalMode")
            .copied();
        assert_eq!(gate, expected, "{version}");
    }
    let mut off = spec::ClusterConfiguration::default();
    off.feature_gates
        .insert("ControlPlaneKubeletLocalMode".to_owned(), false);
    let kept = with_local_mode(off.clone(), &"v1.34.0".parse().unwrap());
    assert_eq!(kept, off, "what somebody set stays");
}

#[test]
fn endpoints_with_ipv6_get_brackets() {
    assert_eq!(host_port("203.0.113.5", 6443), "203.0.113.5:6443");
    assert_eq!(host_port("fd00::1", 6443), "[fd00::1]:6443");
    assert_eq!(host_port("[fd00::1]", 6443), "[fd00::1]:6443");
}

proptest! {
    #[test]
    fn any_arguments_survive_the_document(args in proptest::collection::vec(("[a-z-]{1,8}", ".{0,20}"), 0..6)) {
        let list: Vec<_> = args.iter().map(|(name, value)| spec::Arg { name: name.clone(), value: value.clone() }).collect();
        let config = spec::ClusterConfiguration {
            scheduler: Some(spec::Component { extra_args: list, ..Default::default() }),
            ..Default::default()
        };
        let text = cluster_document(&config, &facts(), None, ApiVersion::V1Beta4);
        let read: Value = serde_saphyr::from_str(&text).unwrap();
        let seen: Vec<_> = read["scheduler"]["extraArgs"].as_array().cloned().unwrap_or_default();
        let expected: Vec<_> = args.iter().map(|(name, value)| json!({"name": name, "value": value})).collect();
        prop_assert_eq!(seen, expected);
    }

    #[test]
    fn a_printed_version_reads_as_itself(major in 0..9u64, minor in 0..99u64, patch in 0..99u64, pre in proptest::option::of("[a-z]{1,4}(\\.[1-9][0-9]?)?")) {
        let text = match pre { Some(pre) => format!("{major}.{minor}.{patch}-{pre}"), None => format!("{major}.{minor}.{patch}") };
        let version: Version = text.parse().unwrap();
        prop_assert_eq!(version.to_string(), text);
    }

    #[test]
    fn no_version_text_panics(text in ".{0,20}") {
        let _ = text.parse::<Version>();
    }

    #[test]
    fn durations_end_in_seconds(seconds in 0..10_000_000i64) {
        prop_assert!(go_duration(seconds).ends_with('s'));
    }
}
