//! `events`: reports of controllers about objects.

use std::collections::HashMap;

use anyhow::Context as _;
use futures::{Stream, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::runtime::{WatchStreamExt as _, watcher};
use operator::client::Api;
use serde_json::json;
use status::asked::{self, Asked};
use terminal::Layout;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::cli::{EventType, Events, Output};
use crate::connect;
use crate::environment::Environment;
use crate::output::{self, print};
use crate::signals::stop_if;

/// Number of events in a page of a list.
const PAGE: u32 = 500;
/// How often a list is begun, whose position expires each time before its end.
const ATTEMPTS: usize = 5;

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
    let mut columns = Columns::from_layout(output::layout(environment));
    if args.watch {
        let config = watcher::Config::default().page_size(PAGE);
        let changes = operator::watch::objects(&api, config).default_backoff();
        return follow(changes, args, &asked, &mut columns, stop, print).await;
    }
    let events = listed(&api).await.context("cannot list events")?;
    first(events, args, &asked, &mut columns, &print)
}

/// Lists the events in pages. A list whose position expires begins anew, [`ATTEMPTS`] times at most.
async fn listed(api: &Api<Event>) -> kube::Result<Vec<Event>> {
    let mut params = ListParams::default().limit(PAGE);
    let mut all = Vec::new();
    let mut attempts = 1;
    loop {
        let page = match api.list(&params).await {
            Err(kube::Error::Api(status))
                if status.code == 410 && params.continue_token.is_some() && attempts < ATTEMPTS =>
            {
                attempts += 1;
                params.continue_token = None;
                all.clear();
                continue;
            }
            page => page?,
        };
        all.extend(page.items);
        params.continue_token = page.metadata.continue_.filter(|it| !it.is_empty());
        if params.continue_token.is_none() {
            return Ok(all);
        }
    }
}

/// Prints the events of the first list.
fn first(
    mut events: Vec<Event>,
    args: &Events,
    asked: &Asked,
    columns: &mut Columns,
    print: &impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    events.retain(|event| is_wanted(event, asked, &args.types));
    events.sort_by_key(|event| last_seen(event).map(|it| it.as_nanosecond()));
    match args.output.output {
        Output::Json => print(&terminal::json(&json!({"items": events}))?),
        Output::Text if events.is_empty() && !args.watch => {
            print(&format!("There is no event {}.\n", place(args)))
        }
        Output::Text => print(&columns.table(&rows(&events, Timestamp::now()))),
    }
}

/// Prints the first list of a watch and then each new or repeated event, until `stop`.
async fn follow(
    changes: impl Stream<Item = watcher::Result<watcher::Event<Event>>>,
    args: &Events,
    asked: &Asked,
    columns: &mut Columns,
    stop: CancellationToken,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut changes = std::pin::pin!(changes);
    let mut printed = Printed::default();
    let mut expired = 0;
    loop {
        let change = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            change = changes.next() => change,
        };
        let change = match change {
            None => return Ok(()),
            Some(Ok(change)) => change,
            Some(Err(failure)) => {
                if is_expired(&failure) {
                    expired += 1;
                }
                // Before the first list nobody has seen anything: an error is the answer.
                if !printed.any && (!is_expired(&failure) || expired >= ATTEMPTS) {
                    return Err(failure).context("cannot list events");
                }
                debug!("watch interrupted: {failure}");
                continue;
            }
        };
        match printed.see(change) {
            Unprinted::None => {}
            Unprinted::List(events) => first(events, args, asked, columns, &print)?,
            Unprinted::Events(events) => more(&events, args, asked, columns, &print)?,
        }
    }
}

/// Prints events after those of the first list.
fn more(
    events: &[Event],
    args: &Events,
    asked: &Asked,
    columns: &mut Columns,
    print: &impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    for event in events {
        if !is_wanted(event, asked, &args.types) {
            continue;
        }
        match args.output.output {
            Output::Json => print(&format!("{}\n", terminal::json_line(&json!(event))))?,
            Output::Text => {
                let rows = rows(std::slice::from_ref(event), Timestamp::now());
                print(&columns.further(&rows))?;
            }
        }
    }
    Ok(())
}

