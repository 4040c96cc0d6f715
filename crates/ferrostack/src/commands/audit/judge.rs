//! [`Judgement`] about each resource by the existence of its owner. Pure.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use k8s_openapi::jiff::Timestamp;
use openstack::View;
use serde::Serialize;

use super::drift;
use super::owners::{Owners, Workload};
use super::thing::{Claim, Form, Thing};
use crate::commands::csi::orphans::{self as storage, Verdict};

/// Class of a [`Finding`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Class {
    /// Marked resource without an owner.
    Orphan,
    /// Resource with a name as given by this program, but without a mark.
    Unmarked,
    /// Resource in the fields of an object, but missing in the project.
    Drift,
}

/// Resource for the user to look at.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Finding {
    pub(super) class: Class,
    pub(super) form: Form,
    pub(super) id: String,
    pub(super) name: String,
    /// Reason for the finding, in words.
    pub(super) reason: String,
    /// Reason why an orphan is kept, if kept.
    pub(super) kept: Option<String>,
}

/// Options of the user.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// True if all clusters in the project are in this management cluster.
    pub(super) alone: bool,
    /// Minimum age of volumes, snapshots and backups.
    pub(super) older_than: Duration,
}

/// Judgement about one resource.
enum Judgement {
    /// The owner exists, or there is none.
    Fine,
    /// The owner is gone.
    Gone(String),
    /// The owner is unknown to this management cluster, and perhaps in another one.
    Elsewhere(String),
    /// The owner is gone, and the resource is kept for this reason.
    Kept(String, String),
    /// The name is one of this program's.
    Unmarked(String),
}

/// All [`Finding`]s, in the order in which orphans are deleted.
pub(super) fn findings(
    things: &[Thing],
    view: &View,
    owners: &Owners,
    rules: Rules,
    now: Timestamp,
) -> Vec<Finding> {
    let mut found: Vec<Finding> = things
        .iter()
        .filter_map(|thing| finding(thing, owners, rules, now))
        .collect();
    in_use(&mut found, view);
    let seen = things.iter().map(|thing| thing.id.clone());
    let seen: BTreeSet<String> = seen
        .chain(view.networks.iter().map(|it| it.id.clone()))
        .collect();
    found.extend(drift::findings(things, &seen, owners));
    found.sort_by(|a, b| (a.class, a.form, &a.name, &a.id).cmp(&(b.class, b.form, &b.name, &b.id)));
    found
}

fn finding(thing: &Thing, owners: &Owners, rules: Rules, now: Timestamp) -> Option<Finding> {
    let elsewhere = "its owner may be in another management cluster; if there is none, --alone";
    let (class, reason, kept) = match judgement(thing, owners, rules, now) {
        Judgement::Fine => return None,
        Judgement::Gone(reason) => (Class::Orphan, reason, None),
        Judgement::Elsewhere(reason) if rules.alone => (Class::Orphan, reason, None),
        Judgement::Elsewhere(reason) => (Class::Orphan, reason, Some(elsewhere.to_owned())),
        Judgement::Kept(reason, why) => (Class::Orphan, reason, Some(why)),
        Judgement::Unmarked(reason) => (Class::Unmarked, reason, None),
    };
    Some(Finding {
        class,
        form: thing.form,
        id: thing.id.clone(),
        name: thing.name.clone(),
        reason,
        kept,
    })
}

fn judgement(thing: &Thing, owners: &Owners, rules: Rules, now: Timestamp) -> Judgement {
    match &thing.claim {
        Claim::None if thing.form == Form::Server && owners.machines.contains(&thing.name) => {
            Judgement::Unmarked("its name is that of a machine, and it has no mark".to_owned())
        }
        Claim::None => Judgement::Fine,
        Claim::Named(words) => Judgement::Unmarked((*words).to_owned()),
        Claim::Provider(mark) => match (owners.identities.get(&mark.cluster), mark.machine) {
            (None, _) => {
                Judgement::Elsewhere(format!("no object has the identity {}", mark.cluster))
            }
            (Some(_), None) => Judgement::Fine,
            (Some(_), Some(_)) if mark.is_of_bastion() => Judgement::Fine,
            (Some(_), Some(machine)) if owners.identities.contains_key(&machine) => Judgement::Fine,
            (Some(cluster), Some(machine)) => Judgement::Gone(format!(
                "{cluster} is its cluster, and no object has the identity {machine}"
            )),
        },
        Claim::Pool(pool) if owners.identities.contains_key(pool) => Judgement::Fine,
        Claim::Pool(pool) => Judgement::Kept(
            format!("no object has the identity {pool}"),
            "its pool may have retained it".to_owned(),
        ),
        Claim::Services { cluster, services } => of_services(cluster.as_deref(), services, owners),
        Claim::Volumes(uid) => match owners.workloads.get(uid) {
            None => Judgement::Elsewhere(format!("no Cluster has recorded the uid {uid}")),
            Some(workload) => of_volume(thing, workload, rules, now),
        },
    }
}

