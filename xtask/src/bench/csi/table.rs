//! Results as a table, in Markdown.

use std::fmt::Write;

use super::{Figures, Report};

/// Row: label, and value by the [`Figures`] of a driver.
type Row = (String, fn(&Figures) -> f64);

/// One row for each figure, with the ratio of Go's value to ours.
pub(super) fn render(report: &Report) -> String {
    let mut text = "| | Go | here | ratio |\n|---|---|---|---|\n".to_owned();
    for (name, value) in rows(report) {
        let here = value(&report.here);
        let (go, ratio) = match report.go.as_ref().map(value) {
            Some(go) if here > 0.0 => (number(go), number(go / here)),
            Some(go) => (number(go), "–".to_owned()),
            None => ("–".to_owned(), "–".to_owned()),
        };
        let _ = writeln!(text, "| {name} | {go} | {} | {ratio} |", number(here));
    }
    let _ = writeln!(
        text,
        "\n{}; load {:.1} before and {:.1} after; {:.0} minutes",
        report.machine, report.load.0, report.load.1, report.minutes
    );
    text
}

fn rows(report: &Report) -> Vec<Row> {
    let idle = report.idle_seconds;
    let row = |name: &str, value: fn(&Figures) -> f64| (name.to_owned(), value);
    vec![
        row("one volume alone: requests of create", |it| {
            it.controller.calls()[0] as f64
        }),
        row("of attach", |it| it.controller.calls()[1] as f64),
        row("of detach", |it| it.controller.calls()[2] as f64),
        row("of delete", |it| it.controller.calls()[3] as f64),
        row("of its life", |it| it.controller.life() as f64),
        row("of its life, without a recent list", |it| {
            it.controller.later() as f64
        }),
        row(
            "100 volumes, 20 at a time, `--latency real`: writes",
            |it| it.controller.hundred.requests.writes as f64,
        ),
        row("reads", |it| it.controller.hundred.requests.reads as f64),
        row("seconds", |it| it.controller.hundred.seconds),
        row("attach, median, ms", |it| {
            it.controller.hundred.attach_median
        }),
        row("attach, 99th percentile, ms", |it| {
            it.controller.hundred.attach_percentile_99
        }),
        row("an attachment of the cloud alone, median, ms", |it| {
            it.controller.attachment_alone
        }),
        row("500 volumes on 20 servers, 100 at a time: writes", |it| {
            it.controller.five_hundred.requests.writes as f64
        }),
        row("reads", |it| {
            it.controller.five_hundred.requests.reads as f64
        }),
        row("seconds", |it| it.controller.five_hundred.seconds),
        row("attach, 99th percentile, ms", |it| {
            it.controller.five_hundred.attach_percentile_99
        }),
        row("ten ListVolumes in a row, 1000 volumes: reads", |it| {
            it.controller.list_reads as f64
        }),
        (
            format!("{idle} s without work, 1000 volumes: requests"),
            |it| it.controller.idle.all() as f64,
        ),
        (
            format!("{idle} s with a ListVolumes each minute: requests"),
            |it| it.controller.idle_listed.all() as f64,
        ),
        row("controller with 1000 volumes: RSS, MB", |it| {
            it.controller.rss.0
        }),
        row("of it anonymous, MB", |it| it.controller.rss.1),
        (
            format!(
                "NodeStage, ext4 on a loop device, {} times: median, ms",
                report.staged
            ),
            |it| it.node.stage.median,
        ),
        row("99th percentile, ms", |it| it.node.stage.percentile_99),
        row("the first one, which formats: median, ms", |it| {
            it.node.format_median
        }),
        row("NodePublish: median, ms", |it| it.node.publish.median),
        row("99th percentile, ms", |it| it.node.publish.percentile_99),
        row("node: RSS, MB", |it| it.node.rss.0),
        row("of it anonymous, MB", |it| it.node.rss.1),
    ]
}

/// Three digits, or all of a larger number.
pub(in crate::bench) fn number(value: f64) -> String {
    match value {
        value if value.fract() == 0.0 || value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits() {
        let texts = [0.0, 8.0, 1.256, 31.44, 246.3, 1410.0].map(number);
        assert_eq!(texts, ["0", "8", "1.26", "31.4", "246", "1410"]);
    }
}
