use proptest::prelude::*;
use rustix::mount::MountFlags;

use super::state::{Conflict, Layer, Plan, Then, plan};
use super::*;

const RW: Layer = Layer::Ours { read_only: false };
const RO: Layer = Layer::Ours { read_only: true };

#[test]
fn each_state_of_a_path_has_its_plan() {
    use Layer::{Foreign, Stale};
    let steps = |detach, unmount, then| {
        Ok(Plan {
            detach,
            unmount,
            then,
        })
    };
    for (layers, read_only, planned) in [
        (&[][..], false, steps(0, 0, Then::Mount)),
        (&[RW], false, steps(0, 0, Then::Keep)),
        (&[RO], true, steps(0, 0, Then::Keep)),
        (&[RW], true, steps(0, 0, Then::RestrictToReading)),
        (&[RO], false, Err(Conflict::ReadOnly)),
        (&[RW, RW], false, steps(0, 1, Then::Keep)),
        (&[RW, RW, RW], true, steps(0, 2, Then::RestrictToReading)),
        (&[Stale], false, steps(1, 0, Then::Mount)),
        (&[Stale, Stale], true, steps(2, 0, Then::Mount)),
        (&[RW, Stale], false, steps(1, 0, Then::Keep)),
        (&[Stale, RW], false, steps(2, 0, Then::Mount)),
        (&[Foreign], false, Err(Conflict::Foreign)),
        (&[Foreign, RW], false, Err(Conflict::Foreign)),
        (&[RW, Foreign], true, Err(Conflict::Foreign)),
        (&[Stale, Foreign], false, Err(Conflict::Foreign)),
    ] {
        assert_eq!(plan(layers, read_only), planned, "{layers:?} {read_only}");
    }
}

fn applied(layers: &[Layer], plan: Plan, read_only: bool) -> Vec<Layer> {
    let mut layers = layers.to_vec();
    layers.truncate(layers.len() - plan.detach - plan.unmount);
    match plan.then {
        Then::Keep => {}
        Then::Mount => layers.push(Layer::Ours { read_only }),
        Then::RestrictToReading => *layers.last_mut().unwrap() = RO,
    }
    layers
}

proptest! {
    /// Whatever was there: one layer of ours afterwards, nothing foreign is touched, and a repetition does nothing.
    #[test]
    fn a_plan_ends_in_one_layer(
        layers in proptest::collection::vec(
            prop_oneof![Just(RW), Just(RO), Just(Layer::Stale), Just(Layer::Foreign)],
            0..6,
        ),
        read_only in any::<bool>(),
    ) {
        match plan(&layers, read_only) {
            Ok(planned) => {
                prop_assert!(!layers.contains(&Layer::Foreign));
                let after = applied(&layers, planned, read_only);
                prop_assert_eq!(&after, &vec![Layer::Ours { read_only }]);
                prop_assert_eq!(plan(&after, read_only), Ok(Plan::default()));
            }
            Err(Conflict::Foreign) => prop_assert!(layers.contains(&Layer::Foreign)),
            Err(Conflict::ReadOnly) => prop_assert!(!read_only && layers.contains(&RO)),
        }
    }

    #[test]
    fn an_accepted_path_is_absolute_and_short(path in "\\PC{0,20}|(/[a-z.]{0,3}){0,5}|/\u{0}") {
        if let Ok(accepted) = checked(&path) {
            prop_assert!(accepted.is_absolute() && accepted.parent().is_some());
            prop_assert!(!accepted.to_str().unwrap().ends_with('/'));
            prop_assert_eq!(checked(accepted.to_str().unwrap()), Ok(accepted.clone()));
        }
    }
}

#[test]
fn paths_that_lead_elsewhere_are_rejected() {
    let long = format!("/{}", "a/".repeat(2048));
    for (path, why) in [
        ("", BadPath::Empty),
        ("a/b", BadPath::Relative),
        ("/a/../b", BadPath::Up),
        ("/..", BadPath::Up),
        ("/a\0b", BadPath::Nul),
        ("/", BadPath::Root),
        ("//./", BadPath::Root),
        (&long, BadPath::Long),
    ] {
        assert_eq!(checked(path), Err(why), "{path}");
    }
    let path = checked("/var//lib/./kubelet/x/").unwrap();
    assert_eq!(path.to_str(), Some("/var/lib/kubelet/x"));
}

#[test]
fn options_become_flags_and_data() {
    let none = MountFlags::empty();
    let context = "context=\"system_u:object_r:container_file_t:s0:c1,c2\"";
    for (given, flags, data) in [
        (&[][..], none, ""),
        (
            &["defaults", "rw", "_netdev", "x-systemd.after=a"],
            none,
            "",
        ),
        (&["ro"], MountFlags::RDONLY, ""),
        (&["ro", "rw"], none, ""),
        (
            &["noatime,nodev", "discard"],
            MountFlags::NOATIME | MountFlags::NODEV,
            "discard",
        ),
        (&[context, "ro"], MountFlags::RDONLY, context),
        (
            &["errors=continue,commit=5"],
            none,
            "errors=continue,commit=5",
        ),
    ] {
        let options = Options::parse(given.iter().copied());
        assert_eq!(
            (options.flags, options.data.as_str()),
            (flags, data),
            "{given:?}"
        );
    }
    let options = Options::parse(["nouuid", context]).with("nouuid");
    assert_eq!(options.data, format!("nouuid,{context}"));
    assert_eq!(Options::parse([]).with("nouuid").data, "nouuid");
}
