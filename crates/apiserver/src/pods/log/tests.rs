use http_body_util::BodyExt as _;

use super::*;

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(seconds).unwrap()
}

fn line(seconds: i64) -> Line {
    Line {
        at: at(seconds),
        text: format!("line {seconds}"),
    }
}

/// The output at second 100 for a log with lines at the seconds 97, 98 and 99, and later lines at 101 and 102.
async fn output(options: Options) -> String {
    let log = Log {
        lines: [97, 98, 99].map(line).to_vec(),
        more: Some(stream::iter([101, 102].map(line)).boxed()),
    };
    let body = body_of(log, &options, at(100)).collect().await.unwrap();
    String::from_utf8(body.to_bytes().to_vec()).unwrap()
}

fn query(text: &str) -> Result<Options, ApiError> {
    Options::from_query(&Query::parse(Some(text)))
}

fn refusals(text: &str) -> Vec<String> {
    let options = query(text).unwrap();
    options.problems().iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn options_select_lines_as_in_a_kubelet() {
    for (asked, expected) in [
        ("", "line 97\nline 98\nline 99\n"),
        ("tailLines=2", "line 98\nline 99\n"),
        ("tailLines=0", ""),
        ("tailLines=99", "line 97\nline 98\nline 99\n"),
        ("sinceSeconds=1", "line 99\n"),
        ("sinceTime=1970-01-01T00:01:38Z", "line 98\nline 99\n"),
        ("sinceTime=", "line 97\nline 98\nline 99\n"),
        // `tailLines` is applied before `sinceSeconds`.
        ("tailLines=2&sinceSeconds=1", "line 99\n"),
        ("limitBytes=10", "line 97\nli"),
        (
            "timestamps=true&tailLines=1",
            "1970-01-01T00:01:39.000000000Z line 99\n",
        ),
        ("follow=false&tailLines=1", "line 99\n"),
        ("follow=true&tailLines=1", "line 99\nline 101\nline 102\n"),
        ("follow=true&tailLines=0", "line 101\nline 102\n"),
        (
            "follow=true&limitBytes=30&tailLines=1",
            "line 99\nline 101\nline 102\n",
        ),
        ("follow=true&limitBytes=12&tailLines=1", "line 99\nline"),
        ("follow=true&sinceTime=1970-01-01T00:01:42Z", "line 102\n"),
    ] {
        assert_eq!(output(query(asked).unwrap()).await, expected, "{asked}");
    }
}

#[test]
fn invalid_options_are_rejected_with_the_messages_of_kube_apiserver() {
    assert_eq!(
        refusals("tailLines=-1&limitBytes=0&sinceSeconds=0"),
        [
            "tailLines: Invalid value: -1: must be greater than or equal to 0",
            "limitBytes: Invalid value: 0: must be greater than 0",
            "sinceSeconds: Invalid value: 0: must be greater than 0",
        ]
    );
    assert_eq!(
        refusals("sinceSeconds=0&sinceTime=2026-01-01T00:00:00Z&stream=All"),
        [
            "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
            "stream: Forbidden: may not be specified",
        ]
    );
    for (asked, words) in [
        (
            "tailLines=x",
            "strconv.ParseInt: parsing \"x\": invalid syntax",
        ),
        (
            "limitBytes=",
            "strconv.ParseInt: parsing \"\": invalid syntax",
        ),
        (
            "sinceSeconds=99999999999999999999",
            "strconv.ParseInt: parsing \"99999999999999999999\": value out of range",
        ),
        (
            "sinceTime=now",
            "parsing time \"now\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"now\" as \"2006\"",
        ),
    ] {
        let error = query(asked).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (400, words),
            "{asked}"
        );
    }
}

#[test]
fn the_query_of_the_kubelet_has_the_same_options() {
    let asked = "timestamps=true&tailLines=3&follow=1&sinceTime=2026-01-02T03:04:05%2B01:00";
    assert_eq!(
        query(asked).unwrap().query(),
        "?follow=true&sinceTime=2026-01-02T02%3A04%3A05Z&tailLines=3&timestamps=true"
    );
    assert_eq!(query("").unwrap().query(), "");
}

#[test]
fn the_status_of_a_container_determines_whether_there_is_a_log() {
    let status = |state: Value, last: Value| serde_json::json!({"containerStatuses": [{"name": "c", "state": state, "lastState": last}]});
    let none = || serde_json::json!({});
    let ended = |id: &str| serde_json::json!({"terminated": {"containerID": id}});
    let waiting = |why: &str| serde_json::json!({"waiting": {"reason": why}});
    let running = || serde_json::json!({"running": {}});
    let log = |status: &Value, previous| has_log("p", status, "c", previous);

    assert_eq!(log(&status(running(), none()), false), Ok(()));
    assert_eq!(log(&status(ended("x"), none()), false), Ok(()));
    assert_eq!(
        log(&status(waiting("CrashLoopBackOff"), ended("x")), false),
        Ok(())
    );
    assert_eq!(log(&status(running(), ended("x")), true), Ok(()));
    for (status, previous, words) in [
        (
            none(),
            false,
            "container \"c\" in pod \"p\" is not available",
        ),
        (
            status(running(), none()),
            true,
            "previous terminated container \"c\" in pod \"p\" not found",
        ),
        (
            status(ended(""), none()),
            false,
            "container \"c\" in pod \"p\" is terminated",
        ),
        (
            status(waiting("ContainerCreating"), none()),
            false,
            "container \"c\" in pod \"p\" is waiting to start: ContainerCreating",
        ),
        (
            status(waiting("ErrImagePull"), none()),
            false,
            "container \"c\" in pod \"p\" is waiting to start: image can't be pulled",
        ),
        (
            status(waiting("ImagePullBackOff"), none()),
            false,
            "container \"c\" in pod \"p\" is waiting to start: trying and failing to pull image",
        ),
        (
            status(none(), none()),
            false,
            "container \"c\" in pod \"p\" is waiting to start - no logs yet",
        ),
    ] {
        assert_eq!(log(&status, previous), Err(words.to_owned()));
    }
}
