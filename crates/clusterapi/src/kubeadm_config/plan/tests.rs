use proptest::prelude::*;

use super::{Facts, Plan, Wait, decide};

fn ready() -> Facts {
    Facts {
        infrastructure: true,
        endpoint: true,
        ..Facts::default()
    }
}

#[test]
fn each_machine_gets_what_it_can_use_now() {
    let plane = Facts {
        control_plane: true,
        ..ready()
    };
    let up = Facts {
        initialized: true,
        ..ready()
    };
    for (facts, expected) in [
        (Facts::default(), Plan::Wait(Wait::Infrastructure)),
        (ready(), Plan::Wait(Wait::ControlPlane)),
        (
            Facts {
                endpoint: false,
                ..plane
            },
            Plan::Wait(Wait::Endpoint),
        ),
        (plane, Plan::Init),
        (
            up,
            Plan::Join {
                control_plane: false,
            },
        ),
        (
            Facts {
                control_plane: true,
                ..up
            },
            Plan::Join {
                control_plane: true,
            },
        ),
        (
            Facts {
                machine_has_data: true,
                ..up
            },
            Plan::Restore,
        ),
        (
            Facts {
                has_data: true,
                ..up
            },
            Plan::Refresh,
        ),
        (
            Facts {
                has_data: true,
                has_node: true,
                ..up
            },
            Plan::Done,
        ),
        (Facts { paused: true, ..up }, Plan::Paused),
    ] {
        assert_eq!(decide(&facts), expected, "{facts:?}");
    }
}

proptest! {
    #[test]
    fn data_that_exists_is_never_made_again(bits in any::<[bool; 8]>()) {
        let [paused, machine_has_data, has_node, control_plane, infrastructure, initialized, endpoint, init_only] = bits;
        let facts = Facts { has_data: true, paused, machine_has_data, has_node, control_plane, infrastructure, initialized, endpoint, init_only };
        prop_assert!(matches!(decide(&facts), Plan::Paused | Plan::Refresh | Plan::Done));
    }

    #[test]
    fn workers_never_initialize(bits in any::<[bool; 8]>()) {
        let [paused, machine_has_data, has_node, has_data, infrastructure, initialized, endpoint, init_only] = bits;
        let facts = Facts { control_plane: false, has_data, paused, machine_has_data, has_node, infrastructure, initialized, endpoint, init_only };
        prop_assert!(decide(&facts) != Plan::Init);
    }
}
