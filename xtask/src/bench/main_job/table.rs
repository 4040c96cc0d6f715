//! The result for people.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::Run;

/// One table of the runs, then one of their requests.
pub(super) fn render(runs: &[Run]) -> String {
    let mut text = String::from("main job: 1 cluster, 3 control plane and 3 worker machines\n\n");
    row(&mut text, "simulated latency", runs, |run| {
        run.latency.clone()
    });
    row(&mut text, "time to ready", runs, |run| {
        format!("{:.2} s", run.seconds_to_ready)
    });
    row(
        &mut text,
        "longest chain of cloud operations",
        runs,
        |run| match run.chain_seconds {
            0.0 => "-".to_owned(),
            seconds => format!("{seconds:.2} s"),
        },
    );
    row(
        &mut text,
        "time to ready / longest chain",
        runs,
        |run| match run.chain_seconds {
            0.0 => "-".to_owned(),
            seconds => format!("{:.2}", run.seconds_to_ready / seconds),
        },
    );
    row(
        &mut text,
        "peak RSS, everything in one process",
        runs,
        |run| format!("{:.1} MB", run.peak_rss_megabytes),
    );
    row(&mut text, "SQLite, all files", runs, |run| {
        format!("{} KiB", run.sqlite_bytes / 1024)
    });
    row(&mut text, "OpenStack writes and logins", runs, |run| {
        run.requests.to_string()
    });
    row(&mut text, "OpenStack reads (shared lists)", runs, |run| {
        run.polls.to_string()
    });

    text.push_str("\nrequests by service and route\n");
    let mut routes: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for (index, run) in runs.iter().enumerate() {
        for route in &run.by_route {
            let name = format!("{:<14} {:<6} {}", route.service, route.method, route.route);
            routes.entry(name).or_insert_with(|| vec![0; runs.len()])[index] += route.count;
        }
    }
    for (name, counts) in routes {
        let _ = write!(text, "  {name:<70}");
        for count in counts {
            let _ = write!(text, "{count:>8}");
        }
        text.push('\n');
    }
    let _ = writeln!(text, "\nmachine: {}", machine());
    text
}

fn row(text: &mut String, name: &str, runs: &[Run], cell: impl Fn(&Run) -> String) {
    let _ = write!(text, "  {name:<40}");
    for run in runs {
        let _ = write!(text, "{:>14}", cell(run));
    }
    text.push('\n');
}

/// Processor and cores, as far as the machine tells.
fn machine() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .map_or("unknown processor", |rest| {
            rest.trim_start_matches([' ', '\t', ':'])
        });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{model}, {cores} cores")
}
