//! Histories of concurrent clients against a sequential model.
//!
//! Every write has a revision of its own, so the order of writes is known: the model replays the writes in this order
//! and checks each answer. The state in a read or a refusal must have existed at some moment between the question and
//! the answer; a write acknowledged before a question is visible to it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use apiserver::{ApiServer, Options};
use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt as _, Empty};
use proptest::prelude::*;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::local::{call, open};
use crate::site::{MAPS, map, revision};

#[derive(Clone, Debug)]
enum Step {
    Create(u8),
    /// Reads the object, and updates it if it is still the same.
    Update(u8),
    Delete(u8),
    Get(u8),
    List,
}

fn steps() -> impl Strategy<Value = Vec<Vec<Step>>> {
    let step = prop_oneof![
        3 => (0..3_u8).prop_map(Step::Create),
        4 => (0..3_u8).prop_map(Step::Update),
        2 => (0..3_u8).prop_map(Step::Delete),
        1 => (0..3_u8).prop_map(Step::Get),
        1 => Just(Step::List),
    ];
    proptest::collection::vec(proptest::collection::vec(step, 5..25), 2..6)
}

/// Question and answer of one request.
#[derive(Clone, Debug)]
enum Answer {
    Created(u64),
    Exists,
    /// The revision that was replaced, and the new one.
    Updated(u64, u64),
    /// The revision that was to be replaced.
    Conflict(u64),
    /// The uid of what went.
    Deleted(String),
    Missing,
    Found(u64),
    Listed(u64, BTreeMap<String, u64>),
}

/// One request with the times of question and answer, by a clock that never shows the same time twice.
#[derive(Clone, Debug)]
struct Record {
    asked: u64,
    answered: u64,
    name: String,
    answer: Answer,
}

/// An event of a watch.
#[derive(Clone, Debug, PartialEq)]
struct Event {
    revision: u64,
    name: String,
    uid: String,
    kind: String,
}

async fn client(server: ApiServer, clock: Arc<AtomicU64>, steps: Vec<Step>) -> Vec<Record> {
    let mut records = Vec::new();
    let tick = || clock.fetch_add(1, Ordering::SeqCst);
    let record = |name: &str, asked, answer| Record {
        asked,
        answered: tick(),
        name: name.to_owned(),
        answer,
    };
    for step in steps {
        let name = match &step {
            Step::Create(n) | Step::Update(n) | Step::Delete(n) | Step::Get(n) => format!("h{n}"),
            Step::List => String::new(),
        };
        let path = format!("{MAPS}/{name}");
        match step {
            Step::Create(_) => {
                let asked = tick();
                let (code, object) = call(&server, "POST", MAPS, &map(&name, "0")).await;
                let answer = match code {
                    201 => Answer::Created(revision(&object)),
                    409 => Answer::Exists,
                    code => panic!("create: {code} {object}"),
                };
                records.push(record(&name, asked, answer));
            }
            Step::Update(_) => {
                let asked = tick();
                let (code, mut object) = call(&server, "GET", &path, &Value::Null).await;
                if code == 404 {
                    records.push(record(&name, asked, Answer::Missing));
                    continue;
                }
                let from = revision(&object);
                records.push(record(&name, asked, Answer::Found(from)));
                tokio::task::yield_now().await;
                let asked = tick();
                object["data"]["v"] = asked.to_string().into();
                let (code, object) = call(&server, "PUT", &path, &object).await;
                let answer = match code {
                    200 => Answer::Updated(from, revision(&object)),
                    409 => Answer::Conflict(from),
                    404 => Answer::Missing,
                    code => panic!("update: {code} {object}"),
                };
                records.push(record(&name, asked, answer));
            }
            Step::Delete(_) => {
                let asked = tick();
                let (code, object) = call(&server, "DELETE", &path, &Value::Null).await;
                let answer = match code {
                    200 => Answer::Deleted(text(&object["details"]["uid"])),
                    404 => Answer::Missing,
                    code => panic!("delete: {code} {object}"),
                };
                records.push(record(&name, asked, answer));
            }
            Step::Get(_) => {
                let asked = tick();
                let (code, object) = call(&server, "GET", &path, &Value::Null).await;
                let answer = match code {
                    200 => Answer::Found(revision(&object)),
                    404 => Answer::Missing,
                    code => panic!("get: {code} {object}"),
                };
                records.push(record(&name, asked, answer));
            }
            Step::List => {
                let asked = tick();
                let (code, list) = call(&server, "GET", MAPS, &Value::Null).await;
                assert_eq!(code, 200, "{list}");
                let answer = Answer::Listed(revision(&list), names(&list));
                records.push(record("", asked, answer));
            }
        }
        tokio::task::yield_now().await;
    }
    records
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn names(list: &Value) -> BTreeMap<String, u64> {
    let name = |item: &Value| item["metadata"]["name"].as_str().unwrap().to_owned();
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| (name(item), revision(item))).collect()
}

