//! Groups of volumes in Cinder, whose snapshots are taken at one moment.
//!
//! A group snapshot has one snapshot of each volume of the group, and a volume is in at most one group. A group of the
//! driver has the volumes of the last snapshot: volumes join and leave as the requested sets change. Groups of others
//! are used as they are.

use std::collections::BTreeSet;

use grpc::{Code, Status};
use openstack::volume::{GroupType, Volume, VolumeGroup, VolumeGroupCreate};
use openstack::{Kind, View};

use super::{Past, Step, Write, double, refuse, wait, wait_for};
use crate::Options;
use crate::mark;
use crate::refusal::invalid;
use crate::request::NewGroupSnapshot;

/// Group of exactly the wanted volumes, or the step towards one.
type Found<'a, V, T> = Result<V, Box<Step<T>>>;

fn not<'a, V, T>(code: Code, message: String) -> Found<'a, V, T> {
    Err(Box::new(refuse(code, message)))
}

/// Looks for the [`Found`] group.
pub(super) fn find<'a, T>(
    wanted: &NewGroupSnapshot,
    options: &Options,
    view: &'a View,
    past: &Past,
) -> Found<'a, &'a VolumeGroup, T> {
    let volumes = volumes(wanted, view)?;
    let is_wanted = |id: &String| wanted.volumes.contains(id);
    let all = view.volume_groups.iter().map(|it| &**it);
    let mut holders: Vec<&VolumeGroup> =
        all.filter(|it| it.volumes.iter().any(is_wanted)).collect();
    holders.sort_by(|a, b| (&a.created_at, &a.id).cmp(&(&b.created_at, &b.id)));
    let foreign = holders.iter().find(|it| !is_ours(it, options));
    if let Some(foreign) = foreign {
        return as_it_is(wanted, foreign, view);
    }
    let new = new(wanted, options, view, &volumes)?;
    let target = target(wanted, options, view, &holders, &new);
    for other in &holders {
        if target.is_none_or(|target| target.id != other.id) {
            idle(other)?;
            let left = other.volumes.iter().filter(|id| is_wanted(id));
            return Err(Box::new(change(
                &other.id,
                Vec::new(),
                left.cloned().collect(),
            )));
        }
    }
    if let Some(target) = target {
        without_double(wanted, options, target, view)?;
    }
    match target {
        Some(target) => filled(wanted, target, view, past),
        None if matches!(past.written, Some(Write::DeleteGroup { .. })) => not_grouped(past),
        None => Err(Box::new(Step::Write(Write::CreateGroup(new)))),
    }
}

/// True if a group is the driver's, with or without a uid: the wanted volumes are the cluster's.
pub(super) fn is_ours(group: &VolumeGroup, options: &Options) -> bool {
    is_of_cluster(group, options) || group.description == mark::of_group(&options.cluster, None)
}

/// True if a group has the uid of this cluster, or has none while the uid is unknown.
pub(super) fn is_of_cluster(group: &VolumeGroup, options: &Options) -> bool {
    group.description == of_cluster(options)
}

fn of_cluster(options: &Options) -> String {
    mark::of_group(&options.cluster, options.cluster_uid.get())
}

/// True if a group has snapshots, other than those being deleted.
pub(super) fn has_snapshots(group: &str, view: &View) -> bool {
    let snapshots = view.group_snapshots.of_parent(group);
    snapshots.iter().any(|it| it.status != "deleting")
}

/// Step that adds volumes to a group, and removes others.
pub(super) fn change<T>(group: &str, add: Vec<String>, remove: Vec<String>) -> Step<T> {
    Step::Write(Write::ChangeGroup {
        group: group.to_owned(),
        add,
        remove,
    })
}

/// Waits while Cinder works on a group.
pub(super) fn idle<'a, T>(group: &VolumeGroup) -> Found<'a, (), T> {
    let why = format!("volume group {} is {}", group.id, group.status);
    match group.status.as_str() {
        "available" => Ok(()),
        "creating" | "updating" | "deleting" => {
            Err(Box::new(wait(Kind::VolumeGroups, &group.id, why)))
        }
        _ => not(
            Code::FailedPrecondition,
            format!("{why}: an administrator of the cloud resets it"),
        ),
    }
}

