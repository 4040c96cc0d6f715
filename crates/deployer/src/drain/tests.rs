use std::collections::BTreeMap;

use serde_json::json;

use super::*;
use crate::held::Credentials;
use crate::parameters::Parameters;

const NOW: &str = "2026-11-30T10:00:00Z";

fn cloud(drain: &Json) -> Cloud {
    let spec = json!({
        "release": "2026.1", "nodes": {"compute": {"compute": "enabled"}},
        "compute": {"driver": "Libvirt", "drain": drain},
    });
    Cloud::new(&spec, Parameters::read(&spec).unwrap().0).unwrap()
}

fn held() -> Credentials {
    Credentials::complete("cloud", &[], || 7)
}

fn node(name: &str, cordoned: bool) -> Json {
    json!({
        "metadata": {"name": name, "uid": format!("uid of {name}"), "labels": {"compute": "enabled"}},
        "spec": {"unschedulable": cordoned},
    })
}

/// What a cluster has, as writes of guards change it.
#[derive(Default)]
struct Cluster {
    nodes: Vec<Json>,
    pods: Vec<Json>,
    budgets: Vec<Json>,
}

impl Cluster {
    fn observed(&self) -> Observed<'_> {
        Observed {
            nodes: &self.nodes,
            pods: &self.pods,
            budgets: &self.budgets,
        }
    }

    fn places(&self, cloud: &Cloud) -> Vec<Place> {
        places(cloud, &held(), self.observed())
    }

    /// Executes writes until there is none. Returns what was done.
    fn settle(&mut self, cloud: &Cloud, answers: &BTreeMap<String, Answer>) -> Vec<String> {
        let mut done = Vec::new();
        for _ in 0..10 {
            let owner = json!({"kind": "OpenStack"});
            let (writes, conflicts) =
                guards(cloud, &held(), &owner, self.observed(), (answers, NOW));
            assert_eq!(conflicts, Vec::<String>::new());
            if writes.is_empty() {
                return done;
            }
            for write in writes {
                self.write(&write);
                let verb = match write.verb {
                    Verb::Create(_) => "create",
                    Verb::Patch(_) => "patch",
                    Verb::Delete(_) => "delete",
                };
                done.push(format!("{verb} {}", write.kind));
            }
        }
        panic!("guards do not come to rest: {done:?}");
    }

    fn write(&mut self, write: &GuardWrite) {
        let all = match write.kind {
            "Pod" => &mut self.pods,
            _ => &mut self.budgets,
        };
        let at = all
            .iter()
            .position(|it| it["metadata"]["name"] == write.name.as_str());
        match (&write.verb, at) {
            (Verb::Create(object), None) => {
                let mut object = object.clone();
                object["metadata"]["uid"] = format!("{} {}", write.kind, write.name).into();
                all.push(object);
            }
            (Verb::Patch(patch), Some(at)) => {
                let there = &mut all[at];
                assert_eq!(patch["metadata"]["uid"], there["metadata"]["uid"]);
                there["spec"]["minAvailable"] = patch["spec"]["minAvailable"].clone();
                for (name, value) in patch["metadata"]["annotations"].as_object().unwrap() {
                    match value {
                        Json::Null => {
                            let there = there["metadata"]["annotations"].as_object_mut();
                            there.unwrap().remove(name);
                        }
                        value => there["metadata"]["annotations"][name] = value.clone(),
                    }
                }
            }
            (Verb::Delete(uid), Some(at)) => {
                assert_eq!(all[at]["metadata"]["uid"], uid.as_str());
                all.remove(at);
            }
            (verb, at) => panic!("{verb:?} of {at:?}"),
        }
    }
}

fn answer(is_empty: Option<bool>, is_over: bool) -> Answer {
    Answer {
        is_empty,
        service: Some("service-1".to_owned()),
        is_over,
    }
}

fn answers(node: &str, answer: Answer) -> BTreeMap<String, Answer> {
    BTreeMap::from([(node.to_owned(), answer)])
}

