use serde_json::json;

use super::super::state::State;
use super::*;

#[test]
fn only_the_newest_events_keep_their_lines_and_older_ones_are_served_the_same() {
    let mut state = State::new(1000);
    let collection: Arc<str> = "/configmaps".into();
    let mut lines = Vec::new();
    for revision in 1..=40 {
        let value =
            json!({"kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"n": revision}});
        let object = Arc::new(Draft::new(&value).at(revision, "default/a".into()));
        state.publish(&collection, object, false);
        let event = state
            .events(&collection, revision - 1, 1)
            .unwrap()
            .unwrap()
            .remove(0);
        lines.push(event.frame());
    }
    let events = state.events(&collection, 0, 100).unwrap().unwrap();
    let shared: Vec<bool> = events
        .iter()
        .map(|event| event.frame.lock().is_some())
        .collect();
    assert_eq!(shared.iter().filter(|shared| **shared).count(), 16);
    assert!(shared[24..].iter().all(|shared| *shared));
    for (event, line) in events.iter().zip(lines) {
        assert_eq!(event.frame(), line);
    }
}
