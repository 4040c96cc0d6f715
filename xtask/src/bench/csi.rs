//! `bench csi`: requests, time and memory of the Cinder CSI driver, beside the Go one.
//!
//! Cloud and driver are separate processes; this program plays sidecars, kubelet and hypervisor. Each driver has a new
//! cloud, one after the other.

mod controller;
mod load;
mod node;
mod table;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::Serialize;

pub(super) use self::table::number;
use super::{build, load, machine};
use crate::csi::driver::Program;
use crate::csi::{alone, disks};

/// Id of the server on this machine, as the metadata service reports it.
const NODE: &str = "11111111-1111-4111-8111-111111111111";

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Measure this program instead of building the release one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// The Go driver, as `tests/kubernetes/build cinder-csi-plugin` builds it; without the file only ours is measured.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "target/tools/cinder-csi-plugin"
    )]
    go: PathBuf,
    /// Seconds without work in which requests are counted.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    idle: u64,
    /// Volumes that are staged and published on the node.
    #[arg(long, value_name = "COUNT", default_value_t = 100)]
    staged: usize,
}

/// Results of both drivers.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    machine: String,
    /// Load average of the last minute, before and after.
    load: (f64, f64),
    idle_seconds: u64,
    staged: usize,
    go: Option<Figures>,
    here: Figures,
    minutes: f64,
}

/// [`controller`] and [`node`] figures of one driver.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Figures {
    controller: controller::Figures,
    node: node::Figures,
}

/// Measures, and prints a table or JSON.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let binary = match &arguments.binary {
        Some(binary) => std::path::absolute(binary)?,
        None => build(root)?,
    };
    if !alone::is_inside() {
        let built = [OsString::from("--binary"), binary.into_os_string()];
        let is_given = arguments.binary.is_some();
        return alone::run_inside(if is_given { &[] } else { &built });
    }
    disks::serve_metadata(NODE)?;
    let (begun, before) = (Instant::now(), load());
    let runtime = tokio::runtime::Runtime::new()?;
    let measure = |program: Program| runtime.block_on(measure(&binary, &program, arguments));
    let go = match arguments.go.exists() {
        true => Some(measure(Program::Go(std::path::absolute(&arguments.go)?))?),
        false => None,
    };
    let here = measure(Program::Here(binary.clone()))?;
    let report = Report {
        machine: machine(),
        load: (before, load()),
        idle_seconds: arguments.idle,
        staged: arguments.staged,
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

async fn measure(
    binary: &Path,
    program: &Program,
    arguments: &Arguments,
) -> anyhow::Result<Figures> {
    Ok(Figures {
        node: node::measure(binary, program, arguments.staged).await?,
        controller: controller::measure(binary, program, arguments.idle).await?,
    })
}

/// Percentile: the value below which the given share of the values lies.
pub(super) fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let last = values.len().saturating_sub(1);
    let at = (last as f64 * share).round() as usize;
    values.get(at).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn a_percentile_is_one_of_the_values() {
        let mut values: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(percentile(&mut values, 0.5), 51.0);
        assert_eq!(percentile(&mut values, 0.99), 99.0);
        assert_eq!(percentile(&mut [], 0.5), 0.0);
    }
}