/// A fleet with a service on host `a`, and these servers and migrations.
fn fleet(service: &Json, servers: &[Json], migrations: &[Json]) -> Fleet {
    let mut fleet = Fleet::default();
    let mut whole = json!({"id": "service-1", "host": "a", "status": "enabled", "state": "up"});
    for (field, value) in service.as_object().unwrap() {
        whole[field] = value.clone();
    }
    fleet.services(&json!({"services": [whole]}));
    fleet.servers("a", &json!({"servers": servers}));
    let migrations: Vec<Json> = migrations.iter().cloned().map(changed).collect();
    fleet.migrations("a", NOW, &json!({"migrations": migrations}));
    fleet
}

/// A migration that has changed since the cordon, unless it says when.
fn changed(mut migration: Json) -> Json {
    if migration.get("updated_at").is_none() {
        migration["updated_at"] = "2026-11-30T10:00:01.000000".into();
    }
    migration
}

fn server(id: &str, status: &str) -> Json {
    json!({"id": id, "name": format!("name of {id}"), "status": status,
        "flavor": {"original_name": "m1.tiny"}, "OS-EXT-STS:task_state": null})
}

fn ours() -> Json {
    let uid = held().uid().to_owned();
    json!({"status": "disabled", "disabled_reason": format!("ferrostack {uid}: its node is cordoned")})
}

fn place(standing: Standing) -> Place {
    Place {
        node: "a".to_owned(),
        standing,
        since: Some(NOW.to_owned()),
        service: Some("service-1".to_owned()),
        is_ready: true,
        is_open: false,
    }
}

fn summary(turn: &Turn) -> Summary {
    Summary::from_stories(&turn.stories)
}

fn doing(turn: &Turn) -> Vec<&str> {
    turn.writes.iter().map(|it| it.doing.as_str()).collect()
}

#[test]
fn each_compute_node_gets_a_budget_and_a_guard_and_is_left_alone_then() {
    let cloud = cloud(&json!({}));
    let mut other = node("c", false);
    other["metadata"]["labels"] = json!({});
    let mut cluster = Cluster {
        nodes: vec![node("a", false), node("b", true), other],
        ..Cluster::default()
    };
    let done = cluster.settle(&cloud, &BTreeMap::new());
    let creations = done.iter().filter(|it| it.starts_with("create")).count();
    assert_eq!(creations, 4, "{done:?}");
    for pod in &cluster.pods {
        assert!(matches!(text(&pod["spec"]["nodeName"]), "a" | "b"));
        assert_eq!(pod["spec"]["automountServiceAccountToken"], false);
    }
    for budget in &cluster.budgets {
        let selector = budget["spec"]["selector"]["matchLabels"]
            .as_object()
            .unwrap();
        let selects = |pod: &&Json| {
            selector
                .iter()
                .all(|(label, value)| pod["metadata"]["labels"][label] == *value)
        };
        assert_eq!(cluster.pods.iter().filter(selects).count(), 1);
        assert_eq!(budget["spec"]["minAvailable"], 1);
    }
    let places = cluster.places(&cloud);
    assert_eq!(places[0].since, None);
    assert_eq!(places[1].since.as_deref(), Some(NOW));
}

