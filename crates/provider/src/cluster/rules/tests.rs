use api::infra::v1beta2::{
    Direction, EtherType, IdentityRef, IdentityType, ManagedGroup, ManagedSecurityGroups,
    OpenStackClusterSpec, SecurityGroupRule as Given,
};
use openstack::network::SecurityGroupRule;

use super::{Remote, observed_key, wanted};

fn spec(groups: Option<ManagedSecurityGroups>) -> OpenStackClusterSpec {
    let mut spec: OpenStackClusterSpec =
        serde_json::from_value(serde_json::json!({"identityRef": {"name": "s", "cloudName": "c"}}))
            .unwrap();
    assert_eq!(
        spec.identity_ref,
        IdentityRef {
            type_: IdentityType::Secret,
            name: "s".into(),
            cloud_name: "c".into(),
            region: None
        }
    );
    spec.managed_security_groups = groups;
    spec
}

/// The rules of a group, one line for each.
fn lines(spec: &OpenStackClusterSpec, role: ManagedGroup) -> Vec<String> {
    let rules = wanted(
        spec,
        &[443, 8132],
        &[Remote::Prefix("10.6.0.0/24".to_owned())],
        false,
    );
    let line = |rule: &super::Rule| {
        let remote = match &rule.remote {
            Remote::Any => "any".to_owned(),
            Remote::Prefix(prefix) => prefix.clone(),
            Remote::Group(id) => id.clone(),
            Remote::Role(role) => format!("{role:?}"),
            Remote::Subnet(family) => format!("the {family}"),
        };
        let ports = rule
            .ports
            .map_or("all".to_owned(), |(a, b)| format!("{a}-{b}"));
        let protocol = rule.protocol.clone().unwrap_or("any".to_owned());
        format!(
            "{:?} {protocol} {ports} {remote} {}",
            rule.direction, rule.description
        )
    };
    rules[&role].iter().map(line).collect()
}

#[test]
fn the_default_rules_are_those_of_the_reference_with_the_api_servers_own_port() {
    let spec = spec(Some(ManagedSecurityGroups::default()));
    assert_eq!(
        lines(&spec, ManagedGroup::ControlPlane),
        [
            "Egress any all any Full open",
            "Egress any all any Full open",
            "Ingress tcp 443-443 any Kubernetes API",
            "Ingress tcp 8132-8132 any Additional port",
            "Ingress tcp 2379-2380 ControlPlane Etcd",
            "Ingress tcp 10250-10250 ControlPlane Kubelet API",
            "Ingress tcp 10250-10250 Worker Kubelet API",
        ]
    );
    assert_eq!(
        lines(&spec, ManagedGroup::Worker),
        [
            "Egress any all any Full open",
            "Egress any all any Full open",
            "Ingress tcp 30000-32767 10.6.0.0/24 Node Port Services",
            "Ingress tcp 30000-32767 Worker Node Port Services",
            "Ingress tcp 30000-32767 ControlPlane Node Port Services",
            "Ingress udp 30000-32767 10.6.0.0/24 Node Port Services",
            "Ingress udp 30000-32767 Worker Node Port Services",
            "Ingress udp 30000-32767 ControlPlane Node Port Services",
            "Ingress tcp 10250-10250 ControlPlane Kubelet API",
            "Ingress tcp 10250-10250 Worker Kubelet API",
        ]
    );
}

#[test]
fn all_traffic_in_the_cluster_replaces_the_rules_for_etcd_and_kubelets() {
    let groups = ManagedSecurityGroups {
        allow_all_in_cluster_traffic: true,
        ..Default::default()
    };
    let lines = lines(&spec(Some(groups)), ManagedGroup::ControlPlane);
    assert_eq!(
        lines[4..],
        [
            "Ingress any all ControlPlane In-cluster Ingress",
            "Ingress any all Worker In-cluster Ingress",
        ]
    );
}

#[test]
fn a_rule_with_managed_groups_fans_out() {
    let rule = Given {
        name: "bgp".into(),
        description: Some("BGP".into()),
        direction: Direction::Ingress,
        ether_type: Some(EtherType::IPv4),
        port_range_min: Some(179),
        port_range_max: Some(179),
        protocol: Some("tcp".into()),
        remote_group_id: None,
        remote_ip_prefix: None,
        remote_managed_groups: vec![ManagedGroup::ControlPlane, ManagedGroup::Worker],
    };
    let groups = ManagedSecurityGroups {
        cluster_nodes_security_group_rules: vec![rule],
        ..Default::default()
    };
    let spec = spec(Some(groups));
    for role in [ManagedGroup::ControlPlane, ManagedGroup::Worker] {
        let lines = lines(&spec, role);
        assert_eq!(
            lines[lines.len() - 2..],
            [
                "Ingress tcp 179-179 ControlPlane BGP",
                "Ingress tcp 179-179 Worker BGP"
            ]
        );
    }
}

#[test]
fn without_managed_groups_there_are_no_rules() {
    assert!(wanted(&spec(None), &[6443], &[], false).is_empty());
}

#[test]
fn neutrons_spellings_are_one() {
    let rule = |protocol: &str, prefix: Option<&str>| {
        observed_key(&SecurityGroupRule {
            direction: "ingress".into(),
            ethertype: "IPv4".into(),
            protocol: Some(protocol.into()),
            remote_ip_prefix: prefix.map(str::to_owned),
            ..Default::default()
        })
    };
    assert_eq!(rule("4", None), rule("ipip", None));
    assert_eq!(
        rule("6", Some("10.6.0.5/24")),
        rule("TCP", Some("10.6.0.0/24"))
    );
    assert_eq!(rule("any", Some("0.0.0.0/0")), rule("", None));
    assert_ne!(rule("tcp", None), rule("udp", None));
}

