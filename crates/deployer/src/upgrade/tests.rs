use std::collections::BTreeMap;
use std::rc::Rc;

use serde_json::{Value as Json, json};

use super::*;
use crate::desired::tests::{cloud, full};
use crate::parameters::Parameters;
use crate::plan::Verb;

/// A namespace in which what is written is ready one moment later.
#[derive(Clone, Default)]
struct World {
    objects: Vec<Json>,
    turns: usize,
    /// What is rendered, since nothing that it is made from changes.
    stages: Option<Rc<Stages>>,
    /// The task that fails.
    failing: &'static str,
    /// Everything that was written, in order.
    written: Vec<String>,
}

fn spec(release: &str) -> Json {
    let mut spec = full(Release::Gazpacho);
    spec["release"] = release.into();
    // Clouds of earlier releases have neither volumes nor load balancers.
    for field in ["storage", "services"] {
        spec.as_object_mut().unwrap().remove(field);
    }
    spec
}

fn accounts() -> BTreeMap<String, Written> {
    ["broker-accounts", "identities"]
        .map(|it| (it.to_owned(), Written::All))
        .into()
}

impl World {
    fn ready(release: Release) -> Self {
        let mut world = Self::default();
        let cloud = cloud(&spec(release.name()));
        let graph = desired(&cloud, &world.held());
        for _ in 0..100 {
            let progress = world.steady_on(&graph);
            if progress.is_ready() && progress.actions.is_empty() {
                world.written.clear();
                return world;
            }
        }
        panic!("not made");
    }

    fn stages(&mut self) -> Rc<Stages> {
        if self.stages.is_none() {
            let stages = Stages::new(&cloud(&spec("2026.1")), Release::Epoxy, &self.held());
            self.stages = Some(Rc::new(stages));
        }
        Rc::clone(self.stages.as_ref().unwrap())
    }

    fn held(&self) -> Credentials {
        let mut next = 0_u8;
        Credentials::complete("cloud", &self.objects, || {
            next = next.wrapping_mul(5).wrapping_add(17);
            next
        })
    }

    fn steady(&mut self, cloud: &Cloud) -> Progress {
        let graph = desired(cloud, &self.held());
        self.steady_on(&graph)
    }

    fn steady_on(&mut self, graph: &Graph) -> Progress {
        let plan = plan::plan(graph, &self.objects);
        assert!(plan.conflicts.is_empty(), "{:?}", plan.conflicts);
        let progress = plan::progress(graph, &plan, &self.objects, &[], &accounts());
        self.write(graph, &progress);
        progress
    }

    /// One look of an upgrade, from a recorded phase.
    fn turn(&mut self, recorded: Phase) -> Turn {
        self.turns += 1;
        let stages = self.stages();
        let turn = stages.turn(recorded, &self.objects, &[], &accounts());
        assert!(turn.plan.conflicts.is_empty(), "{:?}", turn.plan.conflicts);
        self.write(&turn.graph, &turn.progress);
        let left = turn.progress.steps.iter().filter(|(_, it)| !it.is_done());
        assert!(
            self.turns < 200,
            "{}: {:?}",
            turn.phase,
            left.collect::<Vec<_>>()
        );
        turn
    }

    fn write(&mut self, graph: &Graph, progress: &Progress) {
        let failing = self.failing;
        self.objects.iter_mut().for_each(|it| ready(it, failing));
        for action in &progress.actions {
            let found = graph
                .objects()
                .find(|(_, it)| *it.reference() == action.object);
            let mut object = found.unwrap().1.exposed();
            object["metadata"]["uid"] = "x".into();
            object["metadata"]["generation"] = 1.into();
            let at = self
                .objects
                .iter()
                .position(|it| Reference::from_object(it).as_ref() == Some(&action.object));
            if let Some(at) = at {
                assert_ne!(action.verb, Verb::Replace, "{}", action.object);
                let before = self.objects.remove(at);
                let generation = before["metadata"]["generation"].as_i64().unwrap();
                object["metadata"]["generation"] = (generation + 1).into();
                object["status"] = before["status"].clone();
            }
            self.objects.push(object);
            self.written.push(action.object.to_string());
        }
        for reference in &progress.deletions {
            self.objects
                .retain(|it| Reference::from_object(it).as_ref() != Some(reference));
        }
    }

    fn image(&self, name: &str) -> Option<Release> {
        let found = self.program(name)?;
        Release::of_image(found)
    }

    fn program(&self, name: &str) -> Option<&Json> {
        let is_program = |it: &&Json| {
            ["Deployment", "StatefulSet"]
                .iter()
                .any(|kind| it["kind"] == *kind)
        };
        self.objects
            .iter()
            .filter(is_program)
            .find(|it| it["metadata"]["name"] == name)
    }