/// True for an expired position in a list, after which the watch begins anew.
fn is_expired(failure: &watcher::Error) -> bool {
    matches!(failure, watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 410)
}

/// Events printed before: the revision of each uid.
#[derive(Default)]
struct Printed {
    revisions: HashMap<String, String>,
    /// Events of an incomplete list.
    listed: Vec<Event>,
    /// True after the first list.
    any: bool,
}

/// Events to print after a change.
enum Unprinted {
    None,
    List(Vec<Event>),
    Events(Vec<Event>),
}

impl Printed {
    /// Returns the [`Event`]s not printed yet. An interrupted watch lists anew, with new events among the old ones.
    fn see(&mut self, change: watcher::Event<Event>) -> Unprinted {
        match change {
            watcher::Event::Init => self.listed.clear(),
            watcher::Event::InitApply(event) => self.listed.push(event),
            watcher::Event::InitDone => {
                let mut events = std::mem::take(&mut self.listed);
                let before = std::mem::take(&mut self.revisions);
                self.revisions = events.iter().map(revision).collect();
                if !std::mem::replace(&mut self.any, true) {
                    return Unprinted::List(events);
                }
                events.retain(|event| {
                    let (uid, revision) = revision(event);
                    before.get(&uid) != Some(&revision)
                });
                events.sort_by_key(|event| last_seen(event).map(|it| it.as_nanosecond()));
                return Unprinted::Events(events);
            }
            watcher::Event::Apply(event) => {
                let (uid, revision) = revision(&event);
                let before = self.revisions.insert(uid, revision.clone());
                if before != Some(revision) {
                    return Unprinted::Events(vec![event]);
                }
            }
            watcher::Event::Delete(event) => {
                self.revisions.remove(&revision(&event).0);
            }
        }
        Unprinted::None
    }
}