#[test]
fn a_guard_may_go_when_its_node_is_cordoned_and_empty_and_comes_back_when_it_is_not() {
    let cloud = cloud(&json!({}));
    let mut cluster = Cluster {
        nodes: vec![node("a", true)],
        ..Cluster::default()
    };
    cluster.settle(&cloud, &answers("a", answer(Some(false), false)));
    assert_eq!(cluster.budgets[0]["spec"]["minAvailable"], 1);
    cluster.settle(&cloud, &answers("a", answer(Some(true), false)));
    assert_eq!(cluster.budgets[0]["spec"]["minAvailable"], 0);
    // The eviction.
    cluster.pods.clear();
    assert_eq!(
        cluster.settle(&cloud, &BTreeMap::new()),
        Vec::<String>::new()
    );
    // A server has come in between.
    let done = cluster.settle(&cloud, &answers("a", answer(Some(false), false)));
    assert_eq!(done, ["patch PodDisruptionBudget", "create Pod"]);
    cluster.settle(&cloud, &answers("a", answer(Some(true), false)));
    cluster.nodes = vec![node("a", false)];
    cluster.settle(&cloud, &answers("a", answer(None, false)));
    assert_eq!(
        cluster.places(&cloud)[0].since.as_deref(),
        Some(NOW),
        "not enabled yet"
    );
    cluster.settle(&cloud, &answers("a", answer(None, true)));
    assert_eq!(cluster.places(&cloud)[0].since, None);
    assert_eq!(cluster.pods.len(), 1);
}

#[test]
fn the_record_of_a_gone_node_goes_last_and_that_of_an_unlabelled_one_when_nothing_is_disabled() {
    let cloud = cloud(&json!({}));
    let mut cluster = Cluster {
        nodes: vec![node("a", false)],
        ..Cluster::default()
    };
    cluster.settle(&cloud, &answers("a", answer(None, false)));
    cluster.nodes.clear();
    cluster.settle(&cloud, &BTreeMap::new());
    let place = cluster.places(&cloud).remove(0);
    assert_eq!(place.standing, Standing::Gone);
    assert_eq!(place.since.as_deref(), Some(NOW));
    assert_eq!(place.service.as_deref(), Some("service-1"));
    cluster.settle(&cloud, &answers("a", answer(None, true)));
    assert!(cluster.places(&cloud).is_empty());

    cluster.nodes = vec![node("a", false)];
    cluster.settle(&cloud, &BTreeMap::new());
    cluster.nodes[0]["metadata"]["labels"] = json!({});
    cluster.settle(&cloud, &BTreeMap::new());
    assert!(cluster.places(&cloud).is_empty() && cluster.pods.is_empty());
}

#[test]
fn an_object_of_another_with_the_name_of_a_guard_is_a_conflict_and_stays() {
    let cloud = cloud(&json!({}));
    let mut cluster = Cluster {
        nodes: vec![node("a", false)],
        ..Cluster::default()
    };
    cluster.settle(&cloud, &BTreeMap::new());
    cluster.budgets[0]["metadata"]["labels"] = json!({});
    let (writes, conflicts) = guards(
        &cloud,
        &held(),
        &json!({}),
        cluster.observed(),
        (&BTreeMap::new(), NOW),
    );
    assert_eq!(writes, []);
    assert!(
        conflicts[0].contains("is not of this cloud"),
        "{conflicts:?}"
    );
}

#[test]
fn nova_is_asked_about_nodes_that_are_not_in_service_and_about_new_ones_alone() {
    let mut place = place(Standing::InService);
    place.since = None;
    assert_eq!(lists(std::slice::from_ref(&place)), []);
    place.service = None;
    assert_eq!(lists(std::slice::from_ref(&place)).len(), 1);
    place.is_ready = false;
    assert_eq!(lists(std::slice::from_ref(&place)), []);
    place.standing = Standing::Cordoned;
    assert_eq!(
        lists(std::slice::from_ref(&place)),
        [],
        "it is not recorded"
    );
    place.since = Some(NOW.to_owned());
    assert_eq!(lists(std::slice::from_ref(&place)).len(), 3);
    place.standing = Standing::Gone;
    let paths: Vec<String> = lists(&[place]).into_iter().map(|it| it.2).collect();
    assert_eq!(
        paths,
        [
            "/v2.1/os-services?binary=nova-compute",
            "/v2.1/servers/detail?all_tenants=1&host=a&limit=100",
            "/v2.1/os-migrations?host=a&limit=1000",
            "/v2.0/agents?host=a",
        ]
    );
}

