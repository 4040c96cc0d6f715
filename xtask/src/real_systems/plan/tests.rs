use proptest::prelude::*;

use super::*;
use crate::real_systems::TABLE;

#[test]
fn a_step_is_due_without_a_record_after_a_change_and_after_thirty_days() {
    let now: Timestamp = "2026-11-28T12:00:00Z".parse().unwrap();
    let passed = |inputs: &str, at: &str| Pass {
        minutes: 1.0,
        at: at.parse().unwrap(),
        commit: "5f7c2b53".to_owned(),
        inputs: Some(inputs.to_owned()),
        tests: None,
    };
    for (last, expected) in [
        (None, Some(Due::Never)),
        (Some(passed("a", "2026-11-28T11:00:00Z")), None),
        (
            Some(passed("b", "2026-11-28T11:00:00Z")),
            Some(Due::Changed),
        ),
        (Some(passed("a", "2026-10-29T12:00:00Z")), None),
        (Some(passed("a", "2026-10-29T11:59:00Z")), Some(Due::Old)),
        (
            Some(passed("b", "2026-10-01T12:00:00Z")),
            Some(Due::Changed),
        ),
        // Another machine's clock.
        (Some(passed("a", "2026-11-29T12:00:00Z")), None),
    ] {
        assert_eq!(due(last.as_ref(), "a", now), expected, "{last:?}");
    }
}

#[test]
fn minutes_are_those_of_the_record_and_grow_with_those_of_the_tests() {
    for (now, then, factor) in [
        (None, None, 1.0),
        (Some(30.0), None, 1.0),
        (None, Some(20.0), 1.0),
        (Some(20.0), Some(20.0), 1.0),
        (Some(40.0), Some(20.0), 2.0),
        (Some(10.0), Some(20.0), 1.0),
        (Some(500.0), Some(20.0), SLOWEST),
        (Some(20.0), Some(0.0), 1.0),
    ] {
        let found = slowness(now, then);
        assert!((found - factor).abs() < 1e-9, "{now:?} {then:?}: {found}");
    }
}

#[test]
fn what_stays_on_a_machine_takes_its_time_where_it_is_missing_whatever_the_record_says() {
    let table = Table::parse(
        "tests: 20\nsystems:\n- {name: programs, shows: programs, up: build, minutes: 6}\n\
         - {name: cloud, shows: a cloud, needs: [programs], up: start, down: stop, minutes: 4}\nsteps: []\n",
    )
    .unwrap();
    let mut record = Record::default();
    for name in ["programs", "cloud"] {
        let pass = Pass {
            minutes: 0.5,
            at: "2026-11-28T12:00:00Z".parse().unwrap(),
            commit: "5f7c2b53".to_owned(),
            inputs: None,
            tests: Some(20.0),
        };
        record.insert(name, pass);
    }
    let [programs, cloud] = &table.systems[..] else {
        panic!("two systems");
    };
    let found = |there: &[&str], tests| {
        let there = there.iter().map(|name| (*name).to_owned()).collect();
        let expected = Expected::new(&table, &record, &there, tests);
        [expected.system(programs), expected.system(cloud)]
    };
    assert_eq!(found(&[], None), [6.0, 0.5]);
    assert_eq!(found(&["programs"], None), [0.0, 0.5]);
    assert_eq!(found(&[], Some(40.0)), [12.0, 1.0]);
}

#[test]
fn the_oldest_begin_and_share_their_systems() {
    let cloud = &[("cloud", 4.0)] as &[(&str, f64)];
    let both = &[("api", 3.0), ("cloud", 4.0)];
    let api = &[("api", 3.0)];
    let steps = [
        step("new", 1.0, &[], None),
        step("on-cloud", 2.0, cloud, Some(3)),
        step("on-api", 2.0, api, Some(2)),
        step("long", 30.0, &[], Some(1)),
        step("also-on-api", 1.0, api, Some(9)),
        step("on-both", 1.0, both, Some(4)),
    ];
    let none = BTreeSet::new();
    let names = |limit| {
        let plan = plan(&steps, &none, limit);
        (plan.begin.join(" "), plan.later.join(" "))
    };
    let cases = [
        (None, "new long on-api also-on-api on-both on-cloud", ""),
        (
            Some(0.0),
            "",
            "new long on-api on-cloud on-both also-on-api",
        ),
        // 1 new, then 3 + 2, then the fourth in age does not fit, and the last one, of one minute, does.
        (Some(7.0), "new on-api also-on-api", "long on-cloud on-both"),
        // 1 + 5 + 6 + 1 + 1.
        (
            Some(14.0),
            "new on-api also-on-api on-both on-cloud",
            "long",
        ),
        (
            Some(31.0),
            "new long",
            "on-api on-cloud on-both also-on-api",
        ),
    ];
    for (limit, begin, later) in cases {
        assert_eq!(
            names(limit),
            (begin.to_owned(), later.to_owned()),
            "{limit:?}"
        );
    }
    // A running system costs nothing, and its steps come first.
    let running = BTreeSet::from(["cloud"]);
    let plan = plan(&steps, &running, Some(5.5));
    assert_eq!(plan.begin, ["on-cloud", "new"]);
}

/// Promise of this workspace's table: all inputs change with every run, and a run has 32 minutes left for real systems,
/// on a bare machine.
#[test]
fn five_runs_pass_every_step_of_the_table() {
    let table = Table::read(&crate::root().join(TABLE)).unwrap();
    let expected = Expected::new(&table, &Record::default(), &BTreeSet::new(), None);
    let steps: Vec<Candidate<'_>> = table
        .steps
        .iter()
        .map(|step| Candidate::new(&table, &expected, step, None))
        .collect();
    let never = after_runs(steps, 32.0, 5);
    assert_eq!(never, Vec::<&str>::new(), "not run");
}

