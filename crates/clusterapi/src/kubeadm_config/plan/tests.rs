mod convergence;

use api::bootstrap::v1beta2::{KubeadmConfig, KubeadmConfigSpec};
use api::core::v1beta2::{Cluster, ClusterSpec, ContractReference};
use proptest::prelude::*;

use super::{Facts, Plan, Wait, decide, joins_only};

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

#[test]
fn a_machine_that_only_joins_waits_for_the_first_one() {
    let facts = Facts {
        control_plane: true,
        joins_only: true,
        ..ready()
    };
    assert_eq!(decide(&facts), Plan::Wait(Wait::ControlPlane));
}

#[test]
fn a_config_with_nothing_but_an_init_configuration_joins_a_cluster_that_is_initialized() {
    let config = KubeadmConfig::new(
        "by-hand",
        KubeadmConfigSpec {
            init_configuration: Some(Default::default()),
            ..KubeadmConfigSpec::default()
        },
    );
    let facts = Facts {
        initialized: true,
        control_plane: true,
        joins_only: joins_only(&config, &Cluster::new("demo", ClusterSpec::default())),
        ..ready()
    };
    let control_plane = true;
    assert_eq!(decide(&facts), Plan::Join { control_plane });
}

#[test]
fn who_only_joins_is_decided_by_the_control_plane_object_where_there_is_one() {
    let by_hand = Cluster::new("demo", ClusterSpec::default());
    let managed = ClusterSpec {
        control_plane_ref: Some(ContractReference::default()),
        ..ClusterSpec::default()
    };
    let managed = Cluster::new("demo", managed);
    let config = |init: bool, join: bool, cluster: bool| {
        let spec = KubeadmConfigSpec {
            init_configuration: init.then(Default::default),
            join_configuration: join.then(Default::default),
            cluster_configuration: cluster.then(Default::default),
            ..KubeadmConfigSpec::default()
        };
        KubeadmConfig::new("demo", spec)
    };
    for (init, join, cluster, if_managed, if_by_hand) in [
        (false, true, false, true, true),
        // As a KubeadmControlPlane creates it for all machines but the first.
        (false, true, true, true, false),
        (true, true, true, false, false),
        (true, false, true, false, false),
        (false, false, false, false, false),
    ] {
        let config = config(init, join, cluster);
        assert_eq!(joins_only(&config, &managed), if_managed, "{config:?}");
        assert_eq!(joins_only(&config, &by_hand), if_by_hand, "{config:?}");
    }
}

fn any_facts() -> impl Strategy<Value = Facts> {
    any::<[bool; 9]>().prop_map(
        |[
            paused,
            has_data,
            machine_has_data,
            has_node,
            control_plane,
            infrastructure,
            initialized,
            endpoint,
            joins_only,
        ]| Facts {
            paused,
            has_data,
            machine_has_data,
            has_node,
            control_plane,
            infrastructure,
            initialized,
            endpoint,
            joins_only,
        },
    )
}

proptest! {
    #[test]
    fn data_that_exists_is_never_made_again(facts in any_facts()) {
        let facts = Facts { has_data: true, ..facts };
        prop_assert!(matches!(decide(&facts), Plan::Paused | Plan::Refresh | Plan::Done));
    }

    #[test]
    fn workers_never_initialize(facts in any_facts()) {
        let facts = Facts { control_plane: false, ..facts };
        prop_assert!(decide(&facts) != Plan::Init);
    }

    #[test]
    fn an_initialized_cluster_never_gets_a_second_init(facts in any_facts()) {
        let facts = Facts { initialized: true, ..facts };
        prop_assert!(decide(&facts) != Plan::Init);
    }
}