#[test]
fn a_cordon_disables_first_and_moves_as_many_at_once_as_are_allowed() {
    let cloud = cloud(&json!({"atOnce": 2}));
    let servers: Vec<Json> = ["1", "2", "3", "4"].map(|id| server(id, "ACTIVE")).to_vec();
    let (places, memory) = ([place(Standing::Cordoned)], Memory::default());
    let turn = |fleet: &Fleet| turn(&cloud, &held(), &places, fleet, &memory);

    let first = turn(&fleet(&json!({}), &servers, &[]));
    assert_eq!(doing(&first), ["disabling the compute service of a"]);
    assert_eq!(first.answers["a"].is_empty, Some(false));
    let body = first.writes[0].body.as_ref().unwrap();
    assert_eq!(body["disabled_reason"], ours()["disabled_reason"]);

    let second = turn(&fleet(&ours(), &servers, &[]));
    assert_eq!(
        doing(&second),
        [
            "moving name of 1 away from a",
            "moving name of 2 away from a"
        ]
    );
    let mut moving = servers.clone();
    moving[0]["status"] = "MIGRATING".into();
    moving[1]["OS-EXT-STS:task_state"] = "migrating".into();
    assert_eq!(
        doing(&turn(&fleet(&ours(), &moving, &[]))),
        Vec::<&str>::new()
    );
    moving.remove(0);
    let third = turn(&fleet(&ours(), &moving, &[]));
    assert_eq!(doing(&third), ["moving name of 3 away from a"]);
    assert_eq!(summary(&third).message, "a has 3 servers, of which 1 move");
    let last = turn(&fleet(&ours(), &[], &[]));
    assert_eq!(last.answers["a"].is_empty, Some(true));
    assert!(summary(&last).is_true);
}

#[test]
fn a_service_that_somebody_else_has_disabled_is_not_enabled() {
    let cloud = cloud(&json!({}));
    let (places, memory) = ([place(Standing::InService)], Memory::default());
    let turn = |service: &Json| turn(&cloud, &held(), &places, &fleet(service, &[], &[]), &memory);
    let again = turn(&ours());
    assert_eq!(doing(&again), ["enabling the compute service of a"]);
    assert!(!again.answers["a"].is_over);
    for service in [
        json!({"status": "disabled", "disabled_reason": "broken fan"}),
        json!({}),
    ] {
        let rest = turn(&service);
        assert_eq!(doing(&rest), Vec::<&str>::new());
        assert!(rest.answers["a"].is_over);
    }
}

#[test]
fn servers_that_cannot_move_are_named_with_flavor_and_reason() {
    let cloud = cloud(&json!({}));
    let places = [place(Standing::Cordoned)];
    let failed = |id: i64| json!({"id": id, "instance_uuid": "2", "migration_type": "live-migration", "status": "error", "source_compute": "a"});
    let servers = [server("1", "SHUTOFF"), server("2", "ACTIVE")];
    let fleet = fleet(&ours(), &servers, &[failed(9)]);
    let mut memory = Memory::default();
    let first = turn(&cloud, &held(), &places, &fleet, &memory);
    assert_eq!(
        first.unknown,
        [("2".to_owned(), "live-migration".to_owned(), 9)]
    );
    memory.failed("2".to_owned(), 9, "No valid host was found.".to_owned());
    let second = turn(&cloud, &held(), &places, &fleet, &memory);
    assert_eq!(second.unknown, []);
    assert_eq!(doing(&second), Vec::<&str>::new(), "it rests");
    let summary = summary(&second);
    assert_eq!(summary.reason, "ServersCannotMove");
    assert_eq!(
        summary.message,
        "a has 2 servers, of which 0 move. Cannot move: \
         name of 1 (1, flavor m1.tiny): SHUTOFF: only running servers are migrated. Start or delete it, \
         name of 2 (2, flavor m1.tiny): No valid host was found. (1 of 3 attempts, tried again)"
    );
    memory.resting.clear();
    let third = turn(&cloud, &held(), &places, &fleet, &memory);
    assert_eq!(doing(&third), ["moving name of 2 away from a"]);
}

