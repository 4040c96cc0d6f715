//! Results as a table.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Report, Run};

/// One table of the runs in a [`Report`], then one of their requests.
pub(super) fn render(report: &Report) -> String {
    let runs = report.runs.as_slice();
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
    row(
        &mut text,
        "OpenStack writes, lookups, logins",
        runs,
        |run| run.requests.to_string(),
    );
    row(&mut text, "reads of shared lists", runs, |run| {
        run.shared_lists.to_string()
    });
    let _ = writeln!(
        text,
        "\n  shared lists apart: {} requests for a further worker, {} for the cluster without its machines",
        report.requests_per_worker, report.requests_per_cluster
    );

    for idle in &report.idle {
        let _ = writeln!(
            text,
            "  ten idle minutes, 3 control plane machines and {} workers: {} requests",
            idle.workers, idle.requests
        );
    }

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
    let _ = writeln!(text, "\nmachine: {}", report.machine);
    text
}

fn row(text: &mut String, name: &str, runs: &[Run], cell: impl Fn(&Run) -> String) {
    let _ = write!(text, "  {name:<40}");
    for run in runs {
        let _ = write!(text, "{:>14}", cell(run));
    }
    text.push('\n');
}
