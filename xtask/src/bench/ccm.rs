//! `bench ccm`: requests, time and memory of the cloud controller manager.
//!
//! The manager is a separate process between a simulated cloud in another process and the embedded API server in this
//! one. Nodes are objects, with servers that run nothing.

mod table;
mod world;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use self::world::World;
use super::{build, machine};

/// Maximum time for one figure. A figure above the limit is left out of the table, with all cells after it.
const LIMIT: Duration = Duration::from_secs(120);
/// Time without requests after which the manager counts as idle.
const QUIET: Duration = Duration::from_secs(3);
/// Duration of the idle measurement.
const IDLE: Duration = Duration::from_secs(600);

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Measure this program instead of building the release one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Measure this openstack-cloud-controller-manager of Go instead of ours.
    #[arg(long, value_name = "FILE")]
    go: Option<PathBuf>,
    /// Numbers of nodes.
    #[arg(long, value_delimiter = ',', default_value = "10,100,1000")]
    nodes: Vec<usize>,
    /// Numbers of Services.
    #[arg(long, value_delimiter = ',', default_value = "1,20,100")]
    services: Vec<usize>,
    /// Numbers of ports of each Service.
    #[arg(long, value_delimiter = ',', default_value = "1,4")]
    ports: Vec<usize>,
    /// Also count the requests of ten minutes without work, once for each number of nodes.
    #[arg(long)]
    idle: bool,
}

/// Results of one manager.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    machine: String,
    /// True for the manager of Go.
    go: bool,
    nodes: Vec<Nodes>,
    cells: Vec<Cell>,
    minutes: f64,
}

/// Initialisation of all nodes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Nodes {
    nodes: usize,
    initialised: Option<Cost>,
    /// [`Requests`] in ten minutes without work, with the Services of the last cell.
    idle: Option<Requests>,
}

/// Figures for a number of Services with a number of ports on a number of nodes.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cell {
    nodes: usize,
    services: usize,
    ports: usize,
    /// [`Cost`] until all Services are published.
    create: Option<Cost>,
    /// Cost until the further node is a member of all pools.
    one_more: Option<Cost>,
    /// Cost until the new process is idle.
    restart: Option<Cost>,
    /// Resident memory of the manager after the creation.
    rss_megabytes: f64,
}

/// Time and requests.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Cost {
    seconds: f64,
    #[serde(flatten)]
    requests: Requests,
}

/// Requests to the cloud, as counted by the cloud.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Requests {
    all: u64,
    writes: u64,
    /// Lists of the members of a pool: Octavia has a separate list for each pool.
    members: u64,
}

/// Measures, and prints a table or JSON.
pub(crate) fn run(root: &Path, arguments: Arguments) -> anyhow::Result<()> {
    let binary = match arguments.binary.clone() {
        Some(binary) => std::path::absolute(binary)?,
        None => build(root)?,
    };
    let arguments = Arguments {
        go: arguments.go.clone().map(std::path::absolute).transpose()?,
        ..arguments
    };
    let runtime = tokio::runtime::Runtime::new()?;
    let report = runtime.block_on(measure(&binary, &arguments))?;
    let text = match arguments.json {
        true => serde_json::to_string_pretty(&report)? + "\n",
        false => table::render(&report),
    };
    crate::print(&text)
}

async fn measure(binary: &Path, arguments: &Arguments) -> anyhow::Result<Report> {
    let begun = Instant::now();
    let (mut nodes, mut cells) = (Vec::new(), Vec::new());
    for count in &arguments.nodes {
        let mut world = World::open(binary, arguments.go.as_deref()).await?;
        world.add_nodes(0, *count).await?;
        world.start()?;
        let initialised = world.until_initialised(*count).await?;
        let mut fits = initialised.is_some();
        for (services, ports) in pairs(arguments) {
            crate::report(&format!(
                "{count} nodes, {services} Services of {ports} ports, after {:.0} s",
                begun.elapsed().as_secs_f64()
            ));
            if !fits {
                break;
            }
            let cell = cell(&mut world, *count, services, ports).await?;
            fits = cell.restart.is_some();
            cells.push(cell);
        }
        let idle = match arguments.idle && fits {
            true => Some(world.idle().await?),
            false => None,
        };
        nodes.push(Nodes {
            nodes: *count,
            initialised,
            idle,
        });
        world.close()?;
    }
    Ok(Report {
        machine: machine(),
        go: arguments.go.is_some(),
        nodes,
        cells,
        minutes: begun.elapsed().as_secs_f64() / 60.0,
    })
}

/// Services and ports, the fewest pools first.
fn pairs(arguments: &Arguments) -> Vec<(usize, usize)> {
    let ports = |services: usize| arguments.ports.iter().map(move |ports| (services, *ports));
    let mut pairs: Vec<_> = arguments.services.iter().copied().flat_map(ports).collect();
    pairs.sort_by_key(|(services, ports)| services * ports);
    pairs
}

async fn cell(
    world: &mut World,
    nodes: usize,
    services: usize,
    ports: usize,
) -> anyhow::Result<Cell> {
    let mut cell = Cell {
        nodes,
        services,
        ports,
        create: world.create(services, ports).await?,
        one_more: None,
        restart: None,
        rss_megabytes: world.rss_megabytes()?,
    };
    if cell.create.is_some() {
        cell.one_more = world.one_more(nodes, services * ports).await?;
    }
    if cell.one_more.is_some() {
        cell.restart = world.restart().await?;
    }
    if cell.restart.is_some() && !world.clear(nodes).await? {
        cell.restart = None;
    }
    Ok(cell)
}
