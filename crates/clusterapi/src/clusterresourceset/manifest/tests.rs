use super::*;

fn data(pairs: &[(&str, &str)]) -> Data {
    let pairs = pairs.iter();
    pairs
        .map(|(key, text)| ((*key).to_owned(), text.as_bytes().to_vec()))
        .collect()
}

fn object(kind: &str, name: &str) -> String {
    format!("apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n")
}

/// `Kind name` of each object, with its place.
fn found(data: &Data) -> Vec<(String, String)> {
    let manifests = read(data).unwrap().into_iter();
    let label = |manifest: Manifest| {
        let kind = manifest.object.types.unwrap().kind;
        let name = manifest.object.metadata.name.unwrap();
        (format!("{kind} {name}"), manifest.place)
    };
    manifests.map(label).collect()
}

#[test]
fn all_documents_of_all_keys_are_found() {
    let stream = format!(
        "# licence\n---\n{}\n--- # second\n{}---\n\n---\n{}",
        object("Pod", "a"),
        object("Pod", "b"),
        object("Pod", "c"),
    );
    let json = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "j"}}"#;
    let all = data(&[
        ("2.yaml", &stream),
        ("1.json", json),
        ("3.yaml", "# nothing\n"),
    ]);
    let expected = [
        ("Pod j", "key 1.json, document 1"),
        ("Pod a", "key 2.yaml, document 1"),
        ("Pod b", "key 2.yaml, document 2"),
        ("Pod c", "key 2.yaml, document 3"),
    ];
    let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(found(&all), expected);
}

#[test]
fn what_others_need_comes_first_and_the_rest_keeps_its_order() {
    let kinds = [
        "Deployment",
        "ConfigMap",
        "Role",
        "CustomResourceDefinition",
        "Namespace",
        "Pod",
    ];
    let text: Vec<_> = kinds.iter().map(|kind| object(kind, "x")).collect();
    let found = found(&data(&[("a", &text.join("---\n"))])).into_iter();
    let order: Vec<_> = found.map(|(label, _)| label).collect();
    let expected = [
        "Namespace",
        "CustomResourceDefinition",
        "ConfigMap",
        "Deployment",
        "Role",
        "Pod",
    ];
    assert_eq!(order, expected.map(|kind| format!("{kind} x")));
}

#[test]
fn lists_are_expanded() {
    let list = r#"{"apiVersion": "v1", "kind": "List", "items": [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}},
        {"apiVersion": "v1", "kind": "ConfigMapList", "items": [{"metadata": {"name": "b"}}]}]}"#;
    let expected = [
        ("ConfigMap b", "key l, document 1, item 2, item 1"),
        ("Pod a", "key l, document 1, item 1"),
    ];
    let expected = expected.map(|(a, b)| (a.to_owned(), b.to_owned()));
    assert_eq!(found(&data(&[("l", list)])), expected);
}

#[test]
fn every_problem_has_its_place() {
    let good = object("Pod", "a");
    let cases = [
        (
            format!("{good}---\nkind: Pod\n"),
            "key k, document 2: has no apiVersion and kind",
        ),
        (
            format!("{good}---\nplain text\n"),
            "key k, document 2: has no apiVersion and kind",
        ),
        (
            "apiVersion: v1\nkind: Pod\nmetadata: {}\n".to_owned(),
            "key k, document 1 (Pod): has no metadata.name",
        ),
        (format!("{good}---\na: [\n"), "key k, document 2: "),
        (String::new(), "has no manifests under data"),
    ];
    for (text, expected) in cases {
        let problems = read(&data(&[("k", &text)])).unwrap_err();
        assert!(
            problems.len() == 1 && problems[0].starts_with(expected),
            "{text}: {problems:?}"
        );
    }
    let bytes = Data::from([("k".to_owned(), vec![0xff])]);
    assert_eq!(read(&bytes).unwrap_err(), ["key k: is not text"]);
}

#[test]
fn problems_do_not_quote_the_data() {
    let problems = read(&data(&[("k", "password: hunter2\n  a: [\n")])).unwrap_err();
    assert!(!problems.concat().contains("hunter2"), "{problems:?}");
}

#[test]
fn the_hash_is_of_the_values_in_the_order_of_their_keys() {
    let known = "sha256:fb8e20fc2e4c3f248c60c39bd652f3c1347298bb977b8b4d5903b85055620603";
    assert_eq!(hash(&data(&[("b", "b"), ("a", "a")])), known);
    assert_ne!(hash(&data(&[("b", "a"), ("a", "b")])), known);
}