/// The address families of rules with their remote side, one line for each rule of the worker group.
fn families(spec: &OpenStackClusterSpec, cidrs: &[&str], ipv6: bool) -> Vec<String> {
    let of = |cidr: &&str| Remote::Prefix((*cidr).to_owned());
    let subnets: Vec<_> = cidrs.iter().map(of).collect();
    let rules = wanted(spec, &[6443], &subnets, ipv6);
    let line = |rule: &super::Rule| format!("{:?} {:?}", rule.ether_type, rule.remote);
    let ingress = |rule: &&super::Rule| rule.direction == Direction::Ingress;
    let worker = rules[&ManagedGroup::Worker].iter();
    worker.filter(ingress).map(line).collect()
}

#[test]
fn a_dual_stack_cluster_has_each_rule_for_both_families_and_each_cidr_for_its_own() {
    let all = spec(Some(ManagedSecurityGroups {
        allow_all_in_cluster_traffic: true,
        ..Default::default()
    }));
    let both = families(&all, &["10.6.0.0/24", "2001:db8::/64"], true);
    let of_groups = |role: &str| [format!("IPv4 Role({role})"), format!("IPv6 Role({role})")];
    let in_cluster = [of_groups("ControlPlane"), of_groups("Worker")].concat();
    assert_eq!(both[both.len() - 4..], in_cluster);
    for cidr in [
        "IPv4 Prefix(\"10.6.0.0/24\")",
        "IPv6 Prefix(\"2001:db8::/64\")",
    ] {
        let of_cidr = both.iter().filter(|line| *line == cidr).count();
        assert_eq!(of_cidr, 2, "one for TCP and one for UDP: {both:?}");
    }
    let crossed = |line: &String| line.starts_with("IPv4 Prefix(\"2001");
    assert!(!both.iter().any(crossed), "{both:?}");
    let each = families(
        &spec(Some(ManagedSecurityGroups::default())),
        &["10.6.0.0/24"],
        true,
    );
    let of_six = each.iter().filter(|line| line.starts_with("IPv6")).count();
    assert_eq!(
        of_six, 6,
        "node ports of two groups and protocols, and two kubelets: {each:?}"
    );
    let four = families(&all, &["10.6.0.0/24"], false);
    assert!(four.iter().all(|line| line.starts_with("IPv4")), "{four:?}");
}

#[test]
fn a_rule_of_the_spec_without_family_has_that_of_its_prefix() {
    let rule = |fields: serde_json::Value| {
        let mut rule = serde_json::json!({"name": "n", "direction": "ingress", "protocol": "tcp"});
        for (name, value) in fields.as_object().unwrap() {
            rule[name] = value.clone();
        }
        let rules = super::given(&serde_json::from_value(rule).unwrap());
        rules.first().unwrap().ether_type
    };
    let of_six = serde_json::json!({"remoteIPPrefix": "2001:db8::/32"});
    assert_eq!(rule(of_six), EtherType::IPv6);
    let of_four = serde_json::json!({"remoteIPPrefix": "192.0.2.0/24"});
    assert_eq!(rule(of_four), EtherType::IPv4);
    assert_eq!(rule(serde_json::json!({})), EtherType::IPv4);
}

#[test]
fn a_default_rule_is_for_the_cidrs_of_the_spec_or_left_out() {
    let of = |rules: serde_json::Value| {
        let groups = serde_json::json!({"defaultRules": rules});
        let spec = spec(Some(serde_json::from_value(groups).unwrap()));
        wanted(
            &spec,
            &[6443, 8132],
            &[Remote::Prefix("10.6.0.0/24".to_owned())],
            false,
        )
    };
    let lines = |rules: &[super::Rule], direction: Direction| {
        let all = rules.iter().filter(|rule| rule.direction == direction);
        let line = |rule: &super::Rule| {
            format!("{:?} {:?} {:?}", rule.ether_type, rule.ports, rule.remote)
        };
        all.map(line).collect::<Vec<_>>()
    };
    let api =
        of(serde_json::json!([{"name": "APIServer", "cidrs": ["192.0.2.0/24", "2001:db8::/32"]}]));
    let ingress = lines(&api[&ManagedGroup::ControlPlane], Direction::Ingress);
    for port in [6443, 8132] {
        let prefix = format!("Some(({port}, {port}))");
        let found: Vec<_> = ingress
            .iter()
            .filter(|line| line.contains(&prefix))
            .collect();
        let remotes = [
            ("IPv4", "192.0.2.0/24"),
            ("IPv6", "2001:db8::/32"),
            ("IPv4", "10.6.0.0/24"),
        ];
        let expected =
            remotes.map(|(family, cidr)| format!("{family} {prefix} Prefix(\"{cidr}\")"));
        assert_eq!(found, expected.iter().collect::<Vec<_>>());
    }
    let without = of(
        serde_json::json!([{"name": "APIServer"}, {"name": "NodePorts"},
        {"name": "Egress", "cidrs": ["10.0.0.0/8"]}]),
    );
    let ingress = lines(&without[&ManagedGroup::ControlPlane], Direction::Ingress);
    assert!(
        !ingress.iter().any(|line| line.contains("6443")),
        "{ingress:?}"
    );
    let worker = &without[&ManagedGroup::Worker];
    assert!(
        !lines(worker, Direction::Ingress)
            .iter()
            .any(|line| line.contains("30000"))
    );
    let expected = ["IPv4 None Prefix(\"10.0.0.0/8\")"];
    assert_eq!(lines(worker, Direction::Egress), expected);
}
