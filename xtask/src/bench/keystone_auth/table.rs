//! Results as a table, in Markdown.

use std::fmt::Write;

use super::{Figures, Report};
use crate::bench::csi::number;

/// Row: label, and value by the [`Figures`] of a program.
type Row = (String, fn(&Figures) -> Option<f64>);

/// One row for each figure.
pub(super) fn render(report: &Report) -> String {
    let mut text = "| | Go | here |\n|---|---|---|\n".to_owned();
    let of = |value: Option<f64>| value.map_or("–".to_owned(), number);
    for (name, value) in rows(report) {
        let go = report.go.as_ref().and_then(value);
        let _ = writeln!(
            text,
            "| {name} | {} | {} |",
            of(go),
            of(value(&report.here))
        );
    }
    let _ = writeln!(
        text,
        "\n{}; load {:.1} before and {:.1} after; {:.0} minutes",
        report.machine, report.load.0, report.load.1, report.minutes
    );
    text
}

fn rows(report: &Report) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut row =
        |name: &str, value: fn(&Figures) -> Option<f64>| rows.push((name.to_owned(), value));
    row("TokenReview not cached, alone: a second", |it| {
        Some(it.reviews.not_cached[0].rate.per_second)
    });
    row("median, ms", |it| {
        Some(it.reviews.not_cached[0].rate.median)
    });
    row("99th percentile, ms", |it| {
        Some(it.reviews.not_cached[0].rate.percentile_99)
    });
    row("requests to Keystone each", |it| {
        Some(it.reviews.not_cached[0].each())
    });
    row("8 at a time: a second", |it| {
        Some(it.reviews.not_cached[1].rate.per_second)
    });
    row("requests to Keystone each", |it| {
        Some(it.reviews.not_cached[1].each())
    });
    row("median, ms", |it| {
        Some(it.reviews.not_cached[1].rate.median)
    });
    row("99th percentile, ms", |it| {
        Some(it.reviews.not_cached[1].rate.percentile_99)
    });
    row("of them", |it| {
        Some(it.reviews.not_cached[1].rate.reviews as f64)
    });
    row("refused wrongly", |it| {
        Some(it.reviews.not_cached[1].rate.wrong as f64)
    });
    row("64 at a time: a second", |it| {
        Some(it.reviews.not_cached[2].rate.per_second)
    });
    row("requests to Keystone each", |it| {
        Some(it.reviews.not_cached[2].each())
    });
    row("median, ms", |it| {
        Some(it.reviews.not_cached[2].rate.median)
    });
    row("99th percentile, ms", |it| {
        Some(it.reviews.not_cached[2].rate.percentile_99)
    });
    row("of them", |it| {
        Some(it.reviews.not_cached[2].rate.reviews as f64)
    });
    row("refused wrongly", |it| {
        Some(it.reviews.not_cached[2].rate.wrong as f64)
    });
    row("TokenReview of known tokens, 8 at a time: a second", |it| {
        Some(it.reviews.cached[0].rate.per_second)
    });
    row("median, ms", |it| Some(it.reviews.cached[0].rate.median));
    row("99th percentile, ms", |it| {
        Some(it.reviews.cached[0].rate.percentile_99)
    });
    row("refused wrongly", |it| {
        Some(it.reviews.cached[0].rate.wrong as f64)
    });
    row("64 at a time: a second", |it| {
        Some(it.reviews.cached[1].rate.per_second)
    });
    row("99th percentile, ms", |it| {
        Some(it.reviews.cached[1].rate.percentile_99)
    });
    row("refused wrongly", |it| {
        Some(it.reviews.cached[1].rate.wrong as f64)
    });
    row(
        "64 reviews of one new token at once: requests to Keystone",
        |it| Some(it.reviews.one_token.requests as f64),
    );
    row("99th percentile, ms", |it| {
        Some(it.reviews.one_token.rate.percentile_99)
    });
    row("refused wrongly", |it| {
        Some(it.reviews.one_token.rate.wrong as f64)
    });
    row(
        "SubjectAccessReview, 200 rules, 8 at a time: a second",
        |it| Some(it.reviews.access.per_second),
    );
    row("median, ms", |it| Some(it.reviews.access.median));
    row("99th percentile, ms", |it| {
        Some(it.reviews.access.percentile_99)
    });
    row("alone, one rule: median, ms", |it| {
        Some(it.reviews.access_alone[0].median)
    });
    row("alone, 2000 rules: median, ms", |it| {
        Some(it.reviews.access_alone[1].median)
    });
    row("from exec to the first answer, median, ms", |it| {
        Some(it.reviews.start)
    });
    row("RSS at rest, MB", |it| Some(it.reviews.rss.0));
    row("of it anonymous, MB", |it| Some(it.reviews.rss.1));
    let name = format!("RSS after reviews of {} tokens, MB", report.tokens);
    row(&name, |it| Some(it.reviews.rss_with_tokens.0));
    row("of it anonymous, MB", |it| {
        Some(it.reviews.rss_with_tokens.1)
    });
    row("exec plugin with a login: median, ms", |it| {
        Some(it.plugin.not_cached)
    });
    row("of it the login", |it| Some(it.plugin.login));
    row("exec plugin with a known token: median, ms", |it| {
        it.plugin.cached
    });
    row("kubectl with a token in the file: median, ms", |it| {
        it.kubectl.map(|it| it.token)
    });
    row("with a login by the exec plugin: more, ms", |it| {
        it.kubectl.map(|it| it.login)
    });
    row("with a token that it has kept: more, ms", |it| {
        it.kubectl.and_then(|it| it.kept)
    });
    rows
}
