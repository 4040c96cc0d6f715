use std::path::PathBuf;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::sqlite::{self, Retention, Usage};
use super::super::{Draft, ObjectKey, State, Store, Unread, Write, gate};
use super::*;
use crate::options::{Options, Synchronous};

const COLLECTIONS: [&str; 2] = ["/configmaps", "/secrets"];

/// Same writes to a store in memory, with all objects of its history, and to one with a file.
struct Both {
    memory: Store,
    file: Store,
    settings: Settings,
    directory: tempfile::TempDir,
    /// Up to where the file was compacted when it was opened.
    compacted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Settings {
    history: usize,
    recent: usize,
    retention: Retention,
    closed_at_rest: bool,
}

impl Settings {
    async fn open(self, path: PathBuf) -> Store {
        let state = State::new(self.history).with_file(self.recent);
        let usage = Usage {
            synchronous: Synchronous::Normal,
            closed_at_rest: self.closed_at_rest,
            retention: self.retention,
        };
        let opened = sqlite::open(path, usage, state).await;
        let (shared, writer) = opened.unwrap();
        Store::new(shared, Some(writer))
    }
}

/// An event as a watch receives it: change, revision, object and the object before.
type Received = (Change, u64, String, Option<String>);

impl Both {
    async fn new(settings: Settings) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let memory = Options {
            history: settings.history,
            ..Options::default()
        };
        Self {
            memory: Store::open(&memory).await.unwrap(),
            file: settings.open(directory.path().join("objects.db")).await,
            settings,
            directory,
            compacted: 0,
        }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("objects.db")
    }

    fn query(&self, sql: &str) -> u64 {
        let connection = rusqlite::Connection::open(self.path()).unwrap();
        let found: i64 = connection.query_row(sql, [], |row| row.get(0)).unwrap();
        u64::try_from(found).unwrap()
    }

    /// Writes to the file as another process, without waiting for one that has the file open.
    fn use_elsewhere(&self) -> rusqlite::Result<()> {
        let connection = rusqlite::Connection::open(self.path())?;
        connection.busy_timeout(Duration::ZERO)?;
        connection.execute_batch("BEGIN EXCLUSIVE; COMMIT")
    }

    async fn reopen(&mut self) {
        self.file.close().await;
        self.compacted = self.query("SELECT value FROM meta WHERE name = 'compacted'");
        self.file = self.settings.open(self.path()).await;
    }

    /// Puts the file to rest, so that it is closed.
    async fn rest(&self) {
        self.file.writer.as_ref().unwrap().rest().await;
    }

    /// Creates or replaces an object whose value has `size` bytes.
    async fn put(&self, collection: usize, key: usize, size: usize) {
        let value = json!({
            "apiVersion": "v1", "kind": "Thing",
            "metadata": {"name": format!("o{key}"), "uid": format!("{collection}-{key}")},
            "data": "x".repeat(size),
        });
        self.write(collection, key, &value, false).await;
    }

    /// Deletes an object, if there is one.
    async fn delete(&self, collection: usize, key: usize) {
        let found = self.memory.get(COLLECTIONS[collection], &format!("o{key}"));
        if let Some(object) = found {
            self.write(collection, key, &object.value(), true).await;
        }
    }

    async fn write(&self, collection: usize, key: usize, value: &Value, delete: bool) {
        let place = ObjectKey {
            collection: COLLECTIONS[collection].into(),
            key: format!("o{key}").into(),
        };
        let current = self.memory.get(&place.collection, &place.key);
        let write = || Write {
            place: place.clone(),
            expect: current.as_ref().map_or(0, |object| object.revision),
            draft: gate::pass(value, None).unwrap(),
            delete,
            serve: None,
        };
        let expected = self.memory.write(write()).await.unwrap();
        let written = self.file.write(write()).await.unwrap();
        assert_eq!(written.json(), expected.json());
    }

    fn revision(&self) -> u64 {
        self.memory.read().revision
    }

    /// Compares what both return for each revision.
    async fn compare(&self) {
        for revision in 0..=self.revision() {
            self.compare_at(revision).await;
        }
    }

    async fn compare_at(&self, revision: u64) {
        for collection in COLLECTIONS {
            let (mut events, mut objects) = (None, None);
            if revision >= self.compacted {
                events = resumed(&self.memory, collection, revision).await;
                objects = listed(&self.memory, collection, revision).await;
            }
            let found = resumed(&self.file, collection, revision).await;
            assert_eq!(found, events, "{collection} after {revision}");
            let found = listed(&self.file, collection, revision).await;
            assert_eq!(found, objects, "{collection} at {revision}");
        }
    }
}

