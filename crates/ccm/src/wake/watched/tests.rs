use futures::stream;

use super::*;

fn node(name: &str, label: &str) -> Node {
    let mut node = Node::default();
    node.metadata.name = Some(name.to_owned());
    node.labels_mut().insert("a".to_owned(), label.to_owned());
    node
}

fn label(node: &Node) -> u64 {
    node.labels().get("a").map_or(0, |label| label.len() as u64)
}

async fn names(events: Vec<Event<Node>>) -> Vec<String> {
    let changed = changed(stream::iter(events.into_iter().map(Ok)), label);
    let changed = changed.map(|node| node.unwrap().metadata.name.unwrap_or_default());
    changed.collect().await
}

#[tokio::test]
async fn nodes_that_are_gone_are_changes_and_heartbeats_are_not() {
    let (a, b) = (node("a", "x"), node("b", "x"));
    let first = vec![
        Event::Init,
        Event::InitApply(a.clone()),
        Event::InitApply(b.clone()),
        Event::InitDone,
    ];
    assert_eq!(names(first.clone()).await, ["a", "b"]);
    let with = |more: Vec<Event<Node>>| [first.clone(), more].concat();
    assert_eq!(names(with(vec![Event::Apply(a.clone())])).await.len(), 2);
    assert_eq!(
        names(with(vec![Event::Apply(node("a", "xy"))])).await,
        ["a", "b", "a"]
    );
    assert_eq!(names(with(vec![Event::Delete(b)])).await, ["a", "b", "b"]);
    // The watch was interrupted, and b is not listed any more.
    let again = vec![Event::Init, Event::InitApply(a), Event::InitDone];
    assert_eq!(names(with(again)).await, ["a", "b", ""]);
}
