use csi_spec::volume_capability::{self, BlockVolume};
use grpc::Code;
use proptest::prelude::*;

use super::*;

const VOLUME: &str = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";

fn capability(fs_type: &str, flags: &[&str], mode: AccessMode) -> VolumeCapability {
    VolumeCapability {
        access_mode: Some(volume_capability::AccessMode { mode: mode.into() }),
        access_type: Some(AccessType::Mount(MountVolume {
            fs_type: fs_type.to_owned(),
            mount_flags: flags.iter().map(|flag| (*flag).to_owned()).collect(),
            volume_mount_group: String::new(),
        })),
    }
}

fn request() -> NodeStageVolumeRequest {
    NodeStageVolumeRequest {
        volume_id: VOLUME.to_owned(),
        staging_target_path: "/staging".to_owned(),
        volume_capability: Some(capability("", &[], AccessMode::SingleNodeWriter)),
        ..Default::default()
    }
}

fn refusal(change: impl FnOnce(&mut NodeStageVolumeRequest)) -> String {
    let mut request = request();
    change(&mut request);
    let status = Stage::parse(request).unwrap_err();
    assert_eq!(status.code, Code::InvalidArgument, "{status}");
    status.message
}

#[test]
fn each_wrong_field_is_named() {
    let long = "v".repeat(1000);
    for (id, words) in [
        ("", "volume_id is empty"),
        ("../../etc", "no id of Cinder"),
        ("a\nb", "no id of Cinder"),
        ("%s", "no id of Cinder"),
        ("🦀", "no id of Cinder"),
        (&long, "no id of Cinder"),
    ] {
        let refusal = refusal(|request| request.volume_id = id.to_owned());
        assert!(refusal.contains(words), "{refusal}");
    }
    for (path, words) in [
        ("", "staging_target_path: it is empty"),
        ("/a/../b", "`..`"),
    ] {
        let refusal = refusal(|request| request.staging_target_path = path.to_owned());
        assert!(refusal.contains(words), "{refusal}");
    }
    let context = |key: &str, value: &str| [(key.to_owned(), value.to_owned())].into();
    for size in ["0", "-1", "1.5", "x", "99999999999999999999"] {
        let refusal = refusal(|request| request.publish_context = context(context::SIZE, size));
        assert!(refusal.contains("no number of bytes"), "{refusal}");
    }
    let refused = refusal(|request| request.volume_context = context(context::FORMAT, "yes"));
    assert!(refused.contains("`yes`"), "{refused}");
    let refused = refusal(|request| request.volume_capability = None);
    assert!(refused.contains("volume_capability is empty"), "{refused}");
    let refused = refusal(|request| {
        request.volume_capability = Some(capability("ntfs", &[], AccessMode::SingleNodeWriter));
    });
    assert!(
        refused.contains("`ntfs` is none of btrfs, ext2"),
        "{refused}"
    );
    let refused = refusal(|request| {
        request.volume_capability = Some(capability("", &[], AccessMode::Unknown));
    });
    assert!(refused.contains("access_mode"), "{refused}");
    let refused = refusal(|request| {
        request.volume_capability.as_mut().unwrap().access_type = None;
    });
    assert!(refused.contains("neither block nor mount"), "{refused}");
}

#[test]
fn a_file_system_that_other_nodes_write_is_neither_staged_nor_published() {
    use AccessMode::{MultiNodeMultiWriter, MultiNodeReaderOnly, MultiNodeSingleWriter};
    for mode in [MultiNodeMultiWriter, MultiNodeSingleWriter] {
        let shared = capability("", &[], mode);
        let refused = refusal(|request| request.volume_capability = Some(shared.clone()));
        assert!(refused.contains("one node at a time"), "{refused}");
        let publish = NodePublishVolumeRequest {
            volume_id: VOLUME.to_owned(),
            staging_target_path: "/staging".to_owned(),
            target_path: "/target".to_owned(),
            volume_capability: Some(shared),
            ..Default::default()
        };
        let status = Publish::parse(publish).unwrap_err();
        assert_eq!(status.code, Code::InvalidArgument);
        // A block volume may be shared: no file system is damaged.
        let mut block = request();
        block.volume_capability = Some(VolumeCapability {
            access_mode: Some(volume_capability::AccessMode { mode: mode.into() }),
            access_type: Some(AccessType::Block(BlockVolume {})),
        });
        Stage::parse(block).unwrap();
    }
    let mut readers = request();
    readers.volume_capability = Some(capability("", &[], MultiNodeReaderOnly));
    Stage::parse(readers).unwrap();
}

/// It has the content of its source, on whatever storage, whatever the class says of new volumes.
#[test]
fn a_restored_volume_is_formatted_only_if_it_reads_as_zeros() {
    let mut restored = request();
    restored.volume_context = [
        (context::FORMAT.to_owned(), "first-attach".to_owned()),
        (context::RESIZE.to_owned(), "true".to_owned()),
    ]
    .into();
    let restored = Stage::parse(restored).unwrap();
    assert!(restored.mode == Mode::Blank && restored.grow);
}