/// Wanted volumes, if all exist and are idle.
fn volumes<'a, T>(wanted: &NewGroupSnapshot, view: &'a View) -> Found<'a, Vec<&'a Volume>, T> {
    let mut volumes = Vec::new();
    for id in &wanted.volumes {
        let Some(volume) = view.volumes.get(id) else {
            let message = format!("volume {} does not exist", id.escape_debug());
            return not(Code::NotFound, message);
        };
        match volume.status.as_str() {
            "available" | "in-use" => volumes.push(&**volume),
            status if status.starts_with("error") || status == "maintenance" => {
                return not(Code::FailedPrecondition, format!("volume {id} is {status}"));
            }
            _ => return Err(Box::new(wait_for(volume))),
        }
    }
    Ok(volumes)
}

/// Group of another owner: used only if it has exactly the wanted volumes.
fn as_it_is<'a, T>(
    wanted: &NewGroupSnapshot,
    group: &'a VolumeGroup,
    view: &View,
) -> Found<'a, &'a VolumeGroup, T> {
    let members: BTreeSet<String> = group.volumes.iter().cloned().collect();
    if members != wanted.volumes {
        let members = Vec::from_iter(members).join(", ");
        return not(
            Code::FailedPrecondition,
            format!(
                "volume group {} ({}), which this driver did not make, has the volumes {members}: Cinder takes snapshots of \
                 all of them together, and of no others with them; select these, or take volumes out of the group",
                group.id, group.name
            ),
        );
    }
    let kind = view.group_types.get(&group.group_type).map(|it| &**it);
    or_refuse(consistent(wanted, &group.group_type, kind))?;
    idle(group)?;
    Ok(group)
}

/// Group type for new groups.
///
/// # Errors
/// Reason why no group is made.
pub(crate) fn group_type<'a>(
    wanted: &NewGroupSnapshot,
    types: impl IntoIterator<Item = &'a GroupType>,
) -> Result<&'a GroupType, Status> {
    let Some(name) = &wanted.group_type else {
        return Err(Status::new(
            Code::FailedPrecondition,
            "the volumes are not together in a group of Cinder's: name a `group-type` in the VolumeGroupSnapshotClass, for \
             which this driver makes groups",
        ));
    };
    let mut named = None;
    let mut of_id = None;
    for it in types {
        of_id = of_id.or_else(|| (it.id == *name).then_some(it));
        named = named.or_else(|| (it.name == *name).then_some(it));
    }
    let Some(kind) = of_id.or(named) else {
        return invalid(format!("there is no group type {}", name.escape_debug()));
    };
    consistent(wanted, &kind.name, Some(kind))?;
    Ok(kind)
}

fn or_refuse<'a, V, T>(found: Result<V, Status>) -> Found<'a, V, T> {
    found.map_err(|status| Box::new(refuse(status.code, status.message)))
}

/// Refuses a type whose groups are snapshotted volume by volume. By default, Cinder shows the specs of a type only to
/// administrators.
fn consistent(
    wanted: &NewGroupSnapshot,
    name: &str,
    kind: Option<&GroupType>,
) -> Result<(), Status> {
    let name = kind.map_or(name, |it| it.name.as_str());
    let message = match kind.and_then(GroupType::is_consistent) {
        Some(true) => return Ok(()),
        None if wanted.is_declared => return Ok(()),
        Some(false) => format!(
            "the group type {name} has no consistent_group_snapshot_enabled = \"<is> True\": the snapshots of its groups \
             are taken one after another"
        ),
        None => format!(
            "Cinder does not show the specs of the group type {name} to this project: if it has \
             consistent_group_snapshot_enabled = \"<is> True\", say so by `consistency: declared` in the \
             VolumeGroupSnapshotClass"
        ),
    };
    Err(Status::new(Code::FailedPrecondition, message))
}

