//! `events`: what controllers report about objects.

use anyhow::Context as _;
use futures::StreamExt as _;
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::runtime::watcher;
use operator::client::Api;
use serde_json::json;
use status::asked::{self, Asked};
use tokio_util::sync::CancellationToken;

use crate::cli::{EventType, Events, Output};
use crate::connect;
use crate::environment::Environment;
use crate::output::print;
use crate::signals::stop_if;

/// Runs the command.
pub(super) async fn execute(args: &Events, environment: &Environment) -> anyhow::Result<()> {
    run(args, environment, stop_if(args.watch)?, print).await
}

/// Prints the events once, the oldest first, or with `--watch` each new one, too.
pub(crate) async fn run(
    args: &Events,
    environment: &Environment,
    stop: CancellationToken,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let asked = asked::parse(&args.object)?;
    let client = connect::client(&args.connect.server, environment).await?;
    let api: Api<Event> = match args.all_namespaces {
        true => Api::all(client),
        false => Api::namespaced(client, &args.connect.namespace),
    };
    let list = api.list(&ListParams::default()).await;
    let mut events = list.context("cannot list events")?.items;
    events.retain(|event| is_wanted(event, &asked, &args.types));
    events.sort_by_key(|event| last_seen(event).map(|it| it.as_nanosecond()));
    match args.output.output {
        Output::Json => print(&terminal::json(&json!({"items": events}))?)?,
        Output::Text if events.is_empty() && !args.watch => {
            print(&format!("There is no event {}.\n", place(args)))?;
        }
        Output::Text => print(&terminal::align(&table(&events, Timestamp::now())))?,
    }
    match args.watch {
        true => follow(&api, args, &asked, stop, print).await,
        false => Ok(()),
    }
}

/// Prints each event that is new or seen again, until `stop`.
async fn follow(
    api: &Api<Event>,
    args: &Events,
    asked: &Asked,
    stop: CancellationToken,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let changes = operator::watch::objects(api, watcher::Config::default());
    let mut changes = std::pin::pin!(changes);
    loop {
        let change = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            change = changes.next() => change,
        };
        let Some(change) = change else { return Ok(()) };
        // The first list is printed already.
        let Ok(watcher::Event::Apply(event)) = change else {
            continue;
        };
        if !is_wanted(&event, asked, &args.types) {
            continue;
        }
        match args.output.output {
            Output::Json => print(&format!("{}\n", terminal::json_line(&json!(event))))?,
            Output::Text => {
                let rows = table(&[event], Timestamp::now());
                print(&terminal::align(&rows[1..]))?;
            }
        }
    }
}

fn place(args: &Events) -> String {
    let of = match args.object.is_empty() {
        true => String::new(),
        false => format!(" of {}", args.object.join("/")),
    };
    match args.all_namespaces {
        true => "in any namespace".to_owned(),
        false => format!("in namespace {}{of}", args.connect.namespace),
    }
}

fn is_wanted(event: &Event, asked: &Asked, types: &[EventType]) -> bool {
    let regarding = event.regarding.as_ref();
    let text = |text: Option<&String>| text.cloned().unwrap_or_default();
    let kind = text(regarding.and_then(|it| it.kind.as_ref()));
    let name = text(regarding.and_then(|it| it.name.as_ref()));
    let type_ = event.type_.as_deref().unwrap_or_default();
    let is_type = |it: &EventType| it.as_str() == type_;
    asked.means(&kind, &name) && (types.is_empty() || types.iter().any(is_type))
}

/// Time of the last observation.
fn last_seen(event: &Event) -> Option<Timestamp> {
    let series = event.series.as_ref().map(|it| it.last_observed_time.0);
    let once = event.event_time.as_ref().map(|it| it.0);
    let former = event.deprecated_last_timestamp.as_ref().map(|it| it.0);
    let created = event.metadata.creation_timestamp.as_ref().map(|it| it.0);
    series.or(once).or(former).or(created)
}

fn table(events: &[Event], now: Timestamp) -> Vec<[String; 5]> {
    let header = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"];
    let mut rows = vec![header.map(str::to_owned)];
    for event in events {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let regarding = event.regarding.clone().unwrap_or_default();
        let seen = last_seen(event).map(|it| terminal::age(&it.to_string(), now));
        let count = event.series.as_ref().map(|it| it.count);
        let count = count.or(event.deprecated_count).filter(|it| *it > 1);
        let seen = match (seen.unwrap_or_default(), count) {
            (seen, Some(count)) => format!("{seen} (x{count})"),
            (seen, None) => seen,
        };
        rows.push(terminal::cells([
            seen,
            text(&event.type_),
            text(&event.reason),
            format!("{}/{}", text(&regarding.kind), text(&regarding.name)),
            text(&event.note),
        ]));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, name: &str, type_: &str) -> Event {
        let value = json!({"metadata": {"name": "e"}, "eventTime": "2026-01-01T00:00:00.000000Z", "type": type_,
            "reason": "Created", "note": "made\nit", "action": "a", "reportingController": "c",
            "regarding": {"kind": kind, "name": name},
            "series": {"count": 3, "lastObservedTime": "2026-01-01T00:01:00.000000Z"}});
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn events_are_chosen_by_object_and_type() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let machine = event("Machine", "a", "Warning");
        for (asked, types, wanted) in [
            ("machine/a", &[][..], true),
            ("machines a", &[EventType::Warning], true),
            ("ma/a", &[EventType::Normal], false),
            ("machine/b", &[], false),
            ("machineset/a", &[], false),
            ("a", &[], false),
        ] {
            let asked = asked::parse(&words(asked)).unwrap();
            assert_eq!(is_wanted(&machine, &asked, types), wanted, "{asked:?}");
        }
        let all = asked::parse(&[]).unwrap();
        assert!(is_wanted(&machine, &all, &[]));
    }

    #[test]
    fn a_row_has_the_last_observation_and_their_number_on_one_line() {
        let now = "2026-01-01T00:01:30Z".parse().unwrap();
        let rows = table(&[event("Machine", "a", "Normal")], now);
        assert_eq!(
            rows[1],
            ["30s (x3)", "Normal", "Created", "Machine/a", "made\\nit"].map(str::to_owned)
        );
    }
}
