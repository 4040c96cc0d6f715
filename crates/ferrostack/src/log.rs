//! Log on standard error.

use tracing::{Level, Metadata};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, filter, fmt};

use crate::output::{self, Log};

/// Targets of libraries, each with a maximum [`Level`], for any filter of the user. The libraries log the bytes,
/// headers or bodies of messages, with passwords and tokens among them; kube's warnings quote whole responses, and
/// refused connections are no errors here, since workload clusters refuse connections before the start.
const CAPPED: [(&str, Option<Level>); 13] = [
    ("kube_client::client::builder", None),
    ("kube_client", Some(Level::ERROR)),
    ("tungstenite", Some(Level::INFO)),
    ("tokio_tungstenite", Some(Level::INFO)),
    ("h2", Some(Level::INFO)),
    ("hyper", Some(Level::INFO)),
    ("hyper_util", Some(Level::INFO)),
    ("rustls", Some(Level::INFO)),
    ("tokio_rustls", Some(Level::INFO)),
    ("reqwest", Some(Level::INFO)),
    ("tower", Some(Level::INFO)),
    ("tower_http", Some(Level::INFO)),
    ("axum", Some(Level::INFO)),
];

/// Sets up the log of the process with the filter `directives`.
pub(crate) fn set_up(directives: &str, json: bool) -> anyhow::Result<()> {
    let asked = EnvFilter::try_new(directives)
        .map_err(|source| anyhow::anyhow!("--log `{directives}`: {source}"))?;
    let capped = filter::filter_fn(is_logged);
    let colored = output::has_colored_log();
    let lines = match (json, colored) {
        (true, _) => fmt::layer().json().with_writer(Log::Json).boxed(),
        (false, true) => fmt::layer().with_writer(Log::Colored).boxed(),
        (false, false) => fmt::layer().with_ansi(false).with_writer(Log::Text).boxed(),
    };
    let log = tracing_subscriber::registry().with(lines.with_filter(capped).with_filter(asked));
    Ok(log.try_init()?)
}

/// True if an event may be logged at all.
fn is_logged(event: &Metadata<'_>) -> bool {
    let target = event.target();
    let below = |known: &str| {
        let rest = target.strip_prefix(known);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    };
    let cap = CAPPED.iter().find(|(known, _)| below(known));
    cap.is_none_or(|(_, most)| most.is_some_and(|most| *event.level() <= most))
}

#[cfg(test)]
mod tests {
    use super::CAPPED;

    #[test]
    fn the_cap_of_a_part_comes_before_that_of_the_whole() {
        for (index, (whole, _)) in CAPPED.iter().enumerate() {
            let later = CAPPED.iter().skip(index + 1);
            let part = format!("{whole}::");
            assert!(
                later
                    .into_iter()
                    .all(|(target, _)| !target.starts_with(&part))
            );
        }
    }
}
