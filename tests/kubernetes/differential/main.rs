//! The embedded API server held to a real kube-apiserver: one scenario, in data, is played on both, and what they
//! answer is compared (docs/reference/apiserver.md tells which differences are accepted, and why).
//!
//! ```text
//!   scenario    the steps, read from tests/kubernetes/scenario/*.yaml
//!   complete    whether the scenario has every built-in kind
//!   definitions steps for folders of definitions, the suite's and those of upstream, with objects made from their schemas
//!   sample      objects made from a schema, right and wrong
//!   side        one server: its address, its credentials, its answers
//!   durable     the embedded one on a file, opened again after each file of the scenario
//!   play        plays the steps on a server and writes down what is compared
//!   hooks       the webhooks that steps tell the server to call
//!   normal      an answer without what is never the same twice: uids, times, revisions, addresses
//!   verdict     the differences, those accepted, and the table of the others
//!   record      the recorded answers of the real server, for machines that have none
//! ```
//!
//! `tests/kubernetes/up` brings up a real one. `FERROSTACK_RECORD=1` then writes the record anew;
//! `FERROSTACK_SCENARIO=70-webhooks` plays that file alone, and `FERROSTACK_FOLDER=crd` the objects made from that folder's definitions.
//! `FERROSTACK_DIFFERENCES=1` shows each accepted difference with both values.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr
)]

mod complete;
mod definitions;
mod durable;
mod hooks;
mod normal;
mod play;
mod record;
mod sample;
mod scenario;
mod side;
mod verdict;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use apiserver::Store;

use crate::play::play;
use crate::side::{Embedded, Side};

/// Both tests that ask a real server define the same kinds: one at a time.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// Plays on the real server where one runs, and compares with its record where none does.
#[tokio::test(flavor = "multi_thread")]
async fn the_embedded_api_server_answers_as_the_real_one() {
    let _turn = TURN.lock().await;
    let steps = scenario::load();
    let (side, server) = Embedded::new(Store::Memory).open().await;
    let (mut ours, mut on_file) = tokio::join!(play(&side, &steps), durable::play(&steps));
    server.close().await;
    let real = match Side::real() {
        Ok(side) => {
            let real = play(&side, &steps).await;
            if std::env::var_os("FERROSTACK_RECORD").is_some() {
                record::write(&real);
            }
            real
        }
        Err(why) => {
            skipped::because(format_args!(
                "playing on a real kube-apiserver: {why}; compared with its record"
            ));
            ours = record::summed(&ours);
            on_file = record::summed(&on_file);
            record::read()
        }
    };
    let accepted = verdict::accepted(&root().join("docs/reference/apiserver.md"));
    for (store, ours) in [("in memory", ours), ("on a file", on_file)] {
        let verdict = verdict::compare(&real, &ours, &accepted);
        eprintln!(
            "{store}: {} requests compared, {} accepted differences",
            real.len(),
            verdict.accepted
        );
        assert!(
            verdict.problems.is_empty(),
            "{store}: {} differences:\n{}\n",
            verdict.problems.len(),
            verdict.problems.join("\n")
        );
    }
}

/// Objects of every definition of the suite and of upstream, made from its schemas, on both servers. There are too many
/// for a record, and those of upstream are not ours to copy, so that it needs a real server.
#[tokio::test(flavor = "multi_thread")]
async fn definitions_are_served_as_by_the_real_one() {
    let _turn = TURN.lock().await;
    let real = match Side::real() {
        Ok(side) => side,
        Err(why) => {
            return skipped::because(format_args!("there is no real kube-apiserver: {why}"));
        }
    };
    let mut problems = Vec::new();
    let mut seen = BTreeSet::new();
    for folder in definitions::folders() {
        let steps = definitions::steps(&folder, &mut seen);
        let (side, server) = Embedded::new(Store::Memory).open().await;
        let (ours, theirs) = tokio::join!(play(&side, &steps), play(&real, &steps));
        server.close().await;
        let verdict = verdict::compare(&theirs, &ours, &[]);
        eprintln!(
            "{}: {} requests compared, {} differences",
            folder.display(),
            theirs.len(),
            verdict.problems.len()
        );
        problems.extend(verdict.problems);
    }
    assert!(
        problems.is_empty(),
        "{} differences:\n{}\n",
        problems.len(),
        problems.join("\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_built_in_kind_is_created_in_the_scenario() {
    let (side, server) = Embedded::new(Store::Memory).open().await;
    let missing = complete::missing(&side, &scenario::load()).await;
    server.close().await;
    assert!(
        missing.is_empty(),
        "what an object of these is completed with is compared with no real server: {missing:?}"
    );
}

#[test]
fn the_scenario_has_at_least_400_requests_with_names_of_their_own() {
    let steps = scenario::load();
    let compared = steps.iter().filter(|step| !step.quiet).count();
    assert!(compared >= 400, "{compared} requests");
    let mut names = BTreeSet::new();
    for step in &steps {
        assert!(names.insert(&step.name), "twice: {}", step.name);
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