/// New group that fits the volumes.
fn new<'a, T>(
    wanted: &NewGroupSnapshot,
    options: &Options,
    view: &View,
    volumes: &[&Volume],
) -> Found<'a, VolumeGroupCreate, T> {
    let types = view.group_types.iter().map(|it| &**it);
    let kind = or_refuse(group_type(wanted, types))?;
    let zones: BTreeSet<&str> = volumes
        .iter()
        .map(|it| it.availability_zone.as_str())
        .collect();
    if zones.len() > 1 {
        let zones = Vec::from_iter(zones).join(", ");
        return not(
            Code::FailedPrecondition,
            format!(
                "the volumes are in different zones ({zones}), and a group of Cinder's is in one"
            ),
        );
    }
    let id_of = |name: &String| {
        let found = view.volume_types.named(name).first();
        found.map_or_else(|| name.clone(), |it| it.id.clone())
    };
    let kinds: BTreeSet<String> = volumes.iter().map(|it| id_of(&it.volume_type)).collect();
    Ok(VolumeGroupCreate {
        name: wanted.name.clone(),
        description: of_cluster(options),
        group_type: kind.id.clone(),
        volume_types: kinds.into_iter().collect(),
        availability_zone: zones.into_iter().next().unwrap_or_default().to_owned(),
    })
}

/// Our group to reuse for these volumes: the oldest that has one of the volumes, or the one with this name.
fn target<'a>(
    wanted: &NewGroupSnapshot,
    options: &Options,
    view: &'a View,
    holders: &[&'a VolumeGroup],
    new: &VolumeGroupCreate,
) -> Option<&'a VolumeGroup> {
    let fits = |it: &&VolumeGroup| {
        let same =
            (&it.group_type, &it.availability_zone) == (&new.group_type, &new.availability_zone);
        // A new group does not show its types yet; of a type missing in the list only the name is known, while groups
        // have ids. Cinder refuses a wrong one.
        let takes = |kind: &String| {
            it.volume_types.is_empty()
                || it.volume_types.contains(kind)
                || view.volume_types.get(kind).is_none()
        };
        is_ours(it, options) && same && new.volume_types.iter().all(takes)
    };
    let named = double::in_order(view.volume_groups.named(&wanted.name), |_| true);
    holders.iter().copied().chain(named).find(fits)
}

/// Step for a duplicate group, made at the same moment by another replica, and without volumes.
fn without_double<'a, T>(
    wanted: &NewGroupSnapshot,
    options: &Options,
    target: &VolumeGroup,
    view: &View,
) -> Found<'a, (), T> {
    let is_double = |it: &&VolumeGroup| {
        let is_unused = it.volumes.is_empty() && !has_snapshots(&it.id, view);
        let is_another = it.id != target.id && it.status != "deleting";
        is_another && is_unused && double::is_soon(&target.created_at, &it.created_at)
    };
    let named = view.volume_groups.named(&wanted.name);
    let ours = double::in_order(named, |it| is_ours(it, options));
    let Some(double) = ours.into_iter().find(is_double) else {
        return Ok(());
    };
    if double.status != "error" {
        idle(double)?;
    }
    let id = double.id.clone();
    Err(Box::new(Step::Write(Write::DeleteGroup { id })))
}

/// Our group, once it has exactly the wanted volumes.
fn filled<'a, T>(
    wanted: &NewGroupSnapshot,
    target: &'a VolumeGroup,
    view: &View,
    past: &Past,
) -> Found<'a, &'a VolumeGroup, T> {
    let is_unused = target.volumes.is_empty() && !has_snapshots(&target.id, view);
    let delete = || {
        let id = target.id.clone();
        Err(Box::new(Step::Write(Write::DeleteGroup { id })))
    };
    if target.status == "error" && is_unused {
        return delete();
    }
    idle(target)?;
    let members = &target.volumes;
    let add = wanted.volumes.iter().filter(|id| !members.contains(id));
    let remove = members.iter().filter(|id| !wanted.volumes.contains(*id));
    let (add, remove): (Vec<String>, Vec<String>) =
        (add.cloned().collect(), remove.cloned().collect());
    if add.is_empty() && remove.is_empty() {
        return Ok(target);
    }
    match &past.refused {
        Some((Write::ChangeGroup { .. }, _)) if is_unused => delete(),
        _ => Err(Box::new(change(&target.id, add, remove))),
    }
}

/// Refusal after the deletion of a group that Cinder could not make for these volumes.
fn not_grouped<'a, V, T>(past: &Past) -> Found<'a, V, T> {
    let why = match &past.refused {
        Some((_, error)) => error.message().to_owned(),
        None => "no back end takes a group of this type".to_owned(),
    };
    let message = format!("Cinder cannot put the volumes into one group, which was deleted: {why}");
    not(Code::FailedPrecondition, message)
}
