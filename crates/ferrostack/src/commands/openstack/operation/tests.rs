use super::*;

fn status(value: Value) -> OpenStackOperationStatus {
    serde_json::from_value(value).unwrap()
}

#[test]
fn an_operation_is_a_line_with_its_steps_and_what_is_missing() {
    let of = |value: Value| line("first", &status(value));
    assert!(of(json!({})).contains("no controller has looked at it"));
    let waits = json!({"phase": "Pending", "message": "spec.backup is not set"});
    assert_eq!(of(waits), "first: Pending: spec.backup is not set");
    let runs = json!({"phase": "Running", "message": "restore-load: Job x runs",
        "steps": [{"name": "Check", "seconds": 2}, {"name": "Load"}]});
    assert_eq!(
        of(runs),
        "first: Running: Load (Check 2 s): restore-load: Job x runs"
    );
    let done = json!({"phase": "Succeeded", "backup": "first", "digest": "0ad0", "size": 42,
        "steps": [{"name": "Backup", "seconds": 9}]});
    assert_eq!(
        of(done),
        "first: done (Backup 9 s): backup first, 42 bytes, SHA-256 0ad0"
    );
    let done = json!({"phase": "Succeeded", "steps": [{"name": "Make", "seconds": 9}]});
    assert_eq!(of(done), "first: done (Make 9 s)");
    // Nothing is said by a Pod that is gone.
    let done = json!({"phase": "Succeeded", "backup": "first"});
    assert_eq!(of(done), "first: done: backup first");
}

#[test]
fn an_operation_is_named_by_its_cloud_and_the_time() {
    let cloud = CloudArgs {
        name: "cloud".to_owned(),
        namespace: "openstack".to_owned(),
        place: crate::cli::PlaceArgs::default(),
    };
    let mut asked = Asked {
        cloud: &cloud,
        what: What::Backup(None),
        timeout: PAUSE,
        output: Output::Text,
    };
    let now: Timestamp = "2026-11-29T02:00:00Z".parse().unwrap();
    let object = asked.object(now);
    assert_eq!(object.name_any(), "cloud-20261129-020000");
    assert!(object.spec.backup.is_some() && object.spec.restore.is_none());
    asked.what = What::Restore("cloud-20261129-020000");
    let object = asked.object(now);
    assert_eq!(object.name_any(), "cloud-restore-20261129-020000");
    assert_eq!(object.spec.restore.unwrap().from, "cloud-20261129-020000");
    assert!(object.spec.backup.is_none());
    let only = ["database-nova".to_owned()];
    asked.what = What::Rotate(&only);
    let object = asked.object(now);
    assert_eq!(object.name_any(), "cloud-rotate-20261129-020000");
    assert_eq!(object.spec.rotate.unwrap().only, only);
    assert!(object.spec.backup.is_none() && object.spec.restore.is_none());
}
