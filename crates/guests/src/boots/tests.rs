use super::*;

fn action(action: &str, start_time: &str) -> InstanceAction {
    InstanceAction {
        action: action.to_owned(),
        start_time: start_time.to_owned(),
    }
}

#[test]
fn the_number_grows_with_each_action_that_starts_a_server() {
    let mut actions = vec![action("create", "2026-01-02T03:04:05.000000")];
    let created = number(&actions, &STARTS);
    assert_eq!(created, 1_767_323_045_000_000);
    actions.insert(0, action("stop", "2026-01-02T03:05:00.000000"));
    actions.insert(0, action("lock", "2026-01-02T03:05:01.000000"));
    assert_eq!(number(&actions, &STARTS), created);
    actions.insert(0, action("start", "2026-01-02T03:05:02.250000"));
    let started = number(&actions, &STARTS);
    assert!(started > created);
    // In whatever order.
    actions.push(action("reboot", "2026-01-02T03:06:00.000000"));
    assert!(number(&actions, &STARTS) > started);
    assert_eq!(number(&actions, &[REBUILD]), 0);
    actions.push(action("rebuild", "2026-01-02T03:07:00.000000"));
    assert_eq!(number(&actions, &[REBUILD]), number(&actions, &STARTS));
    assert_eq!(number(&[action("create", "soon")], &STARTS), 0);
}

fn server(updated: &str) -> HostedServer {
    let mut hosted = HostedServer::default();
    hosted.server.id = "a".to_owned();
    hosted.server.updated = updated.to_owned();
    hosted
}

#[test]
fn actions_are_read_again_after_a_change_and_until_its_second_is_over() {
    let now = Instant::now();
    let mut boots = Boots::default();
    assert_eq!(boots.stale_since(&server("1"), now), Some(now));
    let mut known = BootRecord {
        starts: Starts { boot: 1, disk: 0 },
        updated: "1".to_owned(),
        since: now,
        settled: false,
    };
    boots.known.insert("a".to_owned(), known.clone());
    let later = now + Duration::from_secs(2);
    assert_eq!(boots.stale_since(&server("1"), later), Some(now));
    known.settled = true;
    boots.known.insert("a".to_owned(), known);
    assert_eq!(boots.stale_since(&server("1"), later), None);
    assert_eq!(boots.stale_since(&server("2"), later), Some(later));
}
