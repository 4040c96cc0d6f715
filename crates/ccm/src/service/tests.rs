mod convergence;
mod model;
mod pairs;
mod services;

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::json;

use super::annotations::{ANNOTATIONS, Wishes};
use super::*;
use cloud_conf::{CloudConf, Program};

fn identity(cluster_uid: &str, name: &str) -> Identity {
    let service: Service = serde_json::from_value(
        json!({"metadata": {"namespace": "default", "name": name, "uid": "s"}}),
    )
    .unwrap();
    Identity::new(&service, "kubernetes", cluster_uid)
}

fn conf(rest: &str) -> CloudConf {
    CloudConf::parse(
        &format!("[Global]\nuse-clouds = true\n{rest}"),
        Program::CloudControllerManager,
    )
    .unwrap()
    .conf
}

fn wishes(annotations: &[(&str, &str)], conf: &CloudConf) -> Result<Wishes, String> {
    let annotations: BTreeMap<_, _> = annotations
        .iter()
        .map(|(name, value)| {
            (
                format!("loadbalancer.openstack.org/{name}"),
                (*value).to_owned(),
            )
        })
        .collect();
    Wishes::new(&annotations, conf).map_err(|rejection| rejection.message)
}

#[test]
fn a_load_balancer_is_owned_by_the_uids_and_never_by_its_name() {
    let ours = identity("a", "web");
    let tags = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
    assert!(ours.owns(&ours.tags()));
    assert!(!identity("b", "web").owns(&ours.tags()));
    assert!(!ours.owns(&tags(&[&ours.name])));
    assert!(ours.is_legacy(&ours.name, &tags(&[&ours.name])));
    assert!(!ours.is_legacy(&ours.name, &[]));
    assert!(!ours.is_legacy("other", &tags(&[&ours.name])));
    assert!(!ours.is_legacy(&ours.name, &tags(&[&ours.name, "ferrostack-cluster=b"])));
}

#[test]
fn a_second_load_balancer_is_owned_apart_from_the_first_and_its_name_is_that_of_no_service() {
    let first = identity("a", "web");
    let (second, third) = (
        first.of_second(vip::Family::V6),
        first.of_second(vip::Family::V4),
    );
    assert_eq!(second.name, "kube_service_kubernetes_default_web_IPv6");
    for (one, other) in [(&first, &second), (&second, &first), (&second, &third)] {
        assert!(one.owns(&one.tags()) && !one.owns(&other.tags()));
        assert!(!one.owns_floating_ip(&other.floating_ip_description()));
        assert!(!one.owns_group(&other.group_name(), &other.group_description()));
        assert!(one.owns_part("pool_", &one.part("pool", 0), &one.part_tags()));
        assert!(!one.owns_part("pool_", &other.part("pool", 0), &other.part_tags()));
    }
    let long = identity("a", &"x".repeat(300)).of_second(vip::Family::V6);
    assert_eq!((long.name.len(), long.name.ends_with("_IPv6")), (255, true));
}

#[test]
fn descriptions_end_with_the_uids_of_cluster_and_service_as_long_as_both_fit() {
    let short = identity("a", "web");
    let both = format!("({}) ({})", short.cluster_tag(), short.service_tag());
    let long = identity("a", &"x".repeat(200));
    for (identity, end, without) in [
        (&short, both.as_str(), "\0"),
        (&long, &format!(" ({})", long.service_tag()), "cluster="),
    ] {
        for description in [
            identity.floating_ip_description(),
            identity.group_description(),
        ] {
            assert!(description.ends_with(end), "{description}");
            assert!(!description.contains(without), "{description}");
            assert!(description.len() <= 320, "{description}");
        }
        assert!(identity.owns_floating_ip(&identity.floating_ip_description()));
        assert!(identity.owns_group("any", &identity.group_description()));
    }
    assert!(long.group_description().len() <= 255);
}

#[test]
fn names_are_those_of_the_go_manager_cut_to_255_bytes() {
    assert_eq!(
        identity("a", "web").part("pool", 3),
        "pool_3_kube_service_kubernetes_default_web"
    );
    let long = identity("a", &"x".repeat(300));
    assert_eq!(
        (long.name.len(), long.part("listener", 0).len()),
        (255, 255)
    );
}

#[test]
fn the_annotation_wins_over_the_class_and_the_class_over_cloud_conf() {
    let conf = conf(
        "[LoadBalancer]\nsubnet-id = c\nnetwork-id = n\n[LoadBalancerClass \"fast\"]\nsubnet-id = k\n",
    );
    let subnet = |annotations: &[(&str, &str)]| {
        let placement = wishes(annotations, &conf).unwrap().placement;
        (placement.subnet_id, placement.network_id)
    };
    let is = |subnet: &str| (subnet.to_owned(), "n".to_owned());
    assert_eq!(subnet(&[]), is("c"));
    assert_eq!(subnet(&[("class", "fast")]), is("k"));
    assert_eq!(subnet(&[("class", "fast"), ("subnet-id", "a")]), is("a"));
    assert_eq!(subnet(&[("subnet-id", "")]), is("c"));
}

#[test]
fn the_driver_ovn_is_told_that_it_has_one_method() {
    let ovn = conf("[LoadBalancer]\nlb-provider = ovn\n");
    assert!(
        wishes(&[], &ovn)
            .unwrap_err()
            .contains("the driver ovn has no ROUND_ROBIN")
    );
    assert_eq!(
        wishes(&[("lb-method", "SOURCE_IP_PORT")], &ovn)
            .unwrap()
            .method,
        "SOURCE_IP_PORT"
    );
}

proptest! {
    #[test]
    fn no_value_of_an_annotation_makes_reading_panic(index in 0..ANNOTATIONS.len(), value in "\\PC*") {
        let annotations = [(ANNOTATIONS[index].name.to_owned(), value)].into();
        let _ = Wishes::new(&annotations, &conf(""));
    }
}
