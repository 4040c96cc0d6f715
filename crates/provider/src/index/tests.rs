use api::k8s_openapi::api::core::v1::ConfigMap;
use kube::ResourceExt;
use kube::runtime::reflector::store::Writer;
use kube::runtime::watcher::Event;
use serde_json::json;

use super::*;

fn object(name: &str, cluster: &str) -> ConfigMap {
    let labels = json!({"cluster": cluster});
    let metadata = json!({"name": name, "namespace": "ns", "labels": labels});
    serde_json::from_value(json!({"metadata": metadata})).unwrap()
}

fn key(cluster: &str) -> Key {
    Key::Cluster("ns".to_owned(), cluster.to_owned())
}

fn keys(object: &ConfigMap) -> BTreeSet<Key> {
    BTreeSet::from([key(&object.labels()["cluster"])])
}

#[test]
fn objects_are_found_by_their_present_keys_until_they_are_deleted() {
    let mut writer = Writer::<ConfigMap>::default();
    let index = Index::new(writer.as_reader(), keys);
    let names = |cluster: &str| -> Vec<String> {
        let found = index.find(&key(cluster));
        found.into_iter().map(|found| found.name).collect()
    };
    for object in [object("a", "one"), object("b", "one"), object("c", "two")] {
        writer.apply_watcher_event(&Event::Apply(object.clone()));
        index.enter(&object);
        index.enter(&object);
    }
    assert_eq!((names("one").len(), names("two").len()), (2, 1));
    let moved = object("a", "two");
    writer.apply_watcher_event(&Event::Apply(moved.clone()));
    index.enter(&moved);
    assert_eq!(names("one"), ["b"]);
    assert_eq!(names("two"), ["c", "a"]);
    writer.apply_watcher_event(&Event::Delete(object("c", "two")));
    assert_eq!(names("two"), ["a"]);
    assert_eq!(index.all().len(), 2);
}

#[test]
fn what_is_deleted_is_forgotten() {
    let mut writer = Writer::<ConfigMap>::default();
    let index = Index::new(writer.as_reader(), keys);
    for number in 0..100 {
        let object = object(&format!("o{number}"), "one");
        writer.apply_watcher_event(&Event::Apply(object.clone()));
        index.enter(&object);
        writer.apply_watcher_event(&Event::Delete(object));
    }
    let entries = index.entries.lock();
    assert!(entries.keys.len() < 20, "{}", entries.keys.len());
    assert!(entries.objects.values().map(Vec::len).sum::<usize>() < 20);
}
