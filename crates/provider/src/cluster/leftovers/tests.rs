use std::collections::BTreeMap;

use openstack::inventory::Table;

use super::*;
use crate::cluster::observed::References;
use crate::identity::Identity;

const OURS: &str = "11111111-1111-4111-8111-111111111111";
const THEIRS: &str = "22222222-2222-4222-8222-222222222222";

fn balancer(id: &str, name: &str, tags: &[&str]) -> LoadBalancer {
    LoadBalancer {
        id: id.to_owned(),
        name: name.to_owned(),
        vip_port_id: format!("port-of-{id}"),
        provisioning_status: "ACTIVE".to_owned(),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        ..LoadBalancer::default()
    }
}

fn ip(id: &str, port: Option<&str>, description: &str) -> FloatingIp {
    FloatingIp {
        id: id.to_owned(),
        port_id: port.map(str::to_owned),
        description: description.to_owned(),
        ..FloatingIp::default()
    }
}

fn group(id: &str, description: &str) -> SecurityGroup {
    SecurityGroup {
        id: id.to_owned(),
        description: description.to_owned(),
        ..SecurityGroup::default()
    }
}

fn volume(id: &str, status: &str, metadata: &[(&str, &str)]) -> Volume {
    let pairs = metadata.iter();
    let metadata: BTreeMap<_, _> = pairs
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect();
    Volume {
        id: id.to_owned(),
        status: status.to_owned(),
        metadata,
        ..Volume::default()
    }
}

/// What two clusters with the same name have in one project, and what is nobody's.
fn view() -> View {
    let (ours, theirs) = (
        format!("{CLUSTER_TAG}{OURS}"),
        format!("{CLUSTER_TAG}{THEIRS}"),
    );
    let web = format!("{OF_SERVICE}kubernetes_default_web");
    let text = format!("{IP_OF_SERVICE}default/web from cluster kubernetes");
    View {
        load_balancers: Arc::new(Table::from_items(vec![
            balancer("ours", &web, &[&web, &ours, "ferrostack-service=s1"]),
            balancer("theirs", &web, &[&web, &theirs, "ferrostack-service=s2"]),
            balancer("of the Go manager", &web, &[&web]),
            balancer("of both", &web, &[&ours, &theirs]),
            balancer("of a user", "web", &[&ours]),
        ])),
        floating_ips: Arc::new(Table::from_items(vec![
            ip(
                "ours",
                Some("port-of-ours"),
                &format!("{text} ({ours}) (ferrostack-service=s1)"),
            ),
            ip(
                "ours, off its port",
                None,
                &format!("{text} ({ours}) (ferrostack-service=s3)"),
            ),
            ip(
                "ours, without room",
                None,
                &format!("{text} (ferrostack-service=s1)"),
            ),
            ip("ours, of the Go manager", Some("port-of-ours"), &text),
            ip(
                "theirs",
                None,
                &format!("{text} ({theirs}) (ferrostack-service=s2)"),
            ),
            ip(
                "theirs, on our port",
                Some("port-of-ours"),
                &format!("{text} ({theirs}) (ferrostack-service=s2)"),
            ),
            ip(
                "theirs, without room",
                None,
                &format!("{text} (ferrostack-service=s2)"),
            ),
            ip("of a user", Some("port-of-ours"), "mine"),
            ip("of nobody", None, &text),
        ])),
        security_groups: Arc::new(Table::from_items(vec![
            group("ours", &format!("x ({ours}) (ferrostack-service=s9)")),
            group("ours, without room", "x (ferrostack-service=s1)"),
            group("theirs", &format!("x ({theirs}) (ferrostack-service=s1)")),
            group("theirs, without room", "x (ferrostack-service=s2)"),
            group("of a user", &format!("about {ours}")),
        ])),
        volumes: Arc::new(Table::from_items(vec![
            volume(
                "ours",
                "available",
                &[(VOLUME_CLUSTER, "kubernetes"), (VOLUME_UID, OURS)],
            ),
            volume(
                "theirs",
                "available",
                &[(VOLUME_CLUSTER, "kubernetes"), (VOLUME_UID, THEIRS)],
            ),
            volume(
                "of the Go driver",
                "available",
                &[(VOLUME_CLUSTER, "kubernetes")],
            ),
            volume("of a user", "available", &[(VOLUME_UID, OURS)]),
        ])),
        ..View::default()
    }
}