#[test]
fn what_is_asked_for_is_read() {
    let mut request = request();
    let flags = ["noatime", "context=\"a:b:c:s0:c1,c2\""];
    request.volume_capability = Some(capability("xfs", &flags, AccessMode::MultiNodeReaderOnly));
    request.publish_context = [
        (context::SIZE.to_owned(), "1073741824".to_owned()),
        (context::FIRST_ATTACH.to_owned(), "true".to_owned()),
        ("DevicePath".to_owned(), "/dev/vdz".to_owned()),
    ]
    .into();
    request.volume_context = [(context::FORMAT.to_owned(), "first-attach".to_owned())].into();
    let stage = Stage::parse(request).unwrap();
    assert_eq!(stage.expected.size, Some(1 << 30));
    assert!(stage.first_attach && !stage.grow);
    assert_eq!(stage.mode, Mode::parse("first-attach").unwrap());
    let Access::Mount { kind, options } = stage.access else {
        panic!("it is a mount");
    };
    assert_eq!(kind, Kind::Xfs);
    assert!(options.is_read_only());
    assert_eq!(options.data, "context=\"a:b:c:s0:c1,c2\",nouuid");
}

#[test]
fn sizes_contradict_each_other_or_are_negative() {
    let (invalid, beyond) = (Code::InvalidArgument, Code::OutOfRange);
    for (required_bytes, limit_bytes, code, words) in [
        (-1, 0, invalid, "required_bytes is negative"),
        (0, i64::MIN, invalid, "limit_bytes is negative"),
        (2, -1, invalid, "limit_bytes is negative"),
        (2, 1, beyond, "limit_bytes 1 is less than required_bytes 2"),
    ] {
        let request = NodeExpandVolumeRequest {
            volume_id: VOLUME.to_owned(),
            volume_path: "/target".to_owned(),
            capacity_range: Some(CapacityRange {
                required_bytes,
                limit_bytes,
            }),
            ..Default::default()
        };
        let status = Expand::parse(request).unwrap_err();
        assert!(
            status.code == code && status.message.contains(words),
            "{status}"
        );
    }
}

#[test]
fn a_publication_without_a_staging_path_comes_too_early() {
    let status = Publish::parse(NodePublishVolumeRequest {
        volume_id: VOLUME.to_owned(),
        target_path: "/target".to_owned(),
        volume_capability: Some(capability("", &[], AccessMode::SingleNodeWriter)),
        ..Default::default()
    });
    assert_eq!(status.unwrap_err().code, Code::FailedPrecondition);
}

#[test]
fn a_reader_is_published_read_only() {
    for (mode, readonly, read_only) in [
        (AccessMode::SingleNodeWriter, false, false),
        (AccessMode::SingleNodeWriter, true, true),
        (AccessMode::MultiNodeReaderOnly, false, true),
        (AccessMode::SingleNodeSingleWriter, false, false),
    ] {
        let publish = Publish::parse(NodePublishVolumeRequest {
            volume_id: VOLUME.to_owned(),
            staging_target_path: "/staging".to_owned(),
            target_path: "/target".to_owned(),
            volume_capability: Some(VolumeCapability {
                access_mode: Some(volume_capability::AccessMode { mode: mode.into() }),
                access_type: Some(AccessType::Block(BlockVolume {})),
            }),
            readonly,
            ..Default::default()
        });
        assert_eq!(publish.unwrap().read_only, read_only);
    }
}

#[test]
fn a_volume_whose_mount_options_have_ro_is_published_read_only() {
    for (flags, read_only) in [(&["ro"][..], true), (&["noatime"][..], false)] {
        let publish = Publish::parse(NodePublishVolumeRequest {
            volume_id: VOLUME.to_owned(),
            staging_target_path: "/staging".to_owned(),
            target_path: "/target".to_owned(),
            volume_capability: Some(capability("ext4", flags, AccessMode::SingleNodeWriter)),
            ..Default::default()
        });
        assert_eq!(publish.unwrap().read_only, read_only);
    }
}

proptest! {
    #[test]
    fn text_of_any_kind_ends_in_an_answer(id in "\\PC*", path in "\\PC*", size in "\\PC*", kind in "\\PC*", flag in "\\PC*") {
        let mut request = request();
        request.volume_id = id;
        request.staging_target_path = path;
        request.publish_context = [(context::SIZE.to_owned(), size)].into();
        request.volume_capability = Some(capability(&kind, &[&flag], AccessMode::SingleNodeWriter));
        if let Err(status) = Stage::parse(request) {
            prop_assert_eq!(status.code, Code::InvalidArgument);
        }
    }
}