/// Events for a watch after `revision`, in parts of three; `None` for a lost revision.
async fn resumed(store: &Store, collection: &str, revision: u64) -> Option<Vec<Received>> {
    let collection: Arc<str> = collection.into();
    let mut received = Vec::new();
    let mut seen = revision;
    loop {
        let events = match store.events(&collection, seen, 3).await {
            Ok((events, _)) => events,
            Err(Unread::Gone(_)) => return None,
            Err(Unread::Failed(problem)) => panic!("{problem}"),
        };
        let Some(last) = events.last() else {
            return Some(received);
        };
        seen = last.object.revision;
        for event in events {
            let line = String::from_utf8(event.frame().to_vec()).unwrap();
            let previous = event.previous.as_ref().map(|object| text(object));
            received.push((event.change, event.object.revision, line, previous));
        }
    }
}

/// List at `revision`; `None` for a lost revision.
async fn listed(store: &Store, collection: &str, revision: u64) -> Option<Vec<String>> {
    let at = At {
        collection: collection.into(),
        prefix: String::new(),
        after: Some("o0".to_owned()),
        revision,
    };
    match store.range_at(at).await {
        Ok(objects) => Some(objects.iter().map(|object| text(object)).collect()),
        Err(Unread::Gone(_)) => None,
        Err(Unread::Failed(problem)) => panic!("{problem}"),
    }
}

fn text(object: &Object) -> String {
    String::from_utf8(object.json().to_vec()).unwrap()
}

#[derive(Clone, Debug)]
enum Step {
    Put(usize, usize, usize),
    Delete(usize, usize),
    /// Nothing is written for a while.
    Rest,
    Reopen,
    Compare,
}

fn step() -> impl Strategy<Value = Step> {
    // The first collection is written more often, so the other has old events in its history.
    let collection = prop_oneof![5 => Just(0_usize), 1 => Just(1)];
    prop_oneof![
        12 => (collection, 0..4_usize, 0..400_usize).prop_map(|(c, key, size)| Step::Put(c, key, size)),
        4 => (0..2_usize, 0..4_usize).prop_map(|(c, key)| Step::Delete(c, key)),
        1 => Just(Step::Rest),
        1 => Just(Step::Reopen),
        1 => Just(Step::Compare),
    ]
}

fn run(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(work);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_watch_resumes_at_each_past_revision_with_the_events_that_memory_would_have(
        steps in proptest::collection::vec(step(), 1..90),
        history in 0..20_usize,
        recent in 0..2000_usize,
        keep in 1..40_u64,
        every in 1..10_u64,
        closed_at_rest in any::<bool>(),
    ) {
        run(async {
            let retention = Retention { keep, every };
            let mut both = Both::new(Settings { history, recent, retention, closed_at_rest }).await;
            for step in steps {
                match step {
                    Step::Put(collection, key, size) => both.put(collection, key, size).await,
                    Step::Delete(collection, key) => both.delete(collection, key).await,
                    Step::Rest => both.rest().await,
                    Step::Reopen => both.reopen().await,
                    Step::Compare => both.compare().await,
                }
            }
            both.compare().await;
            both.reopen().await;
            both.compare().await;
            both.file.close().await;
        });
    }
}

const SETTINGS: Settings = Settings {
    history: 10,
    recent: 0,
    retention: Retention { keep: 5, every: 1 },
    closed_at_rest: true,
};

#[tokio::test]
async fn rows_that_a_history_refers_to_outlive_compaction_and_go_after_it() {
    let mut both = Both::new(SETTINGS).await;
    for size in 0..8 {
        both.put(1, 0, size).await;
    }
    both.delete(1, 0).await;
    // The file is compacted far above these events.
    for size in 0..40 {
        both.put(0, 0, size).await;
    }
    both.compare().await;
    both.reopen().await;
    assert!(both.compacted > 30);
    // The deleted object did not come back from a remaining row.
    assert!(both.file.get(COLLECTIONS[1], "o0").is_none());
    let of_secrets = "SELECT count(*) FROM log WHERE collection = '/secrets'";
    both.file.close().await;
    assert_eq!(both.query(of_secrets), 9);
    both.file = SETTINGS.open(both.path()).await;
    for size in 0..40 {
        both.put(1, 1, size).await;
    }
    both.file.close().await;
    // The history of ten, what the file keeps for a restart, and the current object.
    assert!(both.query(of_secrets) <= 12);
    both.file = SETTINGS.open(both.path()).await;
    assert!(both.file.get(COLLECTIONS[1], "o0").is_none());
}

