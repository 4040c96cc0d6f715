//! Results as a table.

use std::fmt::Write;

use super::{Cost, Report, Requests};

/// One row for each cell of the [`Report`].
pub(super) fn render(report: &Report) -> String {
    let whose = if report.go { " of Go" } else { "" };
    let mut text = format!(
        "cloud controller manager{whose}: requests to the cloud as all (writes, lists of members), and seconds\n\n"
    );
    for nodes in &report.nodes {
        let _ = writeln!(
            text,
            "  {:>4} nodes initialised: {}",
            nodes.nodes,
            cost(nodes.initialised)
        );
        if let Some(idle) = nodes.idle {
            let _ = writeln!(
                text,
                "  {:>4} nodes, ten minutes without work: {}",
                nodes.nodes,
                requests(idle)
            );
        }
    }
    let _ = writeln!(
        text,
        "\n  {:>5} {:>8} {:>5}  {:>26} {:>26} {:>26} {:>8}",
        "nodes", "Services", "ports", "create", "one node more", "restart", "RSS"
    );
    for cell in &report.cells {
        let _ = writeln!(
            text,
            "  {:>5} {:>8} {:>5}  {:>26} {:>26} {:>26} {:>5.0} MB",
            cell.nodes,
            cell.services,
            cell.ports,
            cost(cell.create),
            cost(cell.one_more),
            cost(cell.restart),
            cell.rss_megabytes
        );
    }
    let _ = writeln!(
        text,
        "\n  - took more than {} s; measured in {:.1} minutes\nmachine: {}",
        super::LIMIT.as_secs(),
        report.minutes,
        report.machine
    );
    text
}

fn cost(cost: Option<Cost>) -> String {
    match cost {
        None => "-".to_owned(),
        Some(cost) => format!("{} {:.1} s", requests(cost.requests), cost.seconds),
    }
}

fn requests(requests: Requests) -> String {
    let Requests {
        all,
        writes,
        members,
    } = requests;
    format!("{all} ({writes}, {members})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_took_too_long_is_a_dash() {
        let took = Cost {
            seconds: 1.25,
            requests: Requests {
                all: 7,
                writes: 2,
                members: 1,
            },
        };
        assert_eq!(cost(Some(took)), "7 (2, 1) 1.2 s");
        assert_eq!(cost(None), "-");
    }
}
