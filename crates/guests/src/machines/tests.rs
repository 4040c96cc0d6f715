use openstack::compute::Server;

use super::*;

fn seen(status: &str, task: Option<&str>, boot: u64) -> Observation {
    let server = Server {
        id: "s1".to_owned(),
        name: "node".to_owned(),
        status: status.to_owned(),
        task_state: task.map(str::to_owned),
        ..Server::default()
    };
    Observation {
        servers: vec![HostedServer {
            server,
            ..HostedServer::default()
        }],
        boots: [("s1".to_owned(), boots::Starts { boot, disk: 0 })].into(),
        ..Observation::default()
    }
}

#[test]
fn a_report_is_written_until_the_cloud_shows_it() {
    let report = Report {
        boot: 1,
        outcome: Outcome::Ended,
    };
    for (seen, expected) in [
        (seen("ACTIVE", None, 1), Due::Now),
        // Our own request, or another one.
        (seen("ACTIVE", Some("powering-off"), 1), Due::Later),
        (seen("SHUTOFF", None, 1), Due::Never),
        (seen("ERROR", None, 1), Due::Never),
        // It was rebooted since: another machine.
        (seen("ACTIVE", None, 2), Due::Never),
        (Observation::default(), Due::Never),
    ] {
        assert_eq!(due(&report, "s1", &seen), expected, "{seen:?}");
    }
}

#[test]
fn what_machines_report_is_a_line_for_users() {
    let machines = Machines::default();
    machines.observe(&seen("ACTIVE", None, 1));
    machines.ended("s1", 1);
    machines.failed("s1", 1, "no memory");
    machines.answering(&[Member {
        load_balancer_id: "lb".to_owned(),
        address: ([10, 6, 0, 9], 6443).into(),
        answers: false,
    }]);
    assert_eq!(
        machines.lines(),
        [
            "node: its machine ended, its server is being stopped",
            "node: cannot be started, its server becomes ERROR: no memory",
            "member 10.6.0.9:6443 of load balancer lb does not answer",
        ]
    );
    assert!(machines.lines().is_empty());
    assert_eq!(machines.state.lock().reports.len(), 1);
    machines.observe(&seen("ERROR", None, 1));
    assert!(machines.state.lock().reports.is_empty());
    assert!(
        machines.machine("s1").is_some(),
        "a server in ERROR keeps its disk"
    );
}
