//! One row for each state of a volume: what is done about it.

use csi_spec::volume_capability::access_mode::Mode;
use csi_spec::volume_capability::{AccessMode, AccessType, BlockVolume};
use csi_spec::volume_content_source::{SnapshotSource, Type, VolumeSource};
use csi_spec::{CreateVolumeRequest, VolumeCapability, VolumeContentSource};
use openstack::inventory::Table;
use openstack::volume::{Snapshot, Volume, VolumeAttachment, VolumeType};
use openstack::{Error, ErrorKind, View};
use std::sync::Arc;

use super::{Past, Step, Write, attach, create, delete, detach, expand, modify};
use crate::Options;
use crate::attributes::Attributes;
use crate::request::{NewVolume, Uses};
use crate::size::{GIB, Range};

const HERE: &str = "here";
const OTHER: &str = "other";

fn view(status: &str, servers: &[&str], multiattach: bool) -> View {
    let attachment = |server: &&str| VolumeAttachment {
        server_id: (*server).to_owned(),
        attachment_id: format!("attachment-{server}"),
        device: "/dev/vdb".to_owned(),
    };
    let volume = Volume {
        id: "v".to_owned(),
        status: status.to_owned(),
        size: 2,
        multiattach,
        attachments: servers.iter().map(attachment).collect(),
        ..Volume::default()
    };
    View {
        volumes: Arc::new(Table::from_items([volume])),
        ..View::default()
    }
}

/// The kind of a step, with the code of a refusal.
fn word<T>(step: &Step<T>) -> String {
    match step {
        Step::Answer(_) => "answer".to_owned(),
        Step::Refuse(status) => status.code.name().to_owned(),
        Step::Wait(_) => "wait".to_owned(),
        Step::Look(_) => "look".to_owned(),
        Step::Reread(_) => "reread".to_owned(),
        Step::Write(write) => {
            let write = format!("{write:?}");
            write
                .split([' ', '('])
                .next()
                .unwrap_or_default()
                .to_owned()
        }
    }
}

/// A call that has written.
fn after(write: Write) -> Past {
    Past {
        written: Some(write),
        ..Past::default()
    }
}

/// A call whose write found nothing.
fn absent(write: Write) -> Past {
    Past {
        refused: Some((write, Error::new(ErrorKind::Absent, "not found"))),
        ..Past::default()
    }
}

fn detaching() -> Write {
    Write::Detach {
        server: HERE.to_owned(),
        volume: "v".to_owned(),
    }
}

fn attaching() -> Write {
    Write::Attach {
        server: HERE.to_owned(),
        volume: "v".to_owned(),
    }
}

#[test]
fn each_state_of_a_volume_has_a_row_when_it_is_attached() {
    let new = Past::default();
    let written = after(attaching());
    let rows: &[(&str, &[&str], &Past, &str)] = &[
        ("available", &[], &new, "Attach"),
        ("available", &[], &written, "ABORTED"),
        ("in-use", &[HERE], &new, "answer"),
        ("in-use", &[OTHER], &new, "FAILED_PRECONDITION"),
        ("attaching", &[HERE], &new, "wait"),
        ("attaching", &[], &new, "wait"),
        ("attaching", &[OTHER], &new, "FAILED_PRECONDITION"),
        ("reserved", &[], &new, "Release"),
        ("reserved", &[], &written, "wait"),
        ("detaching", &[OTHER], &new, "wait"),
        ("detaching", &[HERE], &new, "wait"),
        ("creating", &[], &new, "wait"),
        ("extending", &[], &new, "wait"),
        ("retyping", &[], &new, "wait"),
        ("backing-up", &[], &new, "wait"),
        ("restoring-backup", &[], &new, "wait"),
        ("deleting", &[], &new, "wait"),
        ("maintenance", &[], &new, "FAILED_PRECONDITION"),
        ("error", &[], &new, "FAILED_PRECONDITION"),
        ("error_extending", &[], &new, "FAILED_PRECONDITION"),
        ("error_deleting", &[], &new, "FAILED_PRECONDITION"),
    ];
    let wanted = attach::Wanted {
        volume: "v".to_owned(),
        node: HERE.to_owned(),
        uses: Uses::default(),
        notes_first: false,
    };
    for (status, servers, past, expected) in rows {
        let step = attach::plan(&wanted, &view(status, servers, false), past);
        assert_eq!(word(&step), *expected, "{status} {servers:?}");
    }
    assert_eq!(
        word(&attach::plan(&wanted, &View::default(), &new)),
        "NOT_FOUND"
    );
    let shared = attach::Wanted {
        uses: Uses {
            several_nodes: true,
            block: true,
            shared_writes: false,
        },
        ..wanted
    };
    let step = attach::plan(&shared, &view("in-use", &[OTHER], true), &new);
    assert_eq!(word(&step), "Attach");
    let step = attach::plan(&shared, &view("in-use", &[OTHER], false), &new);
    assert_eq!(word(&step), "FAILED_PRECONDITION");
}

