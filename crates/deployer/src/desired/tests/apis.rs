//! Processes and threads of the APIs.

use super::*;

#[test]
fn apis_answer_as_many_requests_at_a_time_as_the_parameters_say() {
    let api = |processes, threads| json!({"api": {"processes": processes, "threads": threads}});
    let document = json!({"release": "2026.1", "services": {
        "nova": {"resources": {"limits": {"cpu": "3", "memory": "2Gi"}}},
        "glance": api(5, 2), "neutron": {"api": {"processes": 6}}, "horizon": api(1, 8)}});
    let graph = desired(&cloud(&document), &held());
    let command = |name: &str| {
        let all = pods(&graph);
        let (_, pod) = all.iter().find(|(it, _)| it == name).unwrap();
        let words = items(pod, "/spec/containers/0/command").map(|it| it.as_str().unwrap());
        words.collect::<Vec<_>>().join(" ")
    };
    for (name, processes, threads) in [
        ("keystone-api", 2, 4),
        ("glance-api", 5, 2),
        ("placement-api", 2, 4),
        ("nova-api", 3, 4),
        ("nova-metadata", 3, 4),
        ("neutron-api", 6, 1),
        ("horizon", 1, 8),
    ] {
        let command = command(name);
        let wanted = format!("--processes {processes} --threads {threads} ");
        assert!(command.contains(&wanted), "{name}: {command}");
        // What hangs ends before the edge gives up, but for images, which take as long as they take.
        let ends = command.contains(" --harakiri 540 ");
        assert_eq!(ends, name != "glance-api", "{name}: {command}");
    }
    let files: Vec<String> = graph
        .objects()
        .map(|(_, it)| it.public()["data"].to_string())
        .collect();
    let is_in_a_file = |line: &str| files.iter().any(|it| it.contains(&format!("\\n{line}\\n")));
    // `neutron-status upgrade check` compares it.
    assert!(is_in_a_file("api_workers = 6"));
    assert!(is_in_a_file("max-connections = 4096"));
}

#[test]
fn releases_without_threads_have_processes_of_their_own_number() {
    let document = json!({"release": "2025.1", "services": {"glance": {"api": {"processes": 7}}}});
    let graph = desired(&cloud(&document), &held());
    let mut files = graph
        .objects()
        .map(|(_, it)| it.public()["data"].to_string());
    assert!(files.any(|it| it.contains("\\nworkers = 7\\n")));
}
