//! Compares the simulated OpenStack with the real one: the same scenario runs on both, and their responses are compared
//! (docs/project/simulator.md describes the comparison, and the accepted differences).
//!
//! ```text
//!   scenario    the steps, read from tests/openstack/scenario/*.yaml
//!   side        one cloud: its credentials, its endpoints, its responses
//!   play        runs the steps on a cloud and records what is compared
//!   shape       the structure of a JSON document, and how two of them differ
//!   verdict     the differences: accepted ones, and the table of the others
//!   record      the recorded responses of the real cloud, for machines without one
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

mod play;
mod record;
mod scenario;
mod shape;
mod side;
mod verdict;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use simulator::cloud::Cloud;
use tokio::sync::OnceCell;

use crate::play::{Outcome, play};
use crate::scenario::Step;
use crate::side::Side;

/// Runs on the real cloud and records it on request, or compares with its record if it is not available.
#[tokio::test(flavor = "multi_thread")]
async fn the_simulated_cloud_answers_as_the_real_one() {
    let steps = scenario::load();
    let simulated = simulated(&steps).await;
    let mut problems = verdict::unexpected("simulated", &simulated.outcomes);
    let (real, live) = match Side::real() {
        Ok(side) => {
            let side = side.connect().await;
            let outcomes = play(&side, &steps).await;
            problems.extend(verdict::unexpected("real", &outcomes));
            if std::env::var_os("FERROSTACK_RECORD").is_some() {
                record::write(&outcomes);
            }
            (outcomes, true)
        }
        Err(why) => {
            skipped::because(format_args!(
                "playing on a real cloud: {why}; compared with its record"
            ));
            (record::read(), false)
        }
    };
    let with = if live {
        "the real cloud"
    } else {
        "the real cloud's record"
    };
    let verdict = verdict::compare(
        &steps,
        &real,
        &simulated.outcomes,
        &verdict::accepted(
            &root().join("docs/project/simulator.md"),
            "## Accepted differences",
        ),
    );
    problems.extend(verdict.problems("docs/project/simulator.md"));
    let (requests, accepted) = (steps.len(), verdict.accepted);
    eprintln!("{requests} requests compared with {with}; {accepted} accepted differences");
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

/// Page with the accepted differences of a deployed cloud, one table for each release.
const DEPLOYED: &str = "docs/project/accepted-differences.md";

/// A cloud that `ferrostack openstack up` made, with the record of the reference cloud: the steps of its services. Statuses
/// are those of the scenario but where the table of the release says otherwise.
#[tokio::test(flavor = "multi_thread")]
async fn a_deployed_cloud_answers_as_the_reference_cloud() {
    let side = match Side::deployed() {
        Ok(side) => side.connect().await,
        Err(why) => return skipped::because(format_args!("playing on a deployed cloud: {why}")),
    };
    let steps = scenario::without(scenario::load(), |service| side.serves(service));
    let outcomes = play(&side, &steps).await;
    let recorded = record::read();
    let release = std::env::var("FERROSTACK_DEPLOYED_RELEASE").unwrap_or("zed".to_owned());
    let table = format!("## Release {release}");
    let accepted = verdict::accepted(&root().join(DEPLOYED), &table);
    let verdict = verdict::compare(&steps, &recorded, &outcomes, &accepted);
    let mut problems = verdict.problems(DEPLOYED);
    let unexpected = outcomes
        .into_iter()
        .filter(|outcome| !verdict.excused.contains(&outcome.name))
        .collect::<Vec<_>>();
    problems.extend(verdict::unexpected("deployed", &unexpected));
    let (requests, accepted) = (steps.len(), verdict.accepted);
    eprintln!("{requests} requests compared with the reference; {accepted} accepted differences");
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_operation_of_the_simulated_cloud_is_in_the_scenario() {
    let steps = scenario::load();
    let simulated = simulated(&steps).await;
    let called: BTreeSet<(String, String, String)> = simulated
        .cloud
        .requests()
        .into_iter()
        .map(|count| (count.service, count.method, count.route))
        .collect();
    let apart = scenario::apart();
    let missing: Vec<String> = simulated
        .cloud
        .operations()
        .into_iter()
        .filter(|operation| {
            let (service, method, route) = operation;
            let line = format!("{method} {service} {route}");
            !called.contains(operation)
                && !apart.iter().any(|start| line.starts_with(start.as_str()))
        })
        .map(|(service, method, route)| format!("{method} {service} {route}"))
        .collect();
    assert!(
        missing.is_empty(),
        "not in the scenario:\n{}",
        missing.join("\n")
    );
}

#[test]
fn the_scenario_has_at_least_400_requests_with_names_of_their_own() {
    let steps = scenario::load();
    assert!(steps.len() >= 400, "{} requests", steps.len());
    let names: BTreeSet<&str> = steps.iter().map(|step| step.name.as_str()).collect();
    assert_eq!(names.len(), steps.len());
}

struct Played {
    cloud: Cloud,
    outcomes: Vec<Outcome>,
}

/// The scenario on a simulated cloud; it runs once for all tests.
async fn simulated(steps: &[Step]) -> &'static Played {
    static PLAYED: OnceCell<Played> = OnceCell::const_new();
    PLAYED
        .get_or_init(|| async {
            let (side, cloud) = Side::simulated().await;
            let outcomes = play(&side, steps).await;
            Played { cloud, outcomes }
        })
        .await
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
