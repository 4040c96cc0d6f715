use serde_json::json;

use super::*;

fn machine() -> OpenStackMachine {
    let spec = json!({"flavor": {"filter": {"name": "f"}}, "image": {"filter": {"name": "i"}}});
    OpenStackMachine::new("m", serde_json::from_value(spec).unwrap())
}

fn asked(secret: &str) -> OpenStackMachine {
    let mut object = machine();
    let request = (UPDATE_IN_PROGRESS_ANNOTATION.to_owned(), secret.to_owned());
    object.annotations_mut().extend([request]);
    object
}

fn server(status: &str, task: Option<&str>, secret: Option<&str>) -> Server {
    let generation = secret.map(|it| (BOOTSTRAP.to_owned(), it.to_owned()));
    Server {
        status: status.to_owned(),
        task_state: task.map(str::to_owned),
        metadata: generation.into_iter().collect(),
        ..Server::default()
    }
}

#[test]
fn the_metadata_of_the_server_say_whether_a_rebuild_is_due() {
    let rows = [
        ("ACTIVE", None, None, Progress::Due),
        ("SHUTOFF", None, None, Progress::Due),
        ("ERROR", None, Some("s1"), Progress::Due),
        ("ACTIVE", Some("rebooting"), None, Progress::UnderWay),
        (
            "REBUILD",
            Some("rebuilding"),
            Some("s2"),
            Progress::UnderWay,
        ),
        ("PAUSED", None, None, Progress::UnderWay),
        ("ACTIVE", Some(""), Some("s2"), Progress::Done),
        ("ERROR", None, Some("s2"), Progress::Failed),
        ("ACTIVE", Some("deleting"), None, Progress::NotAsked),
    ];
    for (status, task, secret, expected) in rows {
        let server = server(status, task, secret);
        assert_eq!(
            progress(&asked("s2"), "s2", &server),
            expected,
            "{server:?}"
        );
    }
}

#[test]
fn nothing_is_rebuilt_without_a_request_or_for_other_bootstrap_data() {
    let idle = server("ACTIVE", None, None);
    let plain = machine();
    assert_eq!(progress(&plain, "s2", &idle), Progress::NotAsked);
    assert_eq!(progress(&asked("s1"), "s2", &idle), Progress::NotAsked);
}
