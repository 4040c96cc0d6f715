//! Message of the condition: the problem, and the steps for a person.

use api::names::ETCD_SURVIVOR_ANNOTATION as SURVIVOR;

use super::{Loss, Recovery};
use crate::control_plane::etcd::Member;

/// Page with the steps.
const PAGE: &str = "ferrostack docs recovery";

/// Name of a [`Member`], or its address before the first start.
pub(super) fn label(member: &Member) -> &str {
    match member.name.as_str() {
        "" => &member.host,
        name => name,
    }
}

/// Message about the control plane `plane`.
pub(super) fn message(recovery: &Recovery, plane: &str) -> String {
    match recovery {
        Recovery::Unknown | Recovery::Nothing | Recovery::Done { .. } => String::new(),
        Recovery::Lost(loss) => of_loss(loss, plane),
        Recovery::NotNamed { outside, members } => format!(
            "{} joined, and etcd, which has a quorum, does not list them as members\n\
             1. if they are lost, have them deleted and replaced ({PAGE}): {}",
            subject(outside, "has", "have"),
            annotate(plane, members.first().map(String::as_str))
        ),
        Recovery::Refused { named, why } => format!(
            "The annotation {SURVIVOR} names {named}: {why}. Nothing is deleted until it names a Machine whose etcd works\n\
             1. name another one, or remove the annotation: kubectl annotate kubeadmcontrolplane {plane} {SURVIVOR}-"
        ),
        Recovery::Unasked { named, why } => format!(
            "Machine {named} is named as the survivor; the others are not deleted before etcd lists its members: {why}"
        ),
        Recovery::Deleting {
            survivor,
            outside,
            going,
        } => {
            let all: Vec<_> = going.iter().chain(outside).cloned().collect();
            format!(
                "{} deleted, since Machine {survivor} is named as the survivor; machines are created afterwards",
                subject(&all, "is", "are")
            )
        }
    }
}

fn of_loss(loss: &Loss, plane: &str) -> String {
    let mut lines = vec![format!(
        "{}; no machine is created or deleted meanwhile",
        loss.head
    )];
    let works = |name: &String| format!("* Machine {name} works");
    lines.extend(loss.survivors.iter().map(works));
    let lost = |(name, why): &(String, String)| format!("* Machine {name} is lost: {why}");
    lines.extend(loss.lost.iter().map(lost));
    lines.push(format!(
        "If enough of them come back, nothing has to be done. If they are gone for good ({PAGE}):"
    ));
    let survivor = match &loss.objection {
        None => loss.named.as_deref().or(named(&loss.survivors)),
        Some(_) => named(&loss.survivors),
    };
    lines.push(format!(
        "1. restart the etcd of Machine {} alone, with --force-new-cluster, or restore a snapshot there",
        survivor.unwrap_or("MACHINE")
    ));
    match (&loss.named, &loss.objection) {
        (Some(named), Some(why)) => lines.push(format!(
            "2. {} (it names {named}: {why})",
            annotate(plane, survivor)
        )),
        (Some(named), None) => lines.push(format!(
            "The others are deleted after that, since Machine {named} is named as the survivor"
        )),
        (None, _) => lines.push(format!(
            "2. have the others deleted and replaced: {}",
            annotate(plane, survivor)
        )),
    }
    lines.join("\n")
}

/// Command that names the survivor.
fn annotate(plane: &str, survivor: Option<&str>) -> String {
    let survivor = survivor.unwrap_or("MACHINE");
    format!("kubectl annotate --overwrite kubeadmcontrolplane {plane} {SURVIVOR}={survivor}")
}

/// Name of the machine, if there is only one.
fn named(machines: &[String]) -> Option<&str> {
    match machines {
        [one] => Some(one),
        _ => None,
    }
}

/// `Machines a, b have`.
fn subject(names: &[String], one: &str, many: &str) -> String {
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    match names.as_slice() {
        [name] => format!("Machine {name} {one}"),
        names => format!("Machines {} {many}", names.join(", ")),
    }
}