proptest! {
    /// Steps left out are the next ones of the following run: if all steps, with the systems of each counted anew, take
    /// no longer than three runs, five runs pass every step, however often the inputs change.
    #[test]
    fn no_step_waits_more_than_five_runs(steps in proptest::collection::vec((1_u32..200, 0_usize..SYSTEMS.len(), 0_i64..50), 1..25)) {
        let systems = SYSTEMS;
        let names: Vec<String> = (0..steps.len()).map(|index| format!("step-{index}")).collect();
        let candidates: Vec<Candidate<'_>> = steps
            .iter()
            .zip(&names)
            .map(|((tenths, needs, at), name)| {
                let passed = (*at > 0).then_some(*at);
                step(name, f64::from(*tenths) / 10.0, systems[*needs], passed)
            })
            .collect();
        let nothing = BTreeSet::new();
        let alone = |step: &Candidate<'_>| step.minutes + starts(step, &nothing);
        let all: f64 = candidates.iter().map(alone).sum();
        let longest = candidates.iter().map(alone).fold(0.0, f64::max);
        let limit = longest.max(all / 3.0) + 1e-6;
        prop_assert_eq!(after_runs(candidates, limit, 5), Vec::<&str>::new());
    }

    /// The steps to begin fit into the time, and the oldest fitting one is first.
    #[test]
    fn a_plan_keeps_to_its_minutes(steps in proptest::collection::vec((1_u32..200, 0_usize..SYSTEMS.len(), 0_i64..50), 1..25), limit in 0_u32..600) {
        let systems = SYSTEMS;
        let names: Vec<String> = (0..steps.len()).map(|index| format!("step-{index}")).collect();
        let candidates: Vec<Candidate<'_>> = steps
            .iter()
            .zip(&names)
            .map(|((tenths, needs, at), name)| step(name, f64::from(*tenths) / 10.0, systems[*needs], Some(*at)))
            .collect();
        let limit = f64::from(limit) / 10.0;
        let nothing = BTreeSet::new();
        let plan = plan(&candidates, &nothing, Some(limit));
        let mut started = BTreeSet::new();
        let mut minutes = 0.0;
        for name in &plan.begin {
            let step = candidates.iter().find(|step| step.name == *name).unwrap();
            minutes += step.minutes + starts(step, &started);
            started.extend(step.systems.iter().map(|(name, _)| *name));
        }
        prop_assert!(minutes <= limit + 1e-6, "{minutes} of {limit}");
        prop_assert_eq!(interleaved(&candidates, &plan.begin), None);
        prop_assert_eq!(plan.begin.len() + plan.later.len(), candidates.len());
        let fits = candidates.iter().filter(|step| step.minutes + starts(step, &nothing) <= limit);
        let oldest = fits.min_by_key(|step| step.passed).map(|step| step.name);
        prop_assert_eq!(plan.begin.first().copied(), oldest);
    }
}

/// The systems of the steps of the properties.
const SYSTEMS: [&[(&str, f64)]; 6] = [
    &[],
    &[("packages", 1.0)],
    &[("a", 3.0)],
    &[("packages", 1.0), ("b", 8.0)],
    &[("a", 3.0), ("packages", 1.0), ("b", 8.0)],
    &[("packages", 1.0), ("c", 2.0)],
];

/// A step that begins beside a system of another group, or a system that is started twice: as the steps run, each after what
/// is not needed any more has been stopped.
fn interleaved<'a>(candidates: &[Candidate<'a>], order: &[&'a str]) -> Option<&'a str> {
    let runs = |name: &&str| {
        let step = candidates.iter().find(|step| step.name == *name);
        step.map(|step| step.runs.clone()).unwrap_or_default()
    };
    let mut running: BTreeSet<&str> = BTreeSet::new();
    let mut stopped = BTreeSet::new();
    for (index, name) in order.iter().enumerate() {
        let needed: BTreeSet<&str> = order[index..].iter().flat_map(runs).collect();
        stopped.extend(running.difference(&needed).copied());
        running.retain(|system| needed.contains(system));
        let needs = runs(name);
        let is_beside = !running.is_empty() && !needs.iter().any(|it| running.contains(it));
        running.extend(needs);
        if is_beside || !running.is_disjoint(&stopped) {
            return Some(name);
        }
    }
    None
}

fn step<'a>(
    name: &'a str,
    minutes: f64,
    systems: &[(&'a str, f64)],
    passed: Option<i64>,
) -> Candidate<'a> {
    Candidate {
        name,
        minutes,
        systems: systems.to_vec(),
        // An installed system, here "packages", does not run.
        runs: systems
            .iter()
            .map(|(name, _)| *name)
            .filter(|name| *name != "packages")
            .collect(),
        passed: passed.map(|second| Timestamp::from_second(second).unwrap()),
    }
}

/// The steps that have not passed after so many runs, in which every step is due.
fn after_runs(mut steps: Vec<Candidate<'_>>, minutes: f64, runs: i64) -> Vec<&str> {
    let mut waiting: BTreeSet<&str> = steps.iter().map(|step| step.name).collect();
    let nothing = BTreeSet::new();
    for run in 1..=runs {
        let plan = plan(&steps, &nothing, Some(minutes));
        for (position, name) in plan.begin.iter().enumerate() {
            let at = run * 1000 + i64::try_from(position).unwrap();
            let step = steps.iter_mut().find(|step| step.name == *name).unwrap();
            step.passed = Some(Timestamp::from_second(at).unwrap());
            waiting.remove(name);
        }
    }
    waiting.into_iter().collect()
}
