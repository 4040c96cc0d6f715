//! The requests of the members of a pool.

use std::collections::{BTreeMap, BTreeSet};

use openstack::loadbalancer::{Member, MemberCreate, MemberUpdate, PoolCreate};

use crate::desired::{Desired, Fields};
use crate::observed::Branch;
use crate::step::Step;

/// Adds the steps of the members of a pool.
pub(crate) fn change(
    wanted: &PoolCreate,
    branch: &Branch,
    keeps_weights: bool,
    desired: &Desired<'_>,
    steps: &mut Vec<Step>,
) {
    let Some(pool) = &branch.pool else {
        return;
    };
    if desired.keeps_members_of(wanted) {
        return;
    }
    let members = match desired.fields {
        Fields::All => with_weights(&wanted.members, &branch.members, keeps_weights),
        Fields::Access => wanted.members.clone(),
    };
    if desired.is_serial {
        let name = desired.names.of_single_member;
        single_members(&pool.id, &members, &branch.members, name, steps);
    } else if !same_members(&members, &branch.members, desired.fields) {
        if desired.fields == Fields::All {
            steps.extend(without_monitor_port(&pool.id, &members, &branch.members));
        }
        steps.push(Step::SetMembers {
            pool: pool.id.clone(),
            members,
        });
    }
}

/// The members with an explicit weight, since Octavia keeps the weight of a member without one: the wanted weight, or else 1,
/// or with `keeps` the existing weight.
fn with_weights(
    wanted: &[MemberCreate],
    known: &[impl AsRef<Member>],
    keeps: bool,
) -> Vec<MemberCreate> {
    let kept = |wanted: &MemberCreate| {
        let mut known = known.iter().map(AsRef::as_ref).filter(|_| keeps);
        let found = known.find(|known| {
            known.address == wanted.address && known.protocol_port == wanted.protocol_port
        });
        found.map(|known| known.weight)
    };
    let weighted = |member: &MemberCreate| MemberCreate {
        weight: member.weight.or_else(|| kept(member)).or(Some(1)),
        ..member.clone()
    };
    wanted.iter().map(weighted).collect()
}

fn same_members(wanted: &[MemberCreate], known: &[impl AsRef<Member>], fields: Fields) -> bool {
    let has_all = fields == Fields::All;
    let wanted: BTreeSet<_> = wanted
        .iter()
        .map(|m| {
            let managed = has_all.then(|| (m.monitor_port, m.weight.unwrap_or(1)));
            (m.address.as_str(), m.protocol_port, managed)
        })
        .collect();
    let known: BTreeSet<_> = known
        .iter()
        .map(AsRef::as_ref)
        .filter(|member| &*member.provisioning_status != "PENDING_DELETE")
        .map(|m| {
            let managed = has_all.then_some((m.monitor_port, m.weight));
            (m.address.as_str(), m.protocol_port, managed)
        })
        .collect();
    wanted == known
}

/// Steps for members without a wanted monitor port and with an existing one. [`Step::SetMembers`] changes monitor ports, and
/// removes none.
fn without_monitor_port(
    pool: &str,
    wanted: &[MemberCreate],
    known: &[impl AsRef<Member>],
) -> Vec<Step> {
    let known = known.iter().map(AsRef::as_ref);
    let asked = known.filter(|known| known.monitor_port.is_some());
    let stays = |known: &&Member| {
        let mut wanted = wanted.iter().filter(|wanted| wanted.monitor_port.is_none());
        wanted.any(|wanted| {
            wanted.address == known.address && wanted.protocol_port == known.protocol_port
        })
    };
    let step = |known: &Member| Step::UpdateMember {
        pool: pool.to_owned(),
        id: known.id.clone(),
        change: MemberUpdate {
            monitor_port: Some(None),
            ..MemberUpdate::default()
        },
    };
    asked.filter(stays).map(step).collect()
}

/// The steps for each member alone, new ones first.
fn single_members(
    pool: &str,
    wanted: &[MemberCreate],
    known: &[impl AsRef<Member>],
    name: fn(&MemberCreate) -> String,
    steps: &mut Vec<Step>,
) {
    let known = known.iter().map(AsRef::as_ref);
    let mut known: BTreeMap<_, _> = known
        .filter(|member| &*member.provisioning_status != "PENDING_DELETE")
        .map(|member| ((member.address.as_str(), member.protocol_port), member))
        .collect();
    for member in wanted {
        let Some(known) = known.remove(&(member.address.as_str(), member.protocol_port)) else {
            steps.push(Step::CreateMember {
                pool: pool.to_owned(),
                member: Box::new(MemberCreate {
                    name: name(member),
                    ..member.clone()
                }),
            });
            continue;
        };
        let port = member.monitor_port;
        let change = MemberUpdate {
            weight: member.weight.filter(|weight| *weight != known.weight),
            monitor_port: (port != known.monitor_port).then_some(port),
        };
        if change != MemberUpdate::default() {
            steps.push(Step::UpdateMember {
                pool: pool.to_owned(),
                id: known.id.clone(),
                change,
            });
        }
    }
    steps.extend(known.into_values().map(|member| Step::DeleteMember {
        pool: pool.to_owned(),
        id: member.id.clone(),
    }));
}
