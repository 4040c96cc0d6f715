//! Results as a table.

use std::fmt::Write;

use super::{CLIENTS, Figures, Report, Size};

/// Direction of improvement.
#[derive(Clone, Copy)]
enum Better {
    More,
    Less,
}

struct Table<'a> {
    text: String,
    report: &'a Report,
}

impl Table<'_> {
    /// Adds a row, unless the value was not measured.
    fn row(
        &mut self,
        name: &str,
        (unit, digits, better): (&str, usize, Better),
        value: impl Fn(&Figures) -> Option<f64>,
    ) {
        let Some(ours) = value(&self.report.embedded) else {
            return;
        };
        let cell = |value: f64| format!("{value:.digits$} {unit}");
        let _ = write!(self.text, "  {name:<46}{:>14}", cell(ours));
        if let Some(theirs) = self.report.real.as_ref().and_then(value) {
            let ratio = match better {
                Better::More => ours / theirs,
                Better::Less => theirs / ours,
            };
            let _ = write!(self.text, "{:>24}{ratio:>8.1}x", cell(theirs));
        }
        self.text.push('\n');
    }

    fn size(
        &mut self,
        name: &str,
        (unit, digits): (&str, usize),
        value: impl Fn(&Size) -> f64 + Copy,
    ) {
        self.row(name, (unit, digits, Better::Less), |figures| {
            figures.size.as_ref().map(value)
        });
    }

    fn rates(&mut self) {
        for (n, clients) in CLIENTS.into_iter().enumerate() {
            let rate = ("/s", 0, Better::More);
            let name = |what: &str| match clients {
                1 => format!("{what}, 1 client"),
                _ => format!("{what}, {clients} clients"),
            };
            self.row(&name("creates"), rate, |f| Some(f.rates.get(n)?.creates));
            self.row(&name("updates"), rate, |f| Some(f.rates.get(n)?.updates));
            self.row(&name("gets"), rate, |f| Some(f.rates.get(n)?.gets));
        }
    }

    fn fan_out(&mut self) {
        let ask = self.report.scale.fan_out;
        let (watchers, rate) = (ask.watchers, ask.rate);
        let milliseconds = ("ms", 1, Better::Less);
        let name = |what: &str| format!("{watchers} watchers, {rate} events/s: {what}");
        self.row(&name("median"), milliseconds, |f| {
            Some(f.fan_out.as_ref()?.median_milliseconds)
        });
        self.row(&name("99th percentile"), milliseconds, |f| {
            Some(f.fan_out.as_ref()?.percentile_99_milliseconds)
        });
        self.row(
            "  events/s that were reached",
            ("/s", 1, Better::More),
            |f| Some(f.fan_out.as_ref()?.reached),
        );
        let part = |f: &Figures| {
            let found = f.fan_out.as_ref()?;
            Some(100.0 * found.delivered as f64 / found.expected as f64)
        };
        self.row("  of them delivered", ("%", 1, Better::More), part);
        let processor = ("µs", 1, Better::Less);
        self.row("  processor time for each delivery", processor, |f| {
            Some(f.fan_out.as_ref()?.processor_microseconds)
        });
    }
}

pub(super) fn render(report: &Report) -> String {
    let mut table = Table {
        text: format!(
            "  {:<46}{:>14}{:>24}{:>9}\n",
            "", "embedded", "kube-apiserver + etcd", "ratio"
        ),
        report,
    };
    let (some, many) = (report.scale.some, report.scale.many);
    table.rates();
    let list = format!("list of {some} objects of 4 KiB");
    table.size(&list, ("ms", 0), |size| size.list_milliseconds);
    table.fan_out();
    table.size("start to first answer", ("ms", 0), |size| {
        size.start_milliseconds
    });
    table.size("RSS idle", ("MB", 0), |size| size.idle.sum());
    let with = |count: usize| format!("RSS with {count} objects of 4 KiB");
    table.size(&with(some), ("MB", 0), |size| size.with_some.sum());
    table.size(&with(many), ("MB", 0), |size| size.with_many.sum());
    table.row(
        "creates of these, 16 clients",
        ("/s", 0, Better::More),
        |figures| figures.size.as_ref().map(|size| size.creates),
    );
    let mut text = table.text;
    if let Some(found) = &report.clusters {
        let _ = writeln!(
            text,
            "  {:<46}{:>14}",
            format!("RSS of {} servers in one process", found.clusters),
            format!("{:.0} MB", found.megabytes)
        );
    }
    text.push('\n');
    for (name, figures) in servers(report) {
        if let Some(size) = figures.size.as_ref().filter(|size| size.created < many) {
            let _ = writeln!(
                text,
                "  {name}: there was time for {} of the {many} objects",
                size.created
            );
        }
    }
    if let Some(size) = report.real.as_ref().and_then(|real| real.size.as_ref()) {
        for (name, rss) in [
            ("idle".to_owned(), &size.idle),
            (format!("with {some}"), &size.with_some),
            (format!("with {many}"), &size.with_many),
        ] {
            let _ = writeln!(text, "  of the RSS, {name}: {rss}");
        }
    }
    for (name, figures) in servers(report) {
        if let Some(found) = &figures.fan_out {
            let _ = writeln!(
                text,
                "  {name}: {} of {} events delivered, {} watches ended by the server and resumed",
                found.delivered, found.expected, found.ended
            );
        }
    }
    if let Some(found) = &report.clusters {
        let _ = writeln!(
            text,
            "  in memory each of the {} servers has {} objects of a cluster of four nodes, {} KiB of JSON, after {} writes",
            found.clusters,
            found.objects,
            found.object_bytes / 1024,
            found.writes
        );
    }
    let _ = writeln!(
        text,
        "  data {}\n\n{:.1} minutes, machine: {}",
        report.disk, report.minutes, report.machine
    );
    text
}

/// [`Figures`] of the measured servers, by name.
fn servers(report: &Report) -> impl Iterator<Item = (&'static str, &Figures)> {
    let real = report.real.as_ref();
    std::iter::once(("embedded", &report.embedded))
        .chain(real.map(|figures| ("kube-apiserver", figures)))
}
