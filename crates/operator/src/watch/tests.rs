use api::core::v1beta2::Machine;
use serde_json::{Value, json};

use super::*;

fn machine(seconds: i64) -> Decoded<Machine> {
    let reference =
        json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "K", "name": "n"});
    let object: Value = json!({
        "apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Machine",
        "metadata": {"name": "m", "namespace": "default"},
        "spec": {"clusterName": "demo", "bootstrap": {"dataSecretName": "s"}, "infrastructureRef": reference,
            "deletion": {"nodeDrainTimeoutSeconds": seconds}},
    });
    Decoded::from_raw(&serde_json::from_value(object).unwrap()).unwrap()
}

fn good() -> Decoded<Machine> {
    machine(60)
}

fn bad() -> Decoded<Machine> {
    machine(99_999_999_999)
}

/// Filter, and the store that receives its events.
struct Watch {
    filter: Filter<Machine>,
    writer: Writer<Machine>,
    metrics: Metrics,
}

impl Watch {
    fn new() -> Self {
        let (writer, metrics) = (Writer::default(), Metrics::default());
        let filter = Filter {
            kind: (),
            store: writer.as_reader(),
            skipped: Skipped::default(),
            reports: Reports {
                watch: "test",
                metrics: metrics.clone(),
                recorder: None,
            },
        };
        Self {
            filter,
            writer,
            metrics,
        }
    }

    /// Filters an event, and returns it if it passes.
    fn see(&mut self, event: Event<Decoded<Machine>>) -> Option<Event<Machine>> {
        let passed = self.filter.pass(event);
        if let Some(event) = &passed {
            self.writer.apply_watcher_event(event);
        }
        passed
    }

    /// The number of stored objects, and that of skipped ones according to the metric.
    fn counts(&self) -> (usize, usize) {
        let text = self.metrics.text();
        let label = "ferrostack_undecodable_objects{watch=\"test\",kind=\"Machine\"} ";
        let line = text.lines().find_map(|line| line.strip_prefix(label));
        let skipped = line.map_or(0, |count| count.parse().unwrap());
        let check = self.filter.skipped.check::<Machine>(|_| true);
        assert_eq!(check.is_err(), skipped > 0);
        (self.filter.store.state().len(), skipped)
    }
}

#[test]
fn an_undecodable_object_is_skipped_until_it_can_be_decoded() {
    let mut watch = Watch::new();
    watch.see(Event::Init);
    assert!(watch.see(Event::InitApply(bad())).is_none());
    watch.see(Event::InitDone);
    assert_eq!(watch.counts(), (0, 1));
    assert!(watch.see(Event::Apply(good())).is_some());
    assert_eq!(watch.counts(), (1, 0));
}

#[test]
fn an_object_that_becomes_undecodable_is_removed_from_the_store() {
    let mut watch = Watch::new();
    watch.see(Event::Apply(good()));
    assert!(matches!(
        watch.see(Event::Apply(bad())),
        Some(Event::Delete(_))
    ));
    assert_eq!(watch.counts(), (0, 1));
    assert!(watch.see(Event::Delete(bad())).is_none());
    assert_eq!(watch.counts(), (0, 0));
}

#[test]
fn a_skipped_object_that_a_new_list_lacks_is_forgotten() {
    let mut watch = Watch::new();
    watch.see(Event::Apply(bad()));
    watch.see(Event::Init);
    watch.see(Event::InitDone);
    assert_eq!(watch.counts(), (0, 0));
}

#[test]
fn the_error_names_object_and_field() {
    let mut watch = Watch::new();
    watch.see(Event::Apply(bad()));
    let error = watch.filter.skipped.check::<Machine>(|_| true).unwrap_err();
    let expected = "Machine default/m cannot be decoded (spec.deletion.nodeDrainTimeoutSeconds: \
                    invalid value: integer `99999999999`, expected i32); \
                    nothing is done until this field is corrected";
    assert_eq!(error.to_string(), expected);
}