#[test]
fn each_state_of_a_volume_has_a_row_when_it_is_detached() {
    let (new, gone) = (Past::default(), absent(detaching()));
    let written = after(detaching());
    let rows: &[(&str, &[&str], &Past, &str)] = &[
        ("in-use", &[HERE], &new, "Detach"),
        ("in-use", &[HERE], &written, "wait"),
        ("in-use", &[HERE], &gone, "DeleteAttachment"),
        ("in-use", &[OTHER], &new, "answer"),
        ("available", &[], &new, "answer"),
        ("available", &[], &gone, "answer"),
        ("detaching", &[HERE], &new, "wait"),
        ("detaching", &[], &new, "wait"),
        ("attaching", &[], &new, "wait"),
        ("reserved", &[], &new, "Release"),
        ("reserved", &[], &written, "wait"),
        ("error_detaching", &[HERE], &new, "Detach"),
        ("error_detaching", &[HERE], &gone, "DeleteAttachment"),
        ("error", &[HERE], &new, "Detach"),
        ("error", &[], &new, "answer"),
        ("deleting", &[], &new, "answer"),
        ("maintenance", &[HERE], &new, "Detach"),
    ];
    for (status, servers, past, expected) in rows {
        let step = detach::plan("v", HERE, &view(status, servers, false), past);
        assert_eq!(word(&step), *expected, "{status} {servers:?}");
    }
    let all = detach::plan("v", "", &view("in-use", &[OTHER], true), &new);
    assert_eq!(word(&all), "Detach");
    // The first of two is gone, and nothing is to be waited for.
    let first = detach::plan("v", "", &view("in-use", &[OTHER], true), &written);
    assert_eq!(word(&first), "Detach");
    let both = detach::plan("v", "", &view("in-use", &[HERE, OTHER], true), &written);
    assert_eq!(word(&both), "wait");
    assert_eq!(
        word(&detach::plan("v", HERE, &View::default(), &new)),
        "answer"
    );
}

/// A volume of the name, of the cluster.
fn one_writer() -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(AccessMode {
            mode: Mode::SingleNodeWriter.into(),
        }),
        access_type: Some(AccessType::Block(BlockVolume {})),
    }
}

fn created(status: &str, past: &Past) -> String {
    let request = CreateVolumeRequest {
        name: "pvc-1".to_owned(),
        volume_capabilities: vec![one_writer()],
        ..CreateVolumeRequest::default()
    };
    let options = Options::default();
    let wanted = NewVolume::read(&request, &options).unwrap();
    let volume = Volume {
        id: "v".to_owned(),
        name: "pvc-1".to_owned(),
        status: status.to_owned(),
        size: 1,
        metadata: wanted.metadata.clone(),
        ..Volume::default()
    };
    let view = View {
        volumes: Arc::new(Table::from_items([volume])),
        ..View::default()
    };
    word(&create::plan(&wanted, &options, &view, past))
}

