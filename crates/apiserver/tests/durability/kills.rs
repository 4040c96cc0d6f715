//! kill -9 at random moments under load: every acknowledged write is there, revisions never go back, and a watch that
//! resumes from its last revision neither misses nor repeats anything.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::Value;

use crate::site::{Client, MAPS, Site, map, revision};

const ROUNDS: u64 = 200;
const CLIENTS: usize = 6;
/// Objects that each client writes to; nobody else does.
const NAMES: usize = 4;

/// Known state of each object: the last acknowledged revision, and the value unless deleted.
type Known = BTreeMap<String, (u64, Option<String>)>;

/// Write without an answer: it may have happened.
#[derive(Clone, Debug)]
struct Pending {
    name: String,
    value: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
struct Event {
    revision: u64,
    name: String,
    /// None for a deletion.
    value: Option<String>,
}

/// Events of a watch, over all restarts.
#[derive(Default)]
struct Seen {
    events: Vec<Event>,
    problem: Option<String>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_kills_lose_nothing() {
    let site = Site::new();
    let mut known = Known::new();
    let mut pending: Vec<Pending> = Vec::new();
    let mut acknowledged: BTreeMap<u64, (String, Option<String>)> = BTreeMap::new();
    let seen = Arc::new(Mutex::new(Seen::default()));
    let mut last = 0;
    let mut begin = None;
    for round in 0..ROUNDS {
        let mut random = StdRng::seed_from_u64(round);
        if round % 8 == 7 {
            // While it starts, too.
            let delay = Duration::from_micros(random.random_range(0..60_000));
            site.start_and_kill(delay).await;
        }
        let child = site.start("").unwrap();
        let client = site.client(&child);

        let (revision, objects) = list(&client).await;
        assert!(revision >= last, "round {round}: {revision} after {last}");
        check_objects(&objects, &mut known, &pending, revision);
        let from = match seen.lock().unwrap().events.last() {
            Some(event) => event.revision,
            // From the list of the first round on, which was empty.
            None => *begin.get_or_insert(revision),
        };
        let watch = tokio::spawn(follow(client.clone(), from, Arc::clone(&seen)));
        caught_up(&seen, &objects, &acknowledged).await;

        let answers = Arc::new(AtomicU64::new(0));
        let writers: Vec<_> = (0..CLIENTS)
            .map(|number| {
                let mine = known
                    .iter()
                    .filter(|(name, _)| name.starts_with(&format!("c{number}-")))
                    .map(|(name, state)| (name.clone(), state.clone()))
                    .collect();
                let random = StdRng::seed_from_u64(random.random());
                let answers = Arc::clone(&answers);
                tokio::spawn(write(client.clone(), number, mine, random, answers))
            })
            .collect();
        // Under way, wherever that is: some acknowledged writes later, and a moment more.
        let enough = random.random_range(0..20);
        while answers.load(Ordering::Relaxed) < enough {
            tokio::time::sleep(Duration::from_micros(100)).await;
        }
        tokio::time::sleep(Duration::from_micros(random.random_range(0..5_000))).await;
        child.kill();

        pending.clear();
        last = revision;
        for writer in writers {
            let done = writer.await.unwrap();
            pending.push(done.pending);
            known.extend(done.mine);
            for (revision_of, name, value) in done.acknowledged {
                assert!(revision_of > revision, "{revision_of} is not new");
                last = last.max(revision_of);
                let before = acknowledged.insert(revision_of, (name, value));
                assert_eq!(before, None, "revision {revision_of} was given twice");
            }
        }
        watch.await.unwrap();
    }
    eprintln!("{} acknowledged writes", acknowledged.len());
}

async fn list(client: &Client) -> (u64, BTreeMap<String, (u64, String)>) {
    let (code, list) = client.get(MAPS).await.unwrap();
    assert_eq!(code, 200, "{list}");
    let items = list["items"].as_array().unwrap().iter();
    let objects = items.map(|item| {
        (
            text(&item["metadata"]["name"]),
            (revision(item), text(&item["data"]["v"])),
        )
    });
    (revision(&list), objects.collect())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// Checks that each object is as left by its last acknowledged write, or by the pending one.
fn check_objects(
    objects: &BTreeMap<String, (u64, String)>,
    known: &mut Known,
    pending: &[Pending],
    now: u64,
) {
    let names: Vec<String> = known.keys().chain(objects.keys()).cloned().collect();
    for name in names {
        let found = objects.get(&name);
        let acknowledged = known.get(&name).cloned().unwrap_or((0, None));
        let as_known = match (found, &acknowledged) {
            (None, (_, None)) => true,
            (Some((revision, value)), (known, Some(wanted))) => {
                revision == known && value == wanted
            }
            _ => false,
        };
        if as_known {
            continue;
        }
        let happened = pending.iter().any(|write| {
            write.name == name
                && write.value.as_ref() == found.map(|(_, value)| value)
                && found.is_none_or(|(revision, _)| *revision > acknowledged.0)
        });
        assert!(
            happened,
            "{name} is {found:?}; acknowledged was {acknowledged:?}, under way were {pending:?}"
        );
        let state = match found {
            Some((revision, value)) => (*revision, Some(value.clone())),
            None => (now, None),
        };
        known.insert(name, state);
    }
}

/// Waits until the events add up to the list, and checks that they include each acknowledged write.
async fn caught_up(
    seen: &Mutex<Seen>,
    objects: &BTreeMap<String, (u64, String)>,
    acknowledged: &BTreeMap<u64, (String, Option<String>)>,
) {
    for _ in 0..3000 {
        {
            let seen = seen.lock().unwrap();
            assert_eq!(seen.problem, None);
            let mut state = BTreeMap::new();
            for event in &seen.events {
                match &event.value {
                    Some(value) => {
                        state.insert(event.name.clone(), (event.revision, value.clone()))
                    }
                    None => state.remove(&event.name),
                };
            }
            if state == *objects {
                let events: BTreeMap<u64, &Event> = seen
                    .events
                    .iter()
                    .map(|event| (event.revision, event))
                    .collect();
                for (revision, (name, value)) in acknowledged {
                    let event = events.get(revision);
                    let event =
                        event.unwrap_or_else(|| panic!("no event for {name} at {revision}"));
                    assert_eq!((&event.name, &event.value), (name, value));
                }
                return;
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("the watch does not catch up with the list");
}

/// Watches after `from` until the server is gone.
async fn follow(client: Client, from: u64, seen: Arc<Mutex<Seen>>) {
    let path = format!("{MAPS}?watch=1&resourceVersion={from}");
    let Some(mut response) = client.stream("GET", &path).await else {
        return;
    };
    let mut buffer = Vec::new();
    while let Ok(Some(piece)) = response.chunk().await {
        buffer.extend_from_slice(&piece);
        while let Some(end) = buffer.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = buffer.drain(..=end).collect();
            let event: Value = serde_json::from_slice(&line).unwrap();
            let mut seen = seen.lock().unwrap();
            let object = &event["object"];
            let kind = text(&event["type"]);
            if !["ADDED", "MODIFIED", "DELETED"].contains(&kind.as_str()) {
                seen.problem = Some(event.to_string());
                return;
            }
            let event = Event {
                revision: revision(object),
                name: text(&object["metadata"]["name"]),
                value: (kind != "DELETED").then(|| text(&object["data"]["v"])),
            };
            if let Some(last) = seen.events.last()
                && last.revision >= event.revision
            {
                seen.problem = Some(format!("{event:?} after {last:?}"));
            }
            seen.events.push(event);
        }
    }
}

struct Written {
    /// Revision, name and value of each object as it was written.
    acknowledged: Vec<(u64, String, Option<String>)>,
    /// Final state of the client's objects.
    mine: Known,
    pending: Pending,
}

/// Writes until the server is gone.
async fn write(
    client: Client,
    number: usize,
    mut mine: Known,
    mut random: StdRng,
    answers: Arc<AtomicU64>,
) -> Written {
    let mut acknowledged = Vec::new();
    loop {
        let name = format!("c{number}-{}", random.random_range(0..NAMES));
        let value = random.random::<u64>().to_string();
        let current = mine.get(&name).cloned().unwrap_or((0, None));
        let path = format!("{MAPS}/{name}");
        let (sent, answer) = match current {
            (_, None) => {
                let sent = Some(value.clone());
                (sent, client.call("POST", MAPS, &map(&name, &value)).await)
            }
            (revision, Some(_)) if random.random_bool(0.7) => {
                let mut body = map(&name, &value);
                body["metadata"]["resourceVersion"] = revision.to_string().into();
                (Some(value), client.call("PUT", &path, &body).await)
            }
            _ => (None, client.call("DELETE", &path, &Value::Null).await),
        };
        let Some((code, object)) = answer else {
            let pending = Pending { name, value: sent };
            return Written {
                acknowledged,
                mine,
                pending,
            };
        };
        assert!(code < 300, "{name}: {code} {object}");
        answers.fetch_add(1, Ordering::Relaxed);
        // A deletion answers with a Status; the event has the revision.
        match sent {
            Some(value) => {
                let revision = revision(&object);
                mine.insert(name.clone(), (revision, Some(value.clone())));
                acknowledged.push((revision, name, Some(value)));
            }
            None => {
                let before = mine.get(&name).map_or(0, |state| state.0);
                mine.insert(name, (before, None));
            }
        }
    }
}
