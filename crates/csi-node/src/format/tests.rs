use std::io;

use proptest::prelude::*;

use super::*;

fn found(kind: &'static str) -> FileSystem {
    FileSystem {
        kind,
        uuid: String::new(),
        dirty: None,
        bytes: 0,
        log: 0,
    }
}

fn wanted(mode: Mode) -> Wanted {
    Wanted {
        kind: Kind::Ext4,
        mode,
        first_attach: false,
        read_only: false,
    }
}

fn refused(content: Result<Content, Error>, wanted: &Wanted) -> String {
    match decide(&content, wanted) {
        Decision::Refuse(refusal) => refusal.to_string(),
        decision => panic!("{content:?}: {decision:?}"),
    }
}

#[test]
fn only_zeros_are_formatted_unless_the_class_says_otherwise() {
    let make = |over| Decision::Make { over };
    let refuse = |refusal| Decision::Refuse(refusal);
    let not_known = Refusal::NotKnown("it has unknown data (the first at offset 7)".to_owned());
    let first = Wanted {
        first_attach: true,
        ..wanted(Mode::FirstAttach)
    };
    for (content, wanted, decision) in [
        (Content::Blank, wanted(Mode::Blank), make(false)),
        (
            Content::Unknown(7),
            wanted(Mode::Blank),
            refuse(not_known.clone()),
        ),
        (
            Content::Unknown(7),
            wanted(Mode::FirstAttach),
            refuse(not_known),
        ),
        (Content::Unknown(7), first, make(true)),
        (Content::Unknown(7), wanted(Mode::Blkid), make(true)),
        (
            Content::HalfFormatted("xfs"),
            wanted(Mode::Blank),
            make(true),
        ),
        (
            Content::FileSystem(found("ext4")),
            first,
            Decision::Mount(found("ext4")),
        ),
        (
            Content::FileSystem(found("ext3")),
            wanted(Mode::Blkid),
            Decision::Mount(found("ext3")),
        ),
        (
            Content::FileSystem(found("xfs")),
            wanted(Mode::Blank),
            refuse(Refusal::OtherKind {
                found: "xfs",
                wanted: Kind::Ext4,
            }),
        ),
    ] {
        assert_eq!(decide(&Ok(content), &wanted), decision);
    }
}

#[test]
fn what_is_there_is_never_overwritten() {
    for mode in [Mode::Blank, Mode::FirstAttach, Mode::Blkid] {
        let mut wanted = wanted(mode);
        wanted.first_attach = true;
        for content in [
            Content::Luks,
            Content::Unfinished("xfs"),
            Content::Partitioned("GPT"),
            Content::Other("swap space"),
        ] {
            let words = match &content {
                Content::Unfinished(_) => "did not begin it".to_owned(),
                content => content.to_string(),
            };
            let refusal = refused(Ok(content), &wanted);
            assert!(refusal.contains(&words), "{refusal}");
        }
    }
}

#[test]
fn a_device_that_cannot_be_read_is_refused_in_every_mode() {
    for mode in [Mode::Blank, Mode::FirstAttach, Mode::Blkid] {
        let unreadable = Error::Unreadable {
            offset: 0,
            source: io::Error::from_raw_os_error(5),
        };
        for (error, words) in [
            (Error::Empty, "0 bytes"),
            (unreadable, "Input/output error"),
        ] {
            let refusal = refused(Err(error), &wanted(mode));
            assert!(refusal.contains(words), "{refusal}");
            // Nobody is told to write to it.
            assert!(!refusal.contains("zero all"), "{refusal}");
        }
    }
}

#[test]
fn a_blank_device_is_not_formatted_to_be_read() {
    let mut wanted = wanted(Mode::Blkid);
    wanted.read_only = true;
    assert!(refused(Ok(Content::Blank), &wanted).contains("read-only"));
    let content = Content::FileSystem(found("ext4"));
    assert_eq!(
        decide(&Ok(content), &wanted),
        Decision::Mount(found("ext4"))
    );
}

proptest! {
    /// The whole table: what is made was blank, half made, or unknown where the class accepts that.
    #[test]
    fn nothing_but_what_is_empty_is_formatted(
        content in prop_oneof![
            Just(Content::Blank),
            Just(Content::Luks),
            Just(Content::HalfFormatted("btrfs")),
            Just(Content::Unfinished("btrfs")),
            Just(Content::Unknown(1)),
            Just(Content::Partitioned("MBR")),
            Just(Content::Other("x")),
            Just(Content::FileSystem(found("xfs"))),
            Just(Content::FileSystem(found("ext2"))),
        ],
        kind in proptest::sample::select(Kind::ALL.to_vec()),
        mode in proptest::sample::select(vec![Mode::Blank, Mode::FirstAttach, Mode::Blkid]),
        first_attach in any::<bool>(),
        read_only in any::<bool>(),
    ) {
        let wanted = Wanted { kind, mode, first_attach, read_only };
        if let Decision::Make { over } = decide(&Ok(content.clone()), &wanted) {
            prop_assert!(!read_only);
            match content {
                Content::Blank => prop_assert!(!over),
                Content::HalfFormatted(_) => prop_assert!(over),
                Content::Unknown(_) => prop_assert!(
                    over && (mode == Mode::Blkid || mode == Mode::FirstAttach && first_attach)
                ),
                other => prop_assert!(false, "{other} was formatted"),
            }
        }
    }
}