/// Object written after all clients are done: a watch that has seen it has seen everything.
const LAST: &str = "last";

/// How long the next event may take: much longer than it does on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// All events from `from` on, until that of [`LAST`].
async fn watch(server: ApiServer, from: u64) -> Vec<Event> {
    let uri = format!("{MAPS}?watch=1&resourceVersion={from}");
    let request = Request::builder()
        .uri(uri)
        .body(Empty::<Bytes>::new())
        .unwrap();
    let response = server.in_process().oneshot(request).await.unwrap();
    let mut body = response.into_body();
    let (mut events, mut text) = (Vec::new(), Vec::new());
    loop {
        let frame = tokio::time::timeout(PATIENCE, body.frame()).await;
        let frame = frame.unwrap().unwrap().unwrap();
        text.extend_from_slice(&frame.into_data().unwrap());
        while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = text.drain(..=end).collect();
            let event = event(&line);
            if event.name == LAST {
                return events;
            }
            events.push(event);
        }
    }
}

fn event(line: &[u8]) -> Event {
    let event: Value = serde_json::from_slice(line).unwrap();
    let metadata = &event["object"]["metadata"];
    Event {
        revision: revision(&event["object"]),
        name: text(&metadata["name"]),
        uid: text(&metadata["uid"]),
        kind: text(&event["type"]),
    }
}

/// One state that an object had: from a write on, until the next.
#[derive(Clone, Copy, Debug)]
struct State {
    /// The revision of the write.
    revision: u64,
    there: bool,
    /// When the write was asked for, and when it was acknowledged.
    asked: u64,
    answered: u64,
}

/// States of each object in order, from the events and the acknowledgements. Each of them must fit.
fn replay(events: &[Event], records: &[Record], first: u64) -> BTreeMap<String, Vec<State>> {
    let mut writes: BTreeMap<u64, &Record> = BTreeMap::new();
    for record in records {
        if let Answer::Created(revision) | Answer::Updated(_, revision) = record.answer {
            assert!(
                writes.insert(revision, record).is_none(),
                "{revision} twice"
            );
        }
    }
    let mut states: BTreeMap<String, Vec<State>> = BTreeMap::new();
    let mut last = first;
    let mut deletions: BTreeMap<&str, &Record> = BTreeMap::new();
    for record in records {
        if let Answer::Deleted(uid) = &record.answer {
            assert!(
                deletions.insert(uid, record).is_none(),
                "{uid} deleted twice"
            );
        }
    }
    for event in events {
        assert!(event.revision > last, "{event:?} after {last}");
        last = event.revision;
        let of_it = states.entry(event.name.clone()).or_default();
        let before = of_it.last().filter(|state| state.there);
        let (asked, answered) = match event.kind.as_str() {
            "DELETED" => {
                assert!(before.is_some(), "{event:?} of what is not there");
                let asked = deletions.remove(event.uid.as_str());
                let asked = asked.unwrap_or_else(|| panic!("nobody asked for {event:?}"));
                (asked.asked, asked.answered)
            }
            kind => {
                let write = writes.remove(&event.revision);
                let write = write.unwrap_or_else(|| panic!("{event:?} that nobody asked for"));
                assert_eq!(write.name, event.name);
                match write.answer {
                    Answer::Created(_) => assert!(kind == "ADDED" && before.is_none(), "{event:?}"),
                    Answer::Updated(from, _) => {
                        let same = before.is_some_and(|state| state.revision == from);
                        assert!(
                            kind == "MODIFIED" && same,
                            "{event:?} of {before:?} from {from}"
                        );
                    }
                    _ => {}
                }
                (write.asked, write.answered)
            }
        };
        of_it.push(State {
            revision: event.revision,
            there: event.kind != "DELETED",
            asked,
            answered,
        });
    }
    assert!(writes.is_empty(), "never seen by a watch: {writes:?}");
    assert!(deletions.is_empty(), "never seen by a watch: {deletions:?}");
    // Whoever was answered before another asked has the smaller revision, whatever the objects.
    let mut all: Vec<&State> = states.values().flatten().collect();
    all.sort_by_key(|state| state.revision);
    for (n, state) in all.iter().enumerate() {
        for later in &all[n + 1..] {
            assert!(
                later.answered > state.asked,
                "{later:?} was answered before {state:?} was asked"
            );
        }
    }
    states
}

