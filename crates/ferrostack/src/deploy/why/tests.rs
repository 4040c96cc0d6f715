use deployer::Reason;

use super::*;

fn cause(of: &str, waiting: &[&str]) -> Cause {
    Cause {
        reason: Reason::TaskFailed,
        of: of.to_owned(),
        problem: "fails".to_owned(),
        since: Some("2026-01-01T00:00:00Z".to_owned()),
        detail: Some("(1045) Access denied".to_owned()),
        advice: None,
        waiting: waiting.iter().map(|it| (*it).to_owned()).collect(),
    }
}

fn line(object: &str, cause: Cause) -> String {
    let why = Why {
        object: object.to_owned(),
        causes: vec![cause],
    };
    text(&why, "2026-01-01T00:00:40Z".parse().unwrap())
}

#[test]
fn the_words_of_a_container_are_on_the_line_of_their_cause() {
    let mut cause = cause("nova-api", &["nova-api"]);
    cause.detail = Some("x\u{1b}[2J\nALL READY".to_owned());
    assert_eq!(
        line("the cloud", cause),
        "nova-api fails since 40 s: x\\u{1b}[2J\\nALL READY\n"
    );
}

#[test]
fn a_cause_is_one_sentence() {
    let task = || cause("task nova-schema-3f2a", &["nova-schema", "nova-conductor"]);
    assert_eq!(
        line("nova-conductor", task()),
        "nova-conductor waits for task nova-schema-3f2a, which fails since 40 s: (1045) Access denied\n"
    );
    assert_eq!(
        line("nova-schema", task()),
        "task nova-schema-3f2a fails since 40 s: (1045) Access denied\n"
    );
    assert_eq!(
        line("the cloud", task()),
        "task nova-schema-3f2a fails since 40 s: (1045) Access denied\n    nova-schema and nova-conductor wait for it\n"
    );
    let many = ["a", "b", "c", "d", "e", "f", "g"];
    let mut other = cause("a", &many);
    other.detail = None;
    other.advice = Some("do this".to_owned());
    assert_eq!(
        line("the cloud", other.clone()),
        "a fails since 40 s (do this)\n    b, c and 4 more steps wait for it\n"
    );
    assert_eq!(line("a", other), "a fails since 40 s (do this)\n");
    let why = Why {
        object: "nova-api".to_owned(),
        causes: vec![],
    };
    assert_eq!(text(&why, Timestamp::now()), "nova-api is ready\n");
}
