//! `bench deployer`: a cloud on Kubernetes, on simulated nodes and, with `--node`, on a real one.
//!
//! The program runs as for a user, in a separate process with an empty data directory, and reports the number of
//! requests of its controller to the API server.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde_json::Value;

use super::load;
use super::nodes::{Figure, Report, Script, step, table};
use super::process::{self, Up};

/// Parameters of the measured cloud, and the same with another option of the scheduler.
const CLOUD: &str = "release: \"2026.1\"\n";
const CHANGED: &str =
    "release: \"2026.1\"\nservices: {nova: {config: {scheduler: {workers: 2}}}}\n";
/// Services that restart for the changed option.
const RESTARTED: [&str; 1] = ["nova-scheduler"];
/// Pause before the idle measurement of a cloud.
const SETTLING: Duration = Duration::from_secs(5);
/// Pause between two requests of the client during the change.
const PAUSE: Duration = Duration::from_millis(100);

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Print JSON instead of a table.
    #[arg(long)]
    json: bool,
    /// Measure this program instead of building the release one.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Duration of the idle measurement, in seconds.
    #[arg(long, default_value_t = 60)]
    idle: u64,
    /// Also measure a real OpenStack on a real node, by tests/deployer/run.
    #[arg(long)]
    node: bool,
}

/// Measures, and prints a table or JSON.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let binary = match &arguments.binary {
        Some(binary) => std::path::absolute(binary)?,
        None => super::build(root)?,
    };
    let before = load();
    let mut figures = simulated(&binary, arguments.idle)?;
    if arguments.node {
        let script = Script::new(root, "tests/deployer/run");
        let text = script
            .with("FERROSTACK_BINARY", &binary)
            .run(&["--controller"])?;
        figures.extend(real(&text)?);
    }
    let report = Report {
        machine: super::machine(),
        load: [before, load()],
        figures,
    };
    if arguments.json {
        return crate::print(&(serde_json::to_string_pretty(&report)? + "\n"));
    }
    crate::print(&table(&report))
}

fn simulated(binary: &Path, idle: u64) -> anyhow::Result<Vec<Figure>> {
    let directory = tempfile::tempdir()?;
    let (data, file) = (
        directory.path().join("data"),
        directory.path().join("cloud.yaml"),
    );
    std::fs::write(&file, CLOUD)?;
    let objects = objects(binary, &file)?;
    let file_name = file.to_string_lossy().into_owned();
    let start = || Up::cloud(binary, &data, &["-f", &file_name]);

    let began = Instant::now();
    let mut up = start()?;
    let ready = up.wait_until_ready()?;
    let mut figures = vec![
        figure("until ready", began.elapsed().as_secs_f64(), "s", 3.0),
        figure("peak memory", up.peak_rss_megabytes()?, "MB", 150.0),
        figure(
            "requests to the API server for each object",
            requests(&ready, "ready", "all")? / objects,
            "",
            2.0,
        ),
    ];
    up.stop()?;

    let began = Instant::now();
    let mut up = start()?;
    let ready = up.wait_until_ready()?;
    figures.extend([
        figure(
            "again: until ready",
            began.elapsed().as_secs_f64(),
            "s",
            10.0,
        ),
        figure(
            "again: writes",
            requests(&ready, "ready", "writes")?,
            "",
            0.0,
        ),
    ]);
    figures.extend(changed(binary, &data, &file, &mut up)?);
    up.stop()?;

    // The requests of the start are subtracted: the same start without the idle time.
    let mut counts = Vec::new();
    for seconds in [0, idle] {
        let mut up = start()?;
        up.wait_until_ready()?;
        std::thread::sleep(SETTLING + Duration::from_secs(seconds));
        let events = up.stop_with_events()?;
        let stopped = events.iter().find(|it| it.get("stopped").is_some());
        let stopped = stopped.context("ferrostack has not said that it has stopped")?;
        let of = |which| requests(stopped, "stopped", which);
        let watches = of("watches")?;
        counts.push((of("all")? - watches, watches));
    }
    let [others, watches] = [counts[1].0 - counts[0].0, counts[1].1 - counts[0].1];
    let what =
        format!("requests in {idle} s without work, beside {watches} watches that begin again");
    figures.push(figure(&what, others, "", 0.0));
    Ok(figures)
}

/// Changes one option of the scheduler, while a client sends requests to Nova.
fn changed(binary: &Path, data: &Path, file: &Path, up: &mut Up) -> anyhow::Result<Vec<Figure>> {
    let text = std::fs::read_to_string(data.join("openstack/clouds.yaml"))?;
    let client = Asking::start(&api(&text)?);
    std::fs::write(file, CHANGED)?;
    let on = |command: &[&str]| {
        let mut ferrostack = Command::new(binary);
        let ferrostack = ferrostack.arg("openstack").args(command);
        ferrostack
            .arg("-f")
            .arg(file)
            .arg("--data-dir")
            .arg(data)
            .output()
    };
    let plan: Value = serde_json::from_slice(&on(&["plan", "-o", "json"])?.stdout)?;
    let digest = plan["digest"].as_str().context("the digest of the plan")?;
    let began = Instant::now();
    let applied = on(&["apply", "--plan", digest])?;
    if !applied.status.success() {
        bail!(
            "openstack apply: {}",
            String::from_utf8_lossy(&applied.stderr)
        );
    }
    let (events, _) = up.events_until_ready()?;
    let seconds = began.elapsed().as_secs_f64();
    let (asked, failed) = client.end();
    let others = events.iter().filter(|it| {
        let name = it["step"]["name"].as_str().unwrap_or_default();
        // A configuration file is a separate object, without a program that waits for it.
        !name.is_empty() && name != "configuration" && !RESTARTED.contains(&name)
    });
    let others = others.filter(|it| it["step"]["phase"] != "Ready").count();
    let of = format!("an option of the scheduler: failed requests of {asked}");
    Ok(vec![
        figure(
            "an option of the scheduler: until ready",
            seconds,
            "s",
            30.0,
        ),
        figure(
            "an option of the scheduler: other programs that restart",
            count(others),
            "",
            0.0,
        ),
        figure(&of, count(failed), "", 0.0),
    ])
}