fn of_services(cluster: Option<&str>, services: &BTreeSet<String>, owners: &Owners) -> Judgement {
    // A second load balancer of a Service has the family behind its uid.
    let uids = services.iter().map(|it| it.get(..36).unwrap_or(it));
    let uids: Vec<&str> = uids.collect();
    let has = |workload: &Workload| {
        let inside = workload.inside.as_ref();
        inside.is_some_and(|(services, _)| uids.iter().any(|it| services.contains(*it)))
    };
    let Some(cluster) = cluster else {
        return match owners.workloads.values().any(has) {
            true => Judgement::Fine,
            false => Judgement::Elsewhere("no cluster that answers has its Service".to_owned()),
        };
    };
    match owners.workloads.get(cluster) {
        None => Judgement::Elsewhere(format!("no Cluster has recorded the uid {cluster}")),
        Some(workload) if workload.inside.is_none() || has(workload) => Judgement::Fine,
        Some(workload) => {
            Judgement::Gone(format!("cluster {} has no such Service", workload.cluster))
        }
    }
}

/// Judgement by the rules of `csi orphans`. The uid identifies the cluster, so the cluster's name on the volume is
/// valid.
fn of_volume(thing: &Thing, workload: &Workload, rules: Rules, now: Timestamp) -> Judgement {
    let (Some(stored), Some((_, claimed))) = (&thing.stored, &workload.inside) else {
        return Judgement::Fine;
    };
    let name = stored.metadata.get("cinder.csi.openstack.org/cluster");
    let rules = storage::Rules {
        cluster: name.cloned().unwrap_or_default(),
        older_than: rules.older_than,
        without_uid: false,
    };
    let reason = format!("nothing in cluster {} names it", workload.cluster);
    match storage::judge(stored, claimed, &rules, now) {
        Verdict::Foreign | Verdict::Held(_) => Judgement::Fine,
        Verdict::Kept(why) => Judgement::Kept(reason, why),
        Verdict::Orphan => Judgement::Gone(reason),
    }
}

/// Keeps orphans in use by resources of others: a floating IP on a port, a port on a server, a router or network with
/// ports.
fn in_use(found: &mut [Finding], view: &View) {
    let gone: BTreeSet<String> = found
        .iter()
        .filter(|it| it.class == Class::Orphan && it.kept.is_none())
        .map(|it| it.id.clone())
        .collect();
    // The ports of what goes, which go with it.
    let mut ports: BTreeMap<&str, bool> = BTreeMap::new();
    for port in view.ports.iter() {
        let goes = gone.contains(&port.id) || gone.contains(&port.device_id);
        ports.insert(&port.id, goes);
    }
    for balancer in view.load_balancers.iter() {
        if gone.contains(&balancer.id) {
            ports.insert(&balancer.vip_port_id, true);
        }
    }
    let stays = |port: &str| !ports.get(port).copied().unwrap_or(true);
    let user = |finding: &Finding| {
        let id = &finding.id;
        let mut all = view.ports.iter();
        let port = match finding.form {
            Form::FloatingIp => {
                let port = view.floating_ips.get(id).and_then(|ip| ip.port_id.clone());
                return port.filter(|port| stays(port));
            }
            Form::Port => all.find(|port| {
                port.id == *id
                    && port.device_owner.starts_with("compute:")
                    && !gone.contains(&port.device_id)
            }),
            Form::Network => {
                all.find(|port| port.network_id == *id && is_of_somebody(port) && stays(&port.id))
            }
            Form::SecurityGroup => {
                all.find(|port| port.security_groups.contains(id) && stays(&port.id))
            }
            _ => None,
        };
        port.map(|port| port.id.clone())
    };
    for finding in found
        .iter_mut()
        .filter(|it| it.class == Class::Orphan && it.kept.is_none())
    {
        if let Some(port) = user(finding) {
            finding.kept = Some(format!("port {port} of others uses it"));
        }
    }
}

/// False for a port made by Neutron for the network.
fn is_of_somebody(port: &openstack::network::Port) -> bool {
    !port.device_owner.starts_with("network:dhcp")
        && !port.device_owner.starts_with("network:distributed")
}
