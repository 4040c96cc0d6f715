use std::time::Duration;

use serde_json::json;

use super::{Target, split};

#[test]
fn urls_name_the_timeout() {
    let service = json!({"service": {"namespace": "n", "name": "s", "path": "/x", "port": 8443}});
    for (config, url) in [
        (
            json!({"url": "https://127.0.0.1:1/a"}),
            "https://127.0.0.1:1/a?timeout=3s",
        ),
        (json!({"url": "https://host"}), "https://host/?timeout=3s"),
        (service, "https://s.n.svc:8443/x?timeout=3s"),
        (
            json!({"service": {"namespace": "n", "name": "s"}}),
            "https://s.n.svc:443/?timeout=3s",
        ),
    ] {
        let target = Target::read(&config).unwrap();
        assert_eq!(target.url(Duration::from_secs(3)), url);
    }
    assert_eq!(Target::read(&json!({})), None);
    assert_eq!(Target::read(&json!({"url": "http://host"})), None);
}

#[test]
fn hosts_are_split_from_ports() {
    for (authority, host, port) in [
        ("h", "h", 443),
        ("h:1", "h", 1),
        ("[::1]:2", "::1", 2),
        ("[::1]", "::1", 443),
    ] {
        assert_eq!(split(authority), Ok((host.to_owned(), port)));
    }
    assert!(split("h:x").is_err());
}