#[test]
fn a_copy_that_is_encrypted_unlike_its_source_is_not_answered() {
    let source = |kind: Type| VolumeContentSource { r#type: Some(kind) };
    let volume_id = "s".to_owned();
    let snapshot_id = "t".to_owned();
    let of_volume = source(Type::Volume(VolumeSource { volume_id }));
    let of_snapshot = source(Type::Snapshot(SnapshotSource { snapshot_id }));
    let answer = |from: &VolumeContentSource, kind: &str, encrypted: [bool; 2], knows: bool| {
        let is_clone = matches!(from.r#type, Some(Type::Volume(_)));
        let request = CreateVolumeRequest {
            name: "pvc-1".to_owned(),
            volume_capabilities: vec![one_writer()],
            volume_content_source: Some(from.clone()),
            parameters: [("type".to_owned(), kind.to_owned())].into(),
            ..CreateVolumeRequest::default()
        };
        let options = Options::default();
        let wanted = NewVolume::read(&request, &options).unwrap();
        let copied = |is_copied: bool, id: &str| match is_copied {
            true => id.to_owned(),
            false => String::new(),
        };
        let volume = Volume {
            id: "v".to_owned(),
            name: "pvc-1".to_owned(),
            status: "available".to_owned(),
            size: 1,
            volume_type: "kind".to_owned(),
            source_volid: copied(is_clone, "s"),
            snapshot_id: copied(!is_clone, "t"),
            metadata: wanted.metadata.clone(),
            encrypted: encrypted[1],
            ..Volume::default()
        };
        let source = Volume {
            id: "s".to_owned(),
            encrypted: encrypted[0],
            ..Volume::default()
        };
        let snapshot = Snapshot {
            id: "t".to_owned(),
            volume_id: "s".to_owned(),
            ..Snapshot::default()
        };
        let volumes = match knows {
            true => vec![volume, source],
            false => vec![volume],
        };
        let view = View {
            volumes: Arc::new(Table::from_items(volumes)),
            snapshots: Arc::new(Table::from_items([snapshot])),
            ..View::default()
        };
        match create::plan(&wanted, &options, &view, &Past::default()) {
            Step::Refuse(status) => format!("{}: {}", status.code.name(), status.message),
            step => word(&step),
        }
    };
    for from in [of_volume, of_snapshot] {
        assert_eq!(answer(&from, "", [true, true], true), "answer");
        assert_eq!(answer(&from, "", [false, false], true), "answer");
        let plain = answer(&from, "", [true, false], true);
        assert!(plain.starts_with("ALREADY_EXISTS"), "{plain}");
        assert!(
            plain.ends_with("is not encrypted, as its source is"),
            "{plain}"
        );
        let secret = answer(&from, "", [false, true], true);
        assert!(
            secret.ends_with("is encrypted, as its source is not"),
            "{secret}"
        );
        // The class names a type, which says it; a source that is gone says nothing.
        assert_eq!(answer(&from, "kind", [true, false], true), "answer");
        assert_eq!(answer(&from, "", [true, false], false), "answer");
    }
}

#[test]
fn each_state_of_a_volume_has_a_row_when_it_is_created() {
    for (status, expected) in [
        ("available", "answer"),
        ("in-use", "answer"),
        ("attaching", "answer"),
        ("detaching", "answer"),
        ("reserved", "answer"),
        ("extending", "answer"),
        ("retyping", "answer"),
        ("backing-up", "answer"),
        ("creating", "wait"),
        ("downloading", "wait"),
        ("restoring-backup", "wait"),
        ("maintenance", "wait"),
        ("managing", "wait"),
        ("awaiting-transfer", "wait"),
        ("deleting", "wait"),
        ("error", "DeleteFailedVolume"),
        ("error_restoring", "DeleteFailedVolume"),
        ("error_deleting", "DeleteVolume"),
        ("error_extending", "UNAVAILABLE"),
        ("error_managing", "UNAVAILABLE"),
    ] {
        assert_eq!(created(status, &Past::default()), expected, "{status}");
    }
}

#[test]
fn each_state_of_a_volume_has_a_row_when_it_is_deleted_or_grows() {
    let new = Past::default();
    let written = after(Write::DeleteVolume { id: "v".to_owned() });
    let rows: &[(&str, &[&str], &Past, &str, &str)] = &[
        ("available", &[], &new, "DeleteVolume", "ExtendVolume"),
        (
            "in-use",
            &[HERE],
            &new,
            "FAILED_PRECONDITION",
            "ExtendVolume",
        ),
        ("creating", &[], &new, "wait", "wait"),
        ("extending", &[], &new, "wait", "wait"),
        ("deleting", &[], &new, "wait", "wait"),
        ("error", &[], &new, "DeleteVolume", "FAILED_PRECONDITION"),
        (
            "error_deleting",
            &[],
            &new,
            "DeleteVolume",
            "FAILED_PRECONDITION",
        ),
        (
            "error_deleting",
            &[],
            &written,
            "ABORTED",
            "FAILED_PRECONDITION",
        ),
        (
            "error_extending",
            &[],
            &new,
            "DeleteVolume",
            "FAILED_PRECONDITION",
        ),
        ("retyping", &[], &new, "wait", "wait"),
    ];
    let range = Range {
        least: Some(3),
        most: None,
    };
    for (status, servers, past, deleted, grown) in rows {
        let view = view(status, servers, false);
        assert_eq!(
            word(&delete::plan("v", &Options::default(), &view, past)),
            *deleted,
            "{status}"
        );
        assert_eq!(word(&expand::plan("v", range, &view)), *grown, "{status}");
    }
    let enough = Range {
        least: Some(2),
        most: Some(2 * GIB),
    };
    let step = expand::plan("v", enough, &view("available", &[], false));
    assert_eq!(word(&step), "answer");
    assert_eq!(
        word(&delete::plan(
            "v",
            &Options::default(),
            &View::default(),
            &new
        )),
        "answer"
    );
    assert_eq!(
        word(&expand::plan("v", range, &View::default())),
        "NOT_FOUND"
    );
}

#[test]
fn each_state_of_a_volume_has_a_row_when_it_is_modified() {
    let retyping = Write::Retype {
        volume: "v".to_owned(),
        to: "fast".to_owned(),
        moves: false,
    };
    let (new, written) = (Past::default(), after(retyping));
    // Status, past, step to another type, step to other metadata.
    let rows: &[(&str, &Past, &str, &str)] = &[
        ("available", &new, "Retype", "SetMetadata"),
        ("in-use", &new, "Retype", "SetMetadata"),
        ("available", &written, "FAILED_PRECONDITION", "SetMetadata"),
        ("in-use", &written, "FAILED_PRECONDITION", "SetMetadata"),
        ("retyping", &written, "wait", "wait"),
        ("retyping", &new, "wait", "wait"),
        ("creating", &new, "wait", "SetMetadata"),
        ("attaching", &new, "wait", "SetMetadata"),
        ("backing-up", &new, "wait", "SetMetadata"),
        ("error", &new, "FAILED_PRECONDITION", "SetMetadata"),
        ("maintenance", &new, "FAILED_PRECONDITION", "SetMetadata"),
    ];
    let kind = |name: &str| VolumeType {
        id: format!("id-{name}"),
        name: name.to_owned(),
        ..VolumeType::default()
    };
    let other = |name: &str| Attributes {
        volume_type: Some(name.to_owned()),
        ..Attributes::default()
    };
    let more = Attributes {
        metadata: [("a".to_owned(), "b".to_owned())].into(),
        ..Attributes::default()
    };
    for (status, past, retyped, set) in rows {
        let mut view = view(status, &[], false);
        view.volume_types = Arc::new(Table::from_items([kind("fast"), kind("")]));
        for name in ["fast", "id-fast"] {
            let step = modify::plan("v", &other(name), &Options::default(), &view, past);
            assert_eq!(word(&step), *retyped, "{status}");
        }
        assert_eq!(
            word(&modify::plan("v", &more, &Options::default(), &view, past)),
            *set,
            "{status}"
        );
    }
    let known = view("available", &[], false);
    let step = modify::plan("v", &other("absent"), &Options::default(), &known, &new);
    assert_eq!(word(&step), "INVALID_ARGUMENT");
    let step = modify::plan(
        "v",
        &Attributes::default(),
        &Options::default(),
        &known,
        &new,
    );
    assert_eq!(word(&step), "answer");
    let step = modify::plan("v", &more, &Options::default(), &View::default(), &new);
    assert_eq!(word(&step), "NOT_FOUND");
}

#[test]
fn older_words_of_cinder_explain_no_change_of_type() {
    let retyping = Write::Retype {
        volume: "v".to_owned(),
        to: "fast".to_owned(),
        moves: true,
    };
    for (words, about) in [
        (
            "schedule allocate volume:Could not find any available weighted backend.",
            true,
        ),
        ("migrate volume:no", true),
        (
            "extend volume:Volume Driver failed to extend volume.",
            false,
        ),
        ("attach volume:no", false),
    ] {
        assert_eq!(retyping.may_be_explained_by(words), about, "{words}");
        assert!(attaching().may_be_explained_by(words));
    }
}

#[test]
fn words_of_a_cloud_do_nothing_to_a_terminal() {
    let status = "error_\u{1b}[31m\nred".to_owned() + &"x".repeat(5000);
    let cloud = view(&status, &[], false);
    let range = Range {
        least: Some(3),
        most: None,
    };
    let Step::Refuse(refusal) = expand::plan("v", range, &cloud) else {
        panic!("it is not refused");
    };
    assert!(refusal.message.contains("error_"), "{}", refusal.message);
    assert!(refusal.message.chars().all(|it| !it.is_control()));
    assert!(refusal.message.chars().count() <= 1000);
    let Step::Wait(wait) = detach::plan("v", "", &view("detaching", &[], false), &Past::default())
    else {
        panic!("it is not waited for");
    };
    assert_eq!(wait.why, "volume v is detaching");
}