#[tokio::test]
async fn the_past_takes_memory_for_its_latest_events_only_and_none_at_rest() {
    const RECENT: usize = 20_000;
    const HISTORY: usize = 500;
    let settings = Settings {
        history: HISTORY,
        recent: RECENT,
        retention: Retention::default(),
        closed_at_rest: true,
    };
    let mut both = Both::new(settings).await;
    let collection: Arc<str> = COLLECTIONS[0].into();
    for _ in 0..600 {
        both.put(0, 0, 1000).await;
        // A watch that follows reads no file, and serialises a line of its own.
        let last = both.revision() - 1;
        let state = both.file.read();
        let events = state.events(&collection, last, 100).unwrap().unwrap();
        drop(state);
        let _ = events[0].frame();
    }
    let of_log = 2 * HISTORY * size_of::<Entry>();
    let in_memory = both.memory.read().past_bytes();
    assert!(in_memory > HISTORY * 1000, "{in_memory}");
    // Each object and its line count twice: with their event, and as the previous state of the next one.
    let found = both.file.read().past_bytes();
    assert!(found > RECENT / 2, "{found}");
    assert!(found < 2 * RECENT + of_log, "{found}");
    both.rest().await;
    let at_rest = both.file.read().past_bytes();
    assert_eq!(at_rest, HISTORY * size_of::<Entry>());
    both.reopen().await;
    let opened = both.file.read().past_bytes();
    assert_eq!(opened, HISTORY * size_of::<Entry>());
    both.compare_at(both.revision() - 400).await;
}

#[tokio::test]
async fn a_file_is_closed_at_rest_and_opened_again_for_what_is_written_and_read() {
    let mut both = Both::new(SETTINGS).await;
    both.put(0, 0, 10).await;
    assert!(both.use_elsewhere().is_err());
    for size in 0..3 {
        both.rest().await;
        both.use_elsewhere().unwrap();
        both.put(0, 0, size).await;
        both.rest().await;
        both.compare().await;
    }
    both.rest().await;
    both.reopen().await;
    both.compare().await;
}

/// At rest SQLite's memory is freed, with its prepared statements.
#[tokio::test]
async fn a_file_that_stays_open_at_rest_takes_writes_and_reads_as_before() {
    let mut both = Both::new(Settings {
        closed_at_rest: false,
        ..SETTINGS
    })
    .await;
    for size in 0..3 {
        both.put(0, 0, size).await;
        both.rest().await;
        assert!(both.use_elsewhere().is_err());
        both.compare().await;
    }
    both.rest().await;
    both.put(0, 1, 10).await;
    both.reopen().await;
    both.compare().await;
}

#[tokio::test]
async fn a_file_that_is_gone_at_rest_is_not_created_anew_and_writes_fail_until_it_is_back() {
    let both = Both::new(SETTINGS).await;
    both.put(0, 0, 10).await;
    both.rest().await;
    let elsewhere = both.path().with_extension("elsewhere");
    std::fs::rename(both.path(), &elsewhere).unwrap();
    let write = || {
        let value = json!({"apiVersion": "v1", "kind": "Thing", "metadata": {"name": "o1"}});
        Write::create(COLLECTIONS[0], "o1", &value).unwrap()
    };
    let error = both.file.write(write()).await.unwrap_err().to_string();
    assert!(error.contains("objects.db cannot be written"), "{error}");
    assert!(!both.path().exists());
    std::fs::rename(&elsewhere, both.path()).unwrap();
    both.file.write(write()).await.unwrap();
    both.memory.write(write()).await.unwrap();
    both.compare().await;
}

#[test]
fn an_event_that_replaced_the_form_of_a_changed_schema_stays_in_memory() {
    let mut state = State::new(10).with_file(0);
    let collection: Arc<str> = "example.org/widgets".into();
    let object = |revision: u64, spec: Value| {
        let value = json!({"metadata": {"name": "a"}, "spec": spec});
        Arc::new(Draft::new(&value).at(revision, "a".into()))
    };
    state.publish(&collection, object(2, json!({"old": 1})), false);
    let converted = state.get(&collection, "a").unwrap();
    let converted = converted.converted_to(&json!({"metadata": {"name": "a"}, "spec": {}}));
    state.convert(&collection, Arc::new(converted));
    state.publish(&collection, object(3, json!({"new": 1})), false);
    state.publish(&collection, object(4, json!({"new": 2})), false);
    state.forget_recent();
    assert!(state.events(&collection, 1, 10).unwrap().is_none());
    let events = state.events(&collection, 2, 1).unwrap().unwrap();
    let previous = events[0].previous.as_ref().unwrap();
    assert_eq!(previous.value()["spec"], json!({}));
    assert!(state.events(&collection, 3, 10).unwrap().is_none());
}
