use super::*;

const FINALIZER: &str = "299 - \"metadata.finalizers: \\\"cluster.cluster.x-k8s.io\\\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers\"";
const OTHER: &str = "299 - \"x is deprecated\"";

/// Printed warnings of two answers.
fn printed(hidden: Hidden) -> Vec<String> {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&lines);
    let warns = Warns::new(hidden, move |line| into.lock().push(line.to_owned()));
    let mut headers = HeaderMap::new();
    for header in [FINALIZER, OTHER, "199 - \"of a proxy\"", "299 - broken"] {
        headers.append(WARNING, HeaderValue::from_static(header));
    }
    warns.look(&headers);
    warns.clone().look(&headers);
    let lines = lines.lock();
    lines.clone()
}

#[test]
fn warnings_are_printed_once_but_for_the_set_that_is_hidden() {
    let other = "warning: x is deprecated".to_owned();
    let finalizer = "warning: metadata.finalizers: \"cluster.cluster.x-k8s.io\": prefer a domain-qualified finalizer name to avoid accidental conflicts with other finalizer writers".to_owned();
    assert_eq!(printed(Hidden::Default), std::slice::from_ref(&other));
    assert_eq!(printed(Hidden::None), [finalizer, other]);
    assert_eq!(printed(Hidden::All), Vec::<String>::new());
}

#[tokio::test]
async fn warnings_of_answers_reach_the_printer_and_the_answers_their_reader() {
    let service = tower::service_fn(|_: Request<Body>| async {
        let body = Body::from(b"{\"major\":\"1\",\"minor\":\"34\",\"gitVersion\":\"v1.34.2\",\"gitCommit\":\"\",\"gitTreeState\":\"\",\"buildDate\":\"\",\"goVersion\":\"\",\"compiler\":\"\",\"platform\":\"\"}".to_vec());
        let answer = http::Response::builder().header(WARNING, OTHER);
        Ok::<_, kube::Error>(answer.body(body).unwrap())
    });
    let client = Client::new(service, "default");
    let lines = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&lines);
    let warns = Warns::new(Hidden::Default, move |line: &str| {
        into.lock().push(line.to_owned());
    });
    let version = warns.of(&client).apiserver_version().await.unwrap();
    assert_eq!(version.git_version, "v1.34.2");
    assert_eq!(*lines.lock(), ["warning: x is deprecated"]);
}