/// True if an object may have been in a state that `fits`, at some moment during `record`.
fn possible(states: &[State], record: &Record, fits: impl Fn(Option<&State>) -> bool) -> bool {
    let begun = |state: Option<&State>| state.is_none_or(|s| s.asked < record.answered);
    let ended = |next: Option<&State>| next.is_some_and(|s| s.answered < record.asked);
    (0..=states.len()).any(|n| {
        let state = n.checked_sub(1).map(|n| &states[n]);
        begun(state) && !ended(states.get(n)) && fits(state)
    })
}

fn check(events: &[Event], records: &[Record], first: u64) {
    let states = replay(events, records, first);
    let none = Vec::new();
    for record in records {
        let of_it = states.get(&record.name).unwrap_or(&none);
        let there = |state: Option<&State>| state.filter(|s| s.there).map(|s| s.revision);
        let fits = match &record.answer {
            Answer::Created(_) | Answer::Updated(..) | Answer::Deleted(_) => true,
            Answer::Exists => possible(of_it, record, |s| there(s).is_some()),
            Answer::Missing => possible(of_it, record, |s| there(s).is_none()),
            Answer::Found(revision) => possible(of_it, record, |s| there(s) == Some(*revision)),
            Answer::Conflict(from) => possible(of_it, record, |s| there(s) != Some(*from)),
            Answer::Listed(at, found) => {
                let mut wanted = BTreeMap::new();
                for (name, states) in &states {
                    let last = states.iter().take_while(|s| s.revision <= *at).last();
                    if let Some(state) = last.filter(|s| s.there) {
                        wanted.insert(name.clone(), state.revision);
                    }
                    // Earlier acknowledged writes are included, later requests are not.
                    for state in states {
                        assert!(
                            state.answered > record.asked || state.revision <= *at,
                            "{record:?} {state:?}"
                        );
                        assert!(
                            state.asked < record.answered || state.revision > *at,
                            "{record:?} {state:?}"
                        );
                    }
                }
                *found == wanted
            }
        };
        assert!(fits, "{record:?}\n{of_it:?}");
    }
}

async fn run(server: ApiServer, clients: Vec<Vec<Step>>) {
    let first = server.stats().revision;
    let clock = Arc::new(AtomicU64::new(1));
    let early = tokio::spawn(watch(server.clone(), first));
    let running: Vec<_> = clients
        .into_iter()
        .map(|steps| tokio::spawn(client(server.clone(), Arc::clone(&clock), steps)))
        .collect();
    let mut records = Vec::new();
    for task in running {
        records.extend(task.await.unwrap());
    }
    let (code, object) = call(&server, "POST", MAPS, &map(LAST, "0")).await;
    assert_eq!(code, 201, "{object}");
    // A watch from after the end sees the same as one from the start.
    let late = watch(server.clone(), first).await;
    let early = early.await.unwrap();
    server.close().await;
    assert_eq!(early, late);
    check(&early, &records, first);
}

fn on_threads(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(4)
        .enable_all()
        .build()
        .unwrap()
        .block_on(work);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn in_memory_every_history_has_a_sequential_order(clients in steps()) {
        on_threads(async { run(ApiServer::open(Options::default()).await.unwrap(), clients).await });
    }

    #[test]
    fn on_disk_every_history_has_a_sequential_order(clients in steps()) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("objects.db");
        on_threads(async { run(open(&path).await.unwrap(), clients).await });
    }
}