#[test]
fn after_three_failures_after_the_time_and_in_mode_wait_nothing_is_started() {
    let failed = |id: i64| json!({"id": id, "instance_uuid": "1", "migration_type": "live-migration", "status": "error", "source_compute": "a"});
    let places = [place(Standing::Cordoned)];
    let mut memory = Memory::default();
    let all = [failed(3), failed(2), failed(1)];
    let tried = fleet(&ours(), &[server("1", "ACTIVE")], &all);
    let whole = cloud(&json!({}));
    let rest = turn(&whole, &held(), &places, &tried, &memory);
    assert_eq!(doing(&rest), Vec::<&str>::new());
    assert!(
        summary(&rest)
            .message
            .contains("3 of 3 attempts, not tried again")
    );

    let mut old = failed(1);
    old["updated_at"] = "2026-11-30T09:59:59.000000".into();
    let again = fleet(
        &ours(),
        &[server("1", "ACTIVE")],
        &[old.clone(), old.clone(), old],
    );
    let again = turn(&whole, &held(), &places, &again, &memory);
    assert_eq!(
        doing(&again).len(),
        1,
        "failures before the cordon are none of it"
    );

    let fresh = fleet(&ours(), &[server("1", "ACTIVE")], &[]);
    memory.late.insert("a".to_owned());
    let late = turn(&whole, &held(), &places, &fresh, &memory);
    assert_eq!(doing(&late), Vec::<&str>::new());
    assert_eq!(summary(&late).reason, "TimedOut");

    memory.late.clear();
    let waits = cloud(&json!({"mode": "Wait"}));
    let waiting = turn(&waits, &held(), &places, &fresh, &memory);
    assert_eq!(doing(&waiting), Vec::<&str>::new());
    assert_eq!(summary(&waiting).reason, "WaitingForServers");
    let stopped = fleet(&ours(), &[server("1", "SHUTOFF")], &[]);
    let waiting = turn(&waits, &held(), &places, &stopped, &memory);
    assert_eq!(summary(&waiting).reason, "WaitingForServers");
}

#[test]
fn of_a_gone_node_the_agents_and_the_recorded_service_are_deleted_when_no_server_is_left() {
    let memory = Memory::default();
    let down = json!({"state": "down"});
    let agent = |alive: bool| json!({"agents": [{"id": "agent-1", "agent_type": "OVN Controller agent", "host": "a", "alive": alive}]});
    let places = [place(Standing::Gone)];
    let keeps = cloud(&json!({}));
    let turn = |cloud: &Cloud, fleet: &Fleet| turn(cloud, &held(), &places, fleet, &memory);

    let up = turn(&keeps, &fleet(&json!({}), &[], &[]));
    assert_eq!(doing(&up), Vec::<&str>::new());
    assert!(
        summary(&up)
            .message
            .contains("its nova-compute reports to Nova")
    );

    let servers = [server("1", "ACTIVE"), server("2", "SHUTOFF")];
    let on = fleet(&down, &servers, &[]);
    let rest = turn(&keeps, &on);
    assert_eq!(doing(&rest), Vec::<&str>::new());
    assert!(
        summary(&rest)
            .message
            .contains("name of 1 (1), name of 2 (2)")
    );
    assert_eq!(summary(&rest).reason, "NodeGone");

    let moves = turn(&cloud(&json!({"evacuate": true})), &on);
    assert_eq!(moves.writes.len(), 2);
    assert_eq!(moves.writes[0].body, Some(json!({"evacuate": {}})));

    let mut empty = fleet(&down, &[], &[]);
    empty.agents("a", &agent(true));
    let alive = turn(&keeps, &empty);
    assert_eq!(doing(&alive), Vec::<&str>::new());
    assert!(
        summary(&alive)
            .message
            .contains("its ovn-controller reports")
    );
    empty.agents("a", &agent(false));
    let last = turn(&keeps, &empty);
    assert_eq!(
        doing(&last),
        [
            "deleting the OVN Controller agent of a",
            "deleting the compute service of a"
        ]
    );
    assert!(!last.answers["a"].is_over);

    // A service of the same host that is not the recorded one is somebody else's.
    let other = fleet(&json!({"id": "service-2"}), &servers, &[]);
    let waits = turn(&cloud(&json!({"evacuate": true})), &other);
    assert_eq!(doing(&waits), Vec::<&str>::new(), "its guests may run");
    let other = fleet(&json!({"id": "service-2", "state": "down"}), &[], &[]);
    let over = turn(&keeps, &other);
    assert_eq!(doing(&over), Vec::<&str>::new());
    assert!(over.answers["a"].is_over);
}

