use serde_json::{Value, json};

use super::super::tests::item;
use super::super::{Kind, Snapshot};
use super::*;

/// An object with an owner, and a label of its Cluster.
fn object(kind: Kind, name: &str, owner: &str, cluster: &str) -> Item {
    let owners = match owner {
        "" => Value::Null,
        uid => json!([{"apiVersion": "v1", "kind": "A", "name": uid, "uid": uid}]),
    };
    let labels = match cluster {
        "" => Value::Null,
        name => json!({CLUSTER_NAME: name}),
    };
    item(
        kind,
        json!({"metadata": {
            "name": name, "namespace": "default", "uid": name,
            "ownerReferences": owners, "labels": labels,
        }}),
    )
}

fn names<'a>(items: impl Iterator<Item = &'a Item>) -> Vec<&'a str> {
    items.map(Item::name).collect()
}

#[test]
fn what_belongs_to_a_cluster_is_found_by_label_and_by_owner_once_and_in_order() {
    let snapshot = Snapshot::from(vec![
        object(Kind::Cluster, "a", "", ""),
        object(Kind::Cluster, "b", "", ""),
        object(Kind::Machine, "by-label", "", "a"),
        object(Kind::Machine, "of-b", "b", "b"),
        object(Kind::Machine, "by-owner", "a", ""),
        object(Kind::Machine, "by-both", "a", "a"),
        object(Kind::MachineSet, "set", "a", "a"),
    ]);
    let found = names(snapshot.belonging(&snapshot.items[0], Kind::Machine));
    assert_eq!(found, ["by-label", "by-owner", "by-both"]);
    let found = names(snapshot.owned(&snapshot.items[1], Kind::Machine));
    assert_eq!(found, ["of-b"]);
}

#[test]
fn an_object_in_another_namespace_belongs_to_another_cluster() {
    let mut elsewhere = object(Kind::Machine, "m", "", "a");
    std::sync::Arc::make_mut(&mut elsewhere.object)
        .metadata
        .namespace = Some("other".to_owned());
    let snapshot = Snapshot::from(vec![object(Kind::Cluster, "a", "", ""), elsewhere]);
    let mut found = snapshot.belonging(&snapshot.items[0], Kind::Machine);
    assert!(found.next().is_none());
}

#[test]
fn objects_that_change_are_found_by_what_they_are_now() {
    let mut snapshot = Snapshot::from(vec![
        object(Kind::Cluster, "a", "", ""),
        object(Kind::Machine, "m", "", "a"),
    ]);
    let cluster = snapshot.items[0].clone();
    assert_eq!(names(snapshot.belonging(&cluster, Kind::Machine)), ["m"]);
    snapshot.items.push(object(Kind::Machine, "n", "", "a"));
    assert_eq!(
        names(snapshot.belonging(&cluster, Kind::Machine)),
        ["m", "n"]
    );
    snapshot.items.remove(1);
    assert_eq!(names(snapshot.belonging(&cluster, Kind::Machine)), ["n"]);
}