/// Address of all APIs, from the clouds.yaml of a simulated cloud.
fn api(clouds: &str) -> anyhow::Result<String> {
    let url = clouds.split('"').find(|it| it.starts_with("http://"));
    let host = url.and_then(|it| it.split('/').nth(2));
    Ok(format!(
        "http://{}",
        host.context("the URL in clouds.yaml")?
    ))
}

/// Client that sends ten requests a second to Nova.
struct Asking {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<(usize, usize)>,
}

impl Asking {
    fn start(url: &str) -> Self {
        let (stop, url) = (Arc::new(AtomicBool::new(false)), url.to_owned());
        let until = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let (mut asked, mut failed) = (0, 0);
            while !until.load(Ordering::Relaxed) {
                let answer = process::get(&url, "/compute/");
                asked += 1;
                failed += usize::from(!answer.is_ok_and(|(status, _)| status < 400));
                std::thread::sleep(PAUSE);
            }
            (asked, failed)
        });
        Self { stop, thread }
    }

    /// Numbers of requests: all, and failed ones.
    fn end(self) -> (usize, usize) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or((0, 1))
    }
}

/// Number of objects of a cloud.
fn objects(binary: &Path, file: &Path) -> anyhow::Result<f64> {
    let planned = Command::new(binary)
        .args(["openstack", "plan", "--empty", "-o", "json", "-f"])
        .arg(file)
        .output()?;
    let plan: Value = serde_json::from_slice(&planned.stdout).context("openstack plan")?;
    let steps = plan["steps"].as_array().into_iter().flatten();
    let actions = steps
        .filter_map(|it| it["actions"].as_array())
        .map(Vec::len);
    match actions.sum() {
        0 => bail!("openstack plan creates no objects"),
        objects => Ok(count(objects)),
    }
}

fn requests(event: &Value, name: &str, which: &str) -> anyhow::Result<f64> {
    let count = event[name]["requests"][which].as_f64();
    count.with_context(|| format!("{name}.requests.{which} in {event}"))
}

fn count(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::MAX, f64::from)
}

fn figure(what: &str, value: f64, unit: &'static str, target: f64) -> Figure {
    Figure {
        what: what.to_owned(),
        value,
        unit,
        target,
    }
}

/// Figures in the output of `tests/deployer/run --controller`.
fn real(text: &str) -> anyhow::Result<Vec<Figure>> {
    let stage = |name: &str| {
        let mut stages = text.lines().filter_map(step);
        let found = stages.find(|(stage, _)| *stage == name);
        let seconds = found.map(|(_, seconds)| seconds);
        seconds.with_context(|| format!("tests/deployer/run has no stage `{name}`"))
    };
    let ready = stage("openstack up")?;
    let server = ready + stage("a token")? + stage("a server")?;
    let again = stage("openstack up again")?;
    let mut figures = vec![
        figure("real node: until ready, 2 hypervisors", ready, "s", 180.0),
        figure("real node: until a server is ACTIVE", server, "s", 180.0),
        figure("real node, again: until ready", again, "s", 10.0),
    ];
    let memory = text.lines().find_map(|line| {
        let rest = line
            .strip_prefix("memory of all Pods ")?
            .strip_suffix(" MB")?;
        rest.trim().parse::<f64>().ok()
    });
    let memory = memory.context("tests/deployer/run has no memory")?;
    figures.push(figure(
        "real node: memory of all Pods",
        memory,
        "MB",
        5000.0,
    ));
    Ok(figures)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_a_real_node_are_read_from_its_stages() {
        let text = "openstack up                         190.0 s\nopenstack up again      0.7 s\n\
            a token    2.5 s\na server                 41.5 s\nmemory of all Pods 2893 MB\nall         492.5 s\n";
        let figures = real(text).unwrap();
        let values: Vec<_> = figures.iter().map(|it| (it.value, it.unit)).collect();
        assert_eq!(
            values,
            [(190.0, "s"), (234.0, "s"), (0.7, "s"), (2893.0, "MB")]
        );
        let cut = text.replace("a server  ", "no server  ");
        assert!(real(&cut).is_err());
    }

    #[test]
    fn all_apis_are_where_clouds_yaml_says() {
        let text =
            "clouds:\n  cloud:\n    auth:\n      auth_url: \"http://127.0.0.1:8123/identity/v3\"\n";
        assert_eq!(api(text).unwrap(), "http://127.0.0.1:8123");
    }
}