fn observed(view: View) -> Observed {
    Observed::new(Arc::new(view), Identity::new(), &References::default())
}

const ALL: Wanted = Wanted {
    services: true,
    volumes: Volumes::Delete,
};

#[test]
fn what_carries_the_uid_is_found_and_nothing_of_a_cluster_with_the_same_name() {
    let left = Leftovers::for_uid(&view(), OURS);
    let of = |ids: Vec<&String>| ids.into_iter().cloned().collect::<Vec<_>>();
    assert_eq!(
        of(left.balancers.iter().map(|it| &it.id).collect()),
        ["ours"]
    );
    let mut ips = of(left.floating_ips.iter().map(|it| &it.id).collect());
    ips.sort();
    let expected = [
        "ours",
        "ours, of the Go manager",
        "ours, off its port",
        "ours, without room",
    ];
    assert_eq!(ips, expected);
    let mut groups = of(left.groups.iter().map(|it| &it.id).collect());
    groups.sort();
    assert_eq!(groups, ["ours", "ours, without room"]);
    assert_eq!(of(left.volumes.iter().map(|it| &it.id).collect()), ["ours"]);
}

#[test]
fn nothing_is_deleted_that_nobody_asked_for() {
    let seen = observed(view());
    assert!(plan(&seen, OURS, Wanted::default()).is_empty());
    let services = plan(&seen, OURS, Wanted::parse(" services ,").unwrap());
    assert!(
        !services
            .steps
            .iter()
            .any(|step| matches!(step, Step::DeleteVolume(_)))
    );
    assert_eq!(
        services.steps.last(),
        Some(&Step::DeleteBalancer("ours".to_owned()))
    );
    let volumes = plan(&seen, OURS, Wanted::parse("volumes=delete").unwrap());
    assert_eq!(volumes.steps, [Step::DeleteVolume("ours".to_owned())]);
    // Their reclaim policies are not known here.
    assert!(plan(&seen, OURS, Wanted::parse("volumes").unwrap()).is_empty());
}

#[test]
fn a_group_in_use_keeps_the_load_balancer_by_which_it_is_found() {
    let mut view = view();
    view.ports = Arc::new(Table::from_items(vec![openstack::network::Port {
        id: "p".to_owned(),
        security_groups: vec!["ours, without room".to_owned()],
        ..Default::default()
    }]));
    let planned = plan(&observed(view), OURS, ALL);
    assert!(
        !planned
            .steps
            .iter()
            .any(|step| matches!(step, Step::DeleteBalancer(_)))
    );
    assert!(
        planned
            .waits
            .iter()
            .any(|wait| wait.is_stuck && wait.message.contains("port"))
    );
}

#[test]
fn what_the_cloud_is_busy_with_is_waited_for() {
    let mut view = view();
    let mut pending = balancer("ours", OF_SERVICE, &[&format!("{CLUSTER_TAG}{OURS}")]);
    pending.provisioning_status = "PENDING_UPDATE".to_owned();
    view.load_balancers = Arc::new(Table::from_items(vec![pending]));
    let mark = [(VOLUME_CLUSTER, "kubernetes"), (VOLUME_UID, OURS)];
    let volumes = ["deleting", "in-use", "error"].map(|status| volume(status, status, &mark));
    view.volumes = Arc::new(Table::from_items(volumes.to_vec()));
    let planned = plan(&observed(view), OURS, ALL);
    let stuck: Vec<bool> = planned.waits.iter().map(|wait| wait.is_stuck).collect();
    assert_eq!(stuck, [false, true, false]);
    let volumes = planned
        .steps
        .iter()
        .filter(|step| matches!(step, Step::DeleteVolume(_)));
    assert_eq!(volumes.count(), 1);
}