/// Uid and revision.
fn revision(event: &Event) -> (String, String) {
    let metadata = &event.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    (text(&metadata.uid), text(&metadata.resource_version))
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

/// Columns of the table, which further events are printed in, too.
struct Columns {
    layout: Layout,
    /// The widest cell of each column; the last column has its heading alone.
    widest: Row,
}

/// Cells of an event.
type Row = [String; 5];

const HEADER: [&str; 5] = ["LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"];
/// The columns that a narrow terminal does without: REASON, then TYPE.
const EXPENDABLE: [usize; 2] = [2, 1];

impl Columns {
    fn from_layout(layout: Layout) -> Self {
        let widest = HEADER.map(str::to_owned);
        Self { layout, widest }
    }

    /// The rows below the heading.
    fn table(&mut self, rows: &[Row]) -> String {
        self.see(rows);
        let rows: Vec<Row> = std::iter::once(HEADER.map(str::to_owned))
            .chain(rows.iter().cloned())
            .collect();
        self.laid_out(&rows)
    }

    /// Further rows, in the columns of those before.
    fn further(&mut self, rows: &[Row]) -> String {
        self.see(rows);
        let rows: Vec<Row> = std::iter::once(self.widest.clone())
            .chain(rows.iter().cloned())
            .collect();
        let text = self.laid_out(&rows);
        text.split_once('\n')
            .map_or(String::new(), |(_, rest)| rest.to_owned())
    }

    fn see(&mut self, rows: &[Row]) {
        for row in rows {
            for (widest, cell) in self.widest.iter_mut().zip(&row[..4]) {
                if terminal::width(cell) > terminal::width(widest) {
                    widest.clone_from(cell);
                }
            }
        }
    }

    fn laid_out(&self, rows: &[Row]) -> String {
        output::table(rows, self.layout, &EXPENDABLE)
    }
}

/// The cells of events.
fn rows(events: &[Event], now: Timestamp) -> Vec<Row> {
    let row = |event: &Event| {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        let regarding = event.regarding.clone().unwrap_or_default();
        let seen = last_seen(event).map(|it| terminal::age(&it.to_string(), now));
        let count = event.series.as_ref().map(|it| it.count);
        let count = count.or(event.deprecated_count).filter(|it| *it > 1);
        let seen = match (seen.unwrap_or_default(), count) {
            (seen, Some(count)) => format!("{seen} (x{count})"),
            (seen, None) => seen,
        };
        terminal::cells([
            seen,
            text(&event.type_),
            text(&event.reason),
            format!("{}/{}", text(&regarding.kind), text(&regarding.name)),
            text(&event.note),
        ])
    };
    events.iter().map(row).collect()
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

    /// Event of a name, in a revision.
    fn revised(name: &str, revision: &str) -> Event {
        let mut event = event("Machine", name, "Normal");
        event.metadata.uid = Some(name.to_owned());
        event.metadata.resource_version = Some(revision.to_owned());
        event
    }

    /// Output of `events --watch` for the changes of a watch.
    async fn watched(
        changes: Vec<watcher::Result<watcher::Event<Event>>>,
    ) -> anyhow::Result<String> {
        use clap::Parser as _;
        let cli = crate::cli::Cli::try_parse_from(["ferrostack", "events", "--watch"])?;
        let crate::cli::Command::Events(args) = cli.command else {
            anyhow::bail!("not events");
        };
        let out = std::cell::RefCell::new(String::new());
        let print = |text: &str| {
            out.borrow_mut().push_str(text);
            Ok(())
        };
        let asked = asked::parse(&args.object)?;
        let stop = CancellationToken::new();
        let mut columns = Columns::from_layout(Layout::Full);
        let changes = futures::stream::iter(changes);
        follow(changes, &args, &asked, &mut columns, stop, print).await?;
        let rows = out.borrow();
        let objects = rows
            .lines()
            .filter_map(|row| row.split_whitespace().find(|it| it.contains('/')));
        Ok(objects.collect::<Vec<_>>().join(" "))
    }

    #[tokio::test]
    async fn a_watch_prints_every_event_once_across_lists_and_interruptions() {
        use watcher::Event::{Apply, Delete, Init, InitApply, InitDone};
        let interrupted = || Err(watcher::Error::NoResourceVersion);
        let changes = vec![
            Ok(Init),
            Ok(InitApply(revised("a", "1"))),
            // Created while the list was read.
            Ok(InitApply(revised("b", "2"))),
            Ok(InitDone),
            Ok(Apply(revised("c", "3"))),
            Ok(Apply(revised("a", "4"))),
            interrupted(),
            Ok(Init),
            Ok(InitApply(revised("a", "4"))),
            interrupted(),
            // The list anew, with what happened meanwhile.
            Ok(Init),
            Ok(InitApply(revised("a", "4"))),
            Ok(InitApply(revised("b", "6"))),
            Ok(InitApply(revised("d", "5"))),
            Ok(InitDone),
            Ok(Apply(revised("d", "5"))),
            Ok(Delete(revised("d", "7"))),
        ];
        let objects = watched(changes).await.unwrap();
        assert_eq!(
            objects,
            "Machine/a Machine/b Machine/c Machine/a Machine/b Machine/d"
        );
    }

    #[tokio::test]
    async fn a_first_list_that_fails_is_an_error_and_one_that_expired_is_read_anew() {
        let failed = |code: u16| {
            let status = kube::core::Status::failure("no", "No")
                .with_code(code)
                .boxed();
            Err(watcher::Error::InitialListFailed(kube::Error::Api(status)))
        };
        let error = watched(vec![Ok(watcher::Event::Init), failed(403)]).await;
        assert_eq!(error.unwrap_err().to_string(), "cannot list events");
        let expired = vec![
            Ok(watcher::Event::Init),
            Ok(watcher::Event::InitApply(revised("a", "1"))),
            failed(410),
            Ok(watcher::Event::Init),
            Ok(watcher::Event::InitApply(revised("a", "1"))),
            Ok(watcher::Event::InitDone),
        ];
        assert_eq!(watched(expired).await.unwrap(), "Machine/a");
        // A list that never ends is an error, too.
        let begun = || [Ok(watcher::Event::Init), failed(410)];
        let error = watched((0..ATTEMPTS).flat_map(|_| begun()).collect()).await;
        assert_eq!(error.unwrap_err().to_string(), "cannot list events");
    }

    #[tokio::test]
    async fn a_list_whose_position_always_expires_is_an_error_after_some_attempts() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let begun = std::sync::Arc::new(AtomicUsize::new(0));
        let counted = begun.clone();
        let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let goes_on = request
                .uri()
                .query()
                .unwrap_or_default()
                .contains("continue=");
            if !goes_on {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            async move {
                let (code, body) = match goes_on {
                    true => (
                        410,
                        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 410,
                        "reason": "Expired", "message": "too old"}),
                    ),
                    false => (
                        200,
                        json!({"kind": "EventList", "apiVersion": "events.k8s.io/v1", "items": [],
                        "metadata": {"continue": "next"}}),
                    ),
                };
                let body = kube::client::Body::from(body.to_string().into_bytes());
                http::Response::builder().status(code).body(body)
            }
        });
        let client = kube::Client::new(service, testbed::NAMESPACE);
        let error = listed(&Api::namespaced(client, testbed::NAMESPACE)).await;
        assert!(matches!(error, Err(kube::Error::Api(status)) if status.code == 410));
        assert_eq!(begun.load(Ordering::Relaxed), ATTEMPTS);
    }

    #[tokio::test]
    async fn a_long_list_is_read_in_pages() {
        use std::sync::atomic::{AtomicUsize, Ordering};
        let management = testbed::Management::open([]).await;
        let api: Api<Event> = Api::namespaced(management.client.clone(), testbed::NAMESPACE);
        for number in 0..PAGE + 3 {
            let mut event = event("Machine", "a", "Normal");
            event.metadata.name = Some(format!("e{number}"));
            api.create(&Default::default(), &event).await.unwrap();
        }
        let requests = std::sync::Arc::new(AtomicUsize::new(0));
        let counted = requests.clone();
        let service = tower::ServiceBuilder::new()
            .map_request(move |request: http::Request<kube::client::Body>| {
                counted.fetch_add(1, Ordering::Relaxed);
                request
            })
            .service(management.server.in_process());
        let client = kube::Client::new(service, testbed::NAMESPACE);
        let all = listed(&Api::namespaced(client, testbed::NAMESPACE)).await;
        assert_eq!(all.unwrap().len(), PAGE as usize + 3);
        assert_eq!(requests.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn a_row_has_the_last_observation_and_their_number_on_one_line() {
        let now = "2026-01-01T00:01:30Z".parse().unwrap();
        let rows = rows(&[event("Machine", "a", "Normal")], now);
        assert_eq!(
            rows[0],
            ["30s (x3)", "Normal", "Created", "Machine/a", "made\\nit"].map(str::to_owned)
        );
    }

    #[test]
    fn further_events_stand_in_the_columns_of_those_before() {
        let now = "2026-01-01T00:01:30Z".parse().unwrap();
        let long = rows(&[event("Machine", "a-long-name", "Warning")], now);
        let short = rows(&[event("Machine", "a", "Normal")], now);
        let mut columns = Columns::from_layout(Layout::Full);
        let first = columns.table(&long);
        let place = first.lines().last().unwrap().find("made").unwrap();
        assert_eq!(columns.further(&short).find("made"), Some(place));
        // A narrow terminal has the message below.
        let mut columns = Columns::from_layout(Layout::Terminal(35));
        let expected = "LAST SEEN  OBJECT\n30s (x3)   Machine/a-long-name\n    made\\nit\n";
        assert_eq!(columns.table(&long), expected);
        assert_eq!(
            columns.further(&short),
            "30s (x3)   Machine/a\n    made\\nit\n"
        );
    }
}