#[test]
fn a_server_on_its_way_to_a_cordoned_or_gone_node_is_waited_for() {
    let cloud = cloud(&json!({}));
    let migration = |id: i64, status: &str| {
        json!({"id": id, "instance_uuid": "9", "migration_type": "live-migration",
            "status": status, "source_compute": "b", "dest_compute": "a",
            "updated_at": "2026-11-30T09:00:00.000000"})
    };
    let memory = Memory::default();
    for status in ["accepted", "queued", "preparing", "running"] {
        let comes = fleet(&ours(), &[], &[migration(2, status), migration(1, "error")]);
        let places = [place(Standing::Cordoned)];
        let waits = turn(&cloud, &held(), &places, &comes, &memory);
        assert_eq!(waits.answers["a"].is_empty, Some(false), "{status}");
        let expected = "a has no server, and 1 are on the way to it";
        assert_eq!(summary(&waits).message, expected);
        assert_eq!(summary(&waits).reason, "Draining");
        let down = json!({"state": "down"});
        let comes = fleet(&down, &[], &[migration(2, status)]);
        let waits = turn(&cloud, &held(), &[place(Standing::Gone)], &comes, &memory);
        assert_eq!(doing(&waits), Vec::<&str>::new());
    }
    let arrived = fleet(&ours(), &[], &[migration(2, "completed")]);
    let places = [place(Standing::Cordoned)];
    let done = turn(&cloud, &held(), &places, &arrived, &memory);
    assert_eq!(done.answers["a"].is_empty, Some(true));
}

#[test]
fn a_service_is_recorded_while_its_node_is_there_or_never() {
    let cloud = cloud(&json!({}));
    let mut gone = place(Standing::Gone);
    gone.service = None;
    let memory = Memory::default();
    for state in ["up", "down"] {
        let there = fleet(&json!({"state": state}), &[], &[]);
        let places = [gone.clone()];
        let turn = turn(&cloud, &held(), &places, &there, &memory);
        assert_eq!(doing(&turn), Vec::<&str>::new());
        assert_eq!(turn.answers["a"].service, None, "{state}");
    }
}

#[test]
fn the_reason_of_a_failure_is_that_of_the_newest_action_and_pages_go_on_after_the_last_server() {
    let actions = json!({"instanceActions": [
        {"action": "reboot", "request_id": "req-3"},
        {"action": "live-migration", "request_id": "req-2"},
        {"action": "live-migration", "request_id": "req-1"},
    ]});
    assert_eq!(
        details_of("1", "live-migration", &actions).as_deref(),
        Some("/v2.1/servers/1/os-instance-actions/req-2")
    );
    let action = json!({"instanceAction": {"events": [
        {"result": "Success", "details": null}, {"result": "Error", "details": "no room"},
    ]}});
    assert_eq!(detail_of(&action).as_deref(), Some("no room"));
    let list = json!({"servers": [{"id": "1"}, {"id": "2"}], "servers_links": [{"rel": "next"}]});
    assert_eq!(
        next_page("/servers?limit=2&marker=0", &list).as_deref(),
        Some("/servers?limit=2&marker=2")
    );
    assert_eq!(next_page("/servers", &json!({"servers": []})), None);
}
