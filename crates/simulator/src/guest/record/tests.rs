use super::*;

fn record(console: &str) -> Record {
    let node = Membership {
        cluster: "c1".to_owned(),
        name: "n".to_owned(),
        version: "v1.34.1".to_owned(),
        bind_port: Some(6443),
    };
    Record {
        node: Some(node),
        disk: 2,
        console: console.to_owned(),
        on: Some("2026-01-02T03:04:05Z".parse().unwrap()),
    }
}

#[test]
fn records_are_read_back_and_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let state = StateDir::new(Some(directory.path().join("guests")));
    assert!(state.records().is_empty());
    state.write("a-1", &record("x")).unwrap();
    state.write("a-1", &record("y")).unwrap();
    state
        .write(
            "b-2",
            &Record {
                node: None,
                disk: 0,
                console: String::new(),
                on: None,
            },
        )
        .unwrap();
    std::fs::write(directory.path().join("guests/instances/c.json"), "{").unwrap();
    let records = state.records();
    assert_eq!(records.len(), 2);
    assert_eq!(records["a-1"], record("y"));
    state.remove("a-1");
    assert_eq!(state.records().len(), 1);
}

#[test]
fn a_name_cannot_leave_the_directory() {
    let directory = tempfile::tempdir().unwrap();
    let state = StateDir::new(Some(directory.path().join("guests")));
    state.write("../../evil", &record("")).unwrap();
    state.remove_cluster("..");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn clusters_have_a_private_directory_each() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let state = StateDir::new(Some(directory.path().to_owned()));
    let database = state.database("c1").unwrap().unwrap();
    let mode = database
        .parent()
        .unwrap()
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    assert_eq!(state.cluster_keys(), ["c1"]);
    state.remove_cluster("c1");
    assert!(state.cluster_keys().is_empty());
    assert_eq!(StateDir::default().database("c1").unwrap(), None);
}
