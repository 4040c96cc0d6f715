//! `bench keystone-auth`: the Keystone webhook and the exec plugin, beside the Go ones, on one simulated cloud.
//!
//! Cloud and webhook are separate processes; this program plays API servers and kubectl. The webhooks are measured one
//! after the other.

mod kubectl;
mod load;
mod plugin;
mod reviews;
mod table;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::{build, load, machine};
use crate::keystone::webhook::Program;
use crate::keystone::world::World;

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Measure this program instead of building the release one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Directory of the Go programs and of kubectl, as `tests/kubernetes/build k8s-keystone-auth kubectl` builds them;
    /// missing programs are left out.
    #[arg(long, value_name = "DIRECTORY", default_value = "target/tools")]
    go: PathBuf,
    /// Seconds of each rate.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    seconds: u64,
    /// Tokens in the cache when memory is measured, at most 10 000.
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    tokens: usize,
}

/// Results of all programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    machine: String,
    /// Load average of the last minute, before and after.
    load: (f64, f64),
    tokens: usize,
    go: Option<Figures>,
    here: Figures,
    minutes: f64,
}

/// Figures of one program.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    reviews: reviews::Figures,
    plugin: plugin::Figures,
    /// `None` without a kubectl.
    kubectl: Option<kubectl::Figures>,
}

/// Measures, and prints a table or JSON.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let binary = match &arguments.binary {
        Some(binary) => std::path::absolute(binary)?,
        None => build(root)?,
    };
    let (begun, before) = (Instant::now(), load());
    let mut world = World::open(&binary)?;
    crate::report("tokens");
    let tokens = reviews::tokens(&mut world, arguments.tokens)?;
    let runtime = tokio::runtime::Runtime::new()?;
    let lasting = Duration::from_secs(arguments.seconds);
    let mut measure = |program: Program| -> anyhow::Result<Figures> {
        let kept = arguments.tokens;
        let reviews = reviews::measure(&program, &mut world, &tokens, kept, lasting);
        Ok(Figures {
            reviews: runtime.block_on(reviews)?,
            plugin: plugin::measure(&program, &mut world)?,
            kubectl: runtime.block_on(kubectl::measure(&program, &world, &arguments.go))?,
        })
    };
    let go = match arguments.go.join("k8s-keystone-auth").exists() {
        true => Some(measure(Program::go(&arguments.go)?)?),
        false => None,
    };
    let here = measure(Program::here(&binary)?)?;
    let report = Report {
        machine: machine(),
        load: (before, load()),
        tokens: arguments.tokens,
        go,
        here,
        minutes: begun.elapsed().as_secs_f64() / 60.0,
    };
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => table::render(&report),
    };
    crate::print(&text)
}
