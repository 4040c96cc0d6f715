use serde_json::json;

use super::*;

fn node(instance: &str, ready: &str) -> Value {
    json!({"status": {
        "nodeInfo": {"systemUUID": instance},
        "conditions": [{"type": "Ready", "status": ready}],
        "addresses": [{"type": "InternalIP", "address": "10.6.0.10"}],
    }})
}

fn pod() -> Value {
    json!({"metadata": {"name": "p", "uid": "u"}, "spec": {"hostNetwork": true}})
}

fn texts(lines: &[Line]) -> Vec<&str> {
    lines.iter().map(|line| line.text.as_str()).collect()
}

#[tokio::test]
async fn the_log_of_a_pod_is_the_console_of_its_machine_since_it_was_switched_on() {
    let consoles = Consoles::default();
    let kubelets = Kubelets::new(consoles.clone());
    let console = consoles.of("i");
    console.line("from an earlier run");
    console.power_on();
    console.cloud_init("[kubelet-start] Starting the kubelet");
    let (node, pod) = (node("i", "True"), pod());
    let log = kubelets.log(&node, &pod, "c", true).await.unwrap();
    assert_eq!(
        texts(&log.lines),
        [
            "kernel: Linux version 6.8.0-simulated (ferrostack)",
            "cloud-init[731]: [kubelet-start] Starting the kubelet",
        ]
    );
    assert!(log.lines.is_sorted_by_key(|line| line.at));

    // New lines are followed until the machine is deleted.
    let more = log.more.unwrap();
    console.line("one");
    let lines = tokio::spawn(more.map(|line| line.text).collect::<Vec<_>>());
    tokio::task::yield_now().await;
    console.line("two\nthree");
    tokio::task::yield_now().await;
    consoles.forget("i");
    consoles.of("another").line("wakes all who wait");
    assert_eq!(lines.await.unwrap(), ["one", "two", "three"]);
    let problem = kubelets.log(&node, &pod, "c", false).await.err();
    assert_eq!(
        problem.unwrap(),
        "container \"c\" in pod \"p\" is not available"
    );
}

#[test]
fn lines_keep_their_times_and_numbers_when_the_oldest_are_dropped() {
    let consoles = Consoles::default();
    let console = consoles.of("i");
    for n in 0..5000 {
        console.line(&format!("line {n}"));
    }
    let (lines, next) = consoles.lines("i", 0).unwrap();
    assert_eq!(next, 5000);
    assert!(lines.len() < 5000);
    assert_eq!(lines.last().unwrap().text, "line 4999");
    let first = 5000 - lines.len();
    assert_eq!(lines[0].text, format!("line {first}"));
    let (lines, _) = consoles.lines("i", 4998).unwrap();
    assert_eq!(lines[0].text, "line 4998");
}

#[test]
fn a_restored_console_tells_its_times_from_when_the_machine_was_switched_on() {
    let consoles = Consoles::default();
    let on = "2026-01-02T03:04:05Z".parse().unwrap();
    consoles.restore("i", "[    1.500000] a\n[   10.000000] b\n", Some(on));
    let (lines, next) = consoles.lines("i", 0).unwrap();
    let times: Vec<String> = lines.iter().map(|line| line.at.to_string()).collect();
    assert_eq!(times, ["2026-01-02T03:04:06.5Z", "2026-01-02T03:04:15Z"]);
    assert_eq!((lines[0].text.as_str(), next), ("a", 2));
}

#[tokio::test]
async fn a_port_without_an_api_server_refuses_and_a_silent_node_is_not_reached() {
    let kubelets = Kubelets::new(Consoles::default());
    assert!(kubelets.is_reachable(&node("i", "True")));
    assert!(!kubelets.is_reachable(&node("i", "Unknown")));
    let mut nameless = node("i", "True");
    nameless["status"]["addresses"] = json!([{"type": "Hostname", "address": "n-0"}]);
    assert!(!kubelets.is_reachable(&nameless));
    let refused = kubelets.connect(&node("i", "True"), &pod(), 80).await.err();
    let words = "failed to connect to localhost:80 inside namespace \"host\", IPv4: dial tcp4 127.0.0.1:80: connect: connection refused";
    assert!(refused.unwrap().contains(words));
}