    /// The file of options of a program.
    fn options(&self, program: &str) -> String {
        let volumes = &self.program(program).unwrap()["spec"]["template"]["spec"]["volumes"];
        let mut maps = volumes
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| it["name"] == program);
        let name = &maps.next().unwrap()["configMap"]["name"];
        let map = self
            .objects
            .iter()
            .find(|it| it["kind"] == "ConfigMap" && it["metadata"]["name"] == *name);
        map.unwrap()["data"]["nova.conf"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    fn stands(&self, recorded: Recorded, wanted: Release) -> Standing {
        standing(recorded, wanted, self.held().uid(), &self.objects)
    }
}

/// What the controllers of Kubernetes make of an object.
fn ready(object: &mut Json, failing: &str) {
    let wanted = object["spec"]["replicas"].as_i64().unwrap_or(1);
    let generation = object["metadata"]["generation"].clone();
    if object["kind"] == "Job" {
        let fails =
            !failing.is_empty() && object["metadata"]["labels"]["ferrostack.dev/step"] == failing;
        let kind = if fails { "Failed" } else { "Complete" };
        object["status"] = json!({"conditions": [{"type": kind, "status": "True"}]});
    } else if !object["spec"]["template"].is_null() {
        object["status"] = json!({"observedGeneration": generation, "replicas": wanted,
            "updatedReplicas": wanted, "readyReplicas": wanted, "availableReplicas": wanted});
    }
}

/// Upgrades until the end; the phases in the order in which they came.
fn upgraded(world: &mut World) -> Vec<Phase> {
    let (mut phase, mut phases) = (Phase::Check, vec![]);
    for _ in 0..200 {
        let turn = world.turn(phase);
        phase = turn.phase;
        if phases.last() != Some(&phase) {
            phases.push(phase);
        }
        if turn.is_over {
            return phases;
        }
    }
    panic!(
        "{phase} is not over: {:?}",
        world.turn(phase).progress.steps
    );
}

#[test]
fn an_upgrade_goes_through_its_phases_and_ends_as_a_new_cloud() {
    let mut world = World::ready(Release::Epoxy);
    let infrastructure: Vec<Json> = [
        "mariadb",
        "rabbitmq",
        "memcached",
        "ovn-nb",
        "ovn-sb",
        "edge",
    ]
    .map(|it| world.program(it).unwrap().clone())
    .into();
    let phases = upgraded(&mut world);
    // Nothing is to be done for the infrastructure, which both releases share.
    let expected = [
        Phase::Check,
        Phase::Expand,
        Phase::Roll,
        Phase::Migrate,
        Phase::Contract,
        Phase::Verify,
    ];
    assert_eq!(phases, expected);
    for before in infrastructure {
        let name = before["metadata"]["name"].as_str().unwrap();
        assert_eq!(world.program(name).unwrap()["spec"], before["spec"]);
    }
    for name in ROLL {
        assert_eq!(world.image(name), Some(Release::Gazpacho), "{name}");
    }
    let new = cloud(&spec("2026.1"));
    let progress = world.steady(&new);
    assert!(
        progress.is_ready() && progress.actions.is_empty(),
        "{progress:?}"
    );
    let tasks = world
        .objects
        .iter()
        .filter_map(|it| it["metadata"]["labels"]["ferrostack.dev/step"].as_str());
    assert_eq!(tasks.filter(|it| is_task(it)).collect::<Vec<_>>(), [""; 0]);
}

#[test]
fn programs_are_replaced_in_order_each_after_those_before_it_answer() {
    let mut world = World::ready(Release::Epoxy);
    let (mut phase, mut order) = (Phase::Check, vec![]);
    while phase < Phase::Migrate {
        let before: Vec<_> = ROLL.map(|it| world.image(it)).into();
        let turn = world.turn(phase);
        phase = turn.phase;
        let changed = ROLL
            .iter()
            .zip(before)
            .filter(|(name, before)| world.image(name) != *before);
        let changed: Vec<&str> = changed.map(|(name, _)| *name).collect();
        assert!(
            changed.is_empty() || phase == Phase::Roll,
            "{phase}: {changed:?}"
        );
        assert!(changed.len() <= 1, "at once: {changed:?}");
        if let Some(name) = changed.first() {
            if *name == "nova-compute" {
                for control in ["nova-conductor", "nova-scheduler", "nova-api"] {
                    assert!(
                        world
                            .options(control)
                            .contains("[upgrade_levels]\ncompute = auto"),
                        "{control}"
                    );
                }
            }
            order.push(*name);
        }
    }
    assert_eq!(order, ROLL);
    let schemas = |it: &String| it.starts_with("Job ");
    let jobs: Vec<String> = world
        .written
        .iter()
        .filter(|it| schemas(it))
        .cloned()
        .collect();
    let place = |name: &str| {
        jobs.iter()
            .position(|it| it.starts_with(&format!("Job {name}-")))
            .unwrap()
    };
    assert!(place("keystone-expand") < place("keystone-migrate"));
    assert!(place("nova-api-expand") < place("nova-expand"));
    upgraded(&mut world);
    for program in [
        "nova-conductor",
        "nova-scheduler",
        "nova-api",
        "nova-compute",
    ] {
        assert!(
            !world.options(program).contains("upgrade_levels"),
            "{program}: a pin is left"
        );
    }
}

#[test]
fn a_failed_check_changes_nothing_and_going_back_leaves_what_was_there() {
    let mut world = World::ready(Release::Epoxy);
    let before = world.clone();
    world.failing = "nova-check";
    for _ in 0..10 {
        assert_eq!(world.turn(Phase::Check).phase, Phase::Check);
    }
    let kinds = ["Job ", "ConfigMap ", "Secret ", "NetworkPolicy upgrade-"];
    let others = world
        .written
        .iter()
        .filter(|it| !kinds.iter().any(|kind| it.starts_with(kind)));
    assert_eq!(others.collect::<Vec<_>>(), [""; 0]);
    for object in &before.objects {
        assert!(world.objects.contains(object), "{object:#}");
    }
    // The old release again: what the check has made goes, and nothing else is written.
    world.written.clear();
    let recorded = Recorded {
        current: Some(Release::Epoxy),
        to: Some(Release::Gazpacho),
        phase: Some(Phase::Check),
    };
    assert_eq!(
        world.stands(recorded, Release::Epoxy),
        Standing::Steady(Release::Epoxy)
    );
    for _ in 0..3 {
        world.steady(&cloud(&spec("2025.1")));
    }
    assert_eq!(world.written, [""; 0]);
    let names = |world: &World| {
        let step = |it: &Json| {
            it["metadata"]["labels"]["ferrostack.dev/step"]
                .as_str()
                .unwrap_or_default()
                .to_owned()
        };
        let jobs = world.objects.iter().filter(|it| it["kind"] == "Job");
        jobs.map(step).collect::<Vec<_>>()
    };
    assert_eq!(names(&world), names(&before));
}

#[test]
fn a_cloud_that_is_not_ready_is_not_checked_off() {
    let mut world = World::ready(Release::Epoxy);
    for _ in 0..5 {
        world.turn(Phase::Check);
        let lost = world
            .objects
            .iter_mut()
            .find(|it| it["metadata"]["name"] == "nova-compute" && it["kind"] == "StatefulSet");
        lost.unwrap()["status"]["readyReplicas"] = 2.into();
    }
    let turn = world.turn(Phase::Check);
    assert_eq!(turn.phase, Phase::Check);
    assert!(
        world
            .written
            .iter()
            .any(|it| it.starts_with("Job nova-check-"))
    );
    assert!(
        !world.written.iter().any(|it| it.contains("-expand-")),
        "{:?}",
        world.written
    );
}

/// A world in which every program but the dashboard is replaced.
fn computes_moved() -> World {
    let mut world = World::ready(Release::Epoxy);
    while world.image("nova-compute") != Some(Release::Gazpacho) {
        world.turn(Phase::Check);
    }
    world
}

#[test]
fn no_old_compute_starts_once_computes_are_new() {
    let mut world = computes_moved();
    // A program before it fails: the computes stay new.
    let api = world
        .objects
        .iter_mut()
        .find(|it| it["metadata"]["name"] == "nova-api" && it["kind"] == "Deployment")
        .unwrap();
    api["status"]["availableReplicas"] = 0.into();
    world.written.clear();
    for phase in [Phase::Check, Phase::Expand, Phase::Roll] {
        let stages = world.stages();
        let (graph, _) = stages.graph(phase, &world.objects);
        let computes = graph
            .steps
            .iter()
            .find(|it| it.name == "nova-compute")
            .unwrap();
        let image = Release::of_image(computes.objects[0].public());
        assert_eq!(image, Some(Release::Gazpacho), "{phase}");
    }
    // They are deleted while that fails: they come back as new ones in their turn, and never as old ones.
    world
        .objects
        .retain(|it| it["metadata"]["name"] != "nova-compute" || it["kind"] != "StatefulSet");
    for phase in Phase::ALL {
        let stages = world.stages();
        let (graph, _) = stages.graph(phase, &world.objects);
        let old = graph.objects().filter(|(step, it)| {
            rolls(step) && Release::of_image(it.public()) == Some(Release::Epoxy)
        });
        let old: Vec<&str> = old.map(|(step, _)| step.name.as_str()).collect();
        assert!(!old.contains(&"nova-compute"), "{phase}: {old:?}");
    }
    upgraded(&mut world);
    assert_eq!(world.image("nova-compute"), Some(Release::Gazpacho));
}

#[test]
fn the_way_back_ends_when_the_first_program_is_replaced() {
    let mut world = World::ready(Release::Epoxy);
    let recorded = |phase| Recorded {
        current: Some(Release::Epoxy),
        to: Some(Release::Gazpacho),
        phase: Some(phase),
    };
    let mut phase = Phase::Check;
    while phase < Phase::Roll {
        assert_eq!(
            world.stands(recorded(phase), Release::Epoxy),
            Standing::Steady(Release::Epoxy)
        );
        assert!(phase.leads_back());
        phase = world.turn(phase).phase;
    }
    assert!(!phase.leads_back());
    let Standing::Refused(why) = world.stands(recorded(phase), Release::Epoxy) else {
        panic!("{phase}");
    };
    for part in [
        "keystone-api is of 2026.1 already",
        "set release to \"2026.1\" again",
        "restore a backup of 2025.1",
    ] {
        assert!(why.contains(part), "{why}");
    }
    // Also when nothing is recorded any more.
    assert!(matches!(
        world.stands(Recorded::default(), Release::Epoxy),
        Standing::Refused(_) | Standing::Steady(_)
    ));
}

#[test]
fn where_a_cloud_stands_is_seen_without_a_record() {
    let none = Recorded::default();
    assert_eq!(
        World::default().stands(none, Release::Gazpacho),
        Standing::Steady(Release::Gazpacho)
    );
    let mut world = World::ready(Release::Epoxy);
    let on_the_way = Standing::Upgrade {
        from: Release::Epoxy,
        to: Release::Gazpacho,
        phase: Phase::Check,
    };
    let mut phase = Phase::Check;
    loop {
        assert_eq!(world.stands(none, Release::Gazpacho), on_the_way);
        let turn = world.turn(phase);
        phase = turn.phase;
        if turn.is_over {
            break;
        }
    }
    world.steady(&cloud(&spec("2026.1")));
    assert_eq!(
        world.stands(none, Release::Gazpacho),
        Standing::Steady(Release::Gazpacho)
    );
    assert!(
        matches!(world.stands(none, Release::Epoxy), Standing::Refused(why) if why.contains("never lowered"))
    );
    let zed = World::ready(Release::Zed);
    assert!(
        matches!(zed.stands(none, Release::Gazpacho), Standing::Refused(why) if why.contains("no way leads from zed"))
    );
}

#[test]
fn lost_after_any_step_an_upgrade_goes_on_from_the_objects_alone() {
    let mut world = World::ready(Release::Epoxy);
    let mut phase = Phase::Check;
    let mut seen = vec![];
    loop {
        let place = (phase, world.image("nova-compute"));
        if !seen.contains(&place) {
            seen.push(place);
            let mut other = world.clone();
            // The record is lost: it begins with Check, and takes no program back.
            upgraded(&mut other);
            for name in ROLL {
                assert_eq!(
                    other.image(name),
                    Some(Release::Gazpacho),
                    "{phase}: {name}"
                );
            }
        }
        let turn = world.turn(phase);
        phase = turn.phase;
        if turn.is_over {
            break;
        }
    }
}

#[test]
fn every_program_of_a_cloud_is_replaced_or_is_of_the_infrastructure() {
    let mut world = World::ready(Release::Epoxy);
    let stages = world.stages();
    for graph in [&stages.old, &stages.new] {
        let names = graph
            .steps
            .iter()
            .filter(|it| rolls(it))
            .map(|it| it.name.as_str());
        let names: BTreeSet<&str> = names.collect();
        assert_eq!(names, BTreeSet::from(ROLL));
    }
    let accounts = |graph: &Graph| {
        let steps = graph.steps.iter().filter(|it| it.accounts.is_some());
        steps
            .map(|it| (it.name.clone(), it.accounts.clone()))
            .collect::<Vec<_>>()
    };
    assert_eq!(accounts(&stages.old), accounts(&stages.mixed));
    assert_eq!(accounts(&stages.old), accounts(&stages.new));
}

#[test]
fn tasks_of_an_upgrade_have_the_new_image_and_reach_the_database() {
    let mut world = World::ready(Release::Epoxy);
    let stages = world.stages();
    let database = stages
        .policies
        .iter()
        .find(|it| it.reference().name == "upgrade-mariadb")
        .unwrap();
    let allowed = database.public()["spec"]["ingress"].to_string();
    assert_eq!(stages.tasks.len(), commands::all(Release::Epoxy).len());
    for (phase, step) in &stages.tasks {
        let job = step.objects[0].public();
        let container = &job["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(
            container["image"],
            Release::Gazpacho.image(),
            "{}",
            step.name
        );
        assert!(
            allowed.contains(&format!("\"{}\"", step.name)),
            "{}",
            step.name
        );
        let words: Vec<&str> = container["command"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Json::as_str)
            .collect();
        if *phase == Phase::Check {
            assert_eq!(words[..2], ["/bin/sh", "-c"]);
            assert_eq!(words[words.len() - 2..], ["upgrade", "check"]);
            assert_eq!(words[3], format!("{}-status", step.part));
        }
        assert_eq!(part(&step.name), Some(step.part));
    }
    let neutron = stages
        .tasks
        .iter()
        .find(|(_, it)| it.name == "neutron-expand")
        .unwrap();
    let command =
        &neutron.1.objects[0].public()["spec"]["template"]["spec"]["containers"][0]["command"];
    let expected = json!([
        "neutron-db-manage",
        "--config-file",
        "/etc/neutron/neutron.conf",
        "--config-dir",
        "/etc/neutron/neutron.conf.d",
        "upgrade",
        "--expand"
    ]);
    assert_eq!(*command, expected);
}

#[test]
fn what_checks_warn_of_is_told_by_name() {
    let table = "2026-11-29 INFO x\n+----+\n| Upgrade Check Results |\n+----+\n| Check: Policy File |\n| Result: Success |\n| Details: None |\n+----+
| Check: Worker counts configured |\n| Result: Warning |\n| Details: api_workers is |\n| not set |\n+----+\n";
    assert_eq!(
        commands::warnings(table),
        ["Worker counts configured: api_workers is not set"]
    );
    let pod = |uid: &str, code: i32| {
        json!({
            "metadata": {"labels": {"app.kubernetes.io/name": "neutron-check", UID: uid}},
            "status": {"containerStatuses": [{"state": {"terminated": {"exitCode": code, "message": table}}}]},
        })
    };
    let warned = warnings(
        "u",
        &[pod("u", 0), pod("u", 0), pod("other", 0), pod("u", 2)],
    );
    assert_eq!(
        warned,
        ["neutron-check: Worker counts configured: api_workers is not set"]
    );
    assert_eq!(commands::warnings("odd words\n"), ["odd words"]);
}

#[test]
fn options_of_the_user_are_held_against_both_releases() {
    let read = |config: Json| {
        let document = json!({"release": "2026.1", "services": config});
        (Parameters::read(&document).unwrap().0, document)
    };
    let (parameters, document) =
        read(json!({"neutron": {"config": {"ml2": {"tenant_network_types": ["geneve"]}}}}));
    let renamed = renamed(&parameters, Release::Epoxy);
    assert_eq!(renamed.len(), 1);
    assert_eq!(
        renamed[0].path,
        "services.neutron.config.ml2.tenant_network_types"
    );
    assert_eq!(renamed[0].name, "[ml2] project_network_types");
    let patch = json!({"services": {"neutron": {"config": {"ml2": {"tenant_network_types": null, "project_network_types": ["geneve"]}}}}});
    assert_eq!(renamed[0].patch, patch);
    assert_eq!(unknown_before(&document, Release::Epoxy), [""; 0]);

    let (parameters, _) =
        read(json!({"nova": {"config": {"DEFAULT": {"enabled_apis": ["metadata"]}}}}));
    let findings = crate::check::check(&parameters);
    let text = findings.iter().map(ToString::to_string).collect::<String>();
    assert!(
        text.contains("which 2025.1 had: remove it, before an upgrade as well"),
        "{text}"
    );

    let (_, document) =
        read(json!({"nova": {"config": {"DEFAULT": {"manager_shutdown_timeout": 9}}}}));
    let later = unknown_before(&document, Release::Epoxy);
    assert!(
        later[0].starts_with("spec.services.nova.config.DEFAULT.manager_shutdown_timeout: "),
        "{later:?}"
    );
    assert!(
        later[0].ends_with("The cloud is of 2025.1 until its upgrade is over: set this afterwards"),
        "{later:?}"
    );
}
