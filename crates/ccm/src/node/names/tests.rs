use openstack::inventory::Table;

use super::*;

fn server(id: &str, name: &str, hostname: &str) -> Server {
    Server {
        id: id.to_owned(),
        name: name.to_owned(),
        hostname: hostname.to_owned(),
        ..Server::default()
    }
}

fn found(node: &str, servers: &[Server], hosts: &[(&str, &str)]) -> Vec<String> {
    let view = View {
        servers: Arc::new(Table::from_items(servers.to_vec())),
        ..View::default()
    };
    let hosts = hosts
        .iter()
        .map(|(id, name)| ((*id).to_owned(), (*name).to_owned()));
    let servers = super::servers(node, &view, &hosts.collect());
    servers.iter().map(|server| server.id.clone()).collect()
}

#[test]
fn a_node_has_the_host_name_that_nova_makes_of_the_servers_name() {
    for (node, name) in [
        ("worker-1", "worker-1"),
        ("worker-1", "Worker-1"),
        ("worker-1", "worker_1"),
        ("web-worker-1", "Web Worker 1"),
        ("worker-1-example-com", "worker-1.example.com"),
        ("worker-1.example.com", "Worker-1.example.com"),
        ("worker-1.novalocal", "Worker-1"),
        ("worker-1", "worker-1.example.com"),
        ("caf-1", "-Café 1"),
    ] {
        assert!(fit(node, name, "").is_some(), "{node} {name}");
        assert!(beginnings(name).contains(&beginning(node)), "{node} {name}");
    }
    for (node, name) in [
        ("worker-1", "worker-10"),
        ("worker-1.a.example", "worker-1.b.example"),
        ("worker", "worker-1"),
        ("worker-1", ""),
    ] {
        assert_eq!(fit(node, name, ""), None, "{node} {name}");
    }
}

#[test]
fn the_best_fit_counts_and_several_of_it_are_all_named() {
    let servers = [
        server("a", "worker-1.example.com", ""),
        server("b", "Worker-1", ""),
        server("c", "worker-1", ""),
    ];
    assert_eq!(found("worker-1", &servers, &[]), ["c"]);
    assert_eq!(found("worker-1", &servers[..2], &[]), ["b"]);
    assert_eq!(found("worker-1", &servers[..1], &[]), ["a"]);
    let twins = [server("a", "N-1", ""), server("b", "n_1", "")];
    assert_eq!(found("n-1", &twins, &[]), ["a", "b"]);
    assert!(found("n-2", &twins, &[]).is_empty());
}

#[test]
fn a_host_name_that_was_chosen_is_found_in_the_list_or_beside_it() {
    let servers = [server("a", "Database", "db-1"), server("b", "Other", "")];
    assert_eq!(found("db-1", &servers, &[]), ["a"]);
    assert!(found("db-2", &servers, &[]).is_empty());
    assert_eq!(found("db-2", &servers, &[("b", "db-2")]), ["b"]);
}
