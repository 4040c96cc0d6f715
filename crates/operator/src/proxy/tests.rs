use super::*;

fn proxies(variables: &[(&str, &str)]) -> Proxies {
    let find = |name: &str| variables.iter().find(|(known, _)| *known == name);
    Proxies::from_variables(|name| find(name).map(|(_, value)| *value))
}

fn through(proxies: &Proxies, target: &str) -> Option<String> {
    proxies
        .to(&target.parse().unwrap())
        .map(ToString::to_string)
}

#[test]
fn a_proxy_of_the_environment_is_used_for_its_scheme_and_loopback_never_has_one() {
    let set = proxies(&[("HTTPS_PROXY", "http://p:1"), ("http_proxy", "q:2")]);
    assert_eq!(
        through(&set, "https://10.0.0.1:6443").unwrap(),
        "http://p:1/"
    );
    assert_eq!(
        through(&set, "http://cloud.example").unwrap(),
        "http://q:2/"
    );
    for own in [
        "https://127.0.0.1:6443",
        "https://127.9.9.9",
        "https://localhost:1",
        "https://LOCALHOST",
        "https://[::1]:6443",
        "https://[::ffff:127.0.0.1]:6443",
    ] {
        assert_eq!(through(&set, own), None, "{own}");
    }
}

#[test]
fn upper_case_comes_before_lower_case_and_an_empty_value_is_none() {
    let both = proxies(&[
        ("HTTPS_PROXY", "http://upper:1"),
        ("https_proxy", "http://lower:1"),
    ]);
    assert_eq!(through(&both, "https://a").unwrap(), "http://upper:1/");
    let lower = proxies(&[("HTTPS_PROXY", ""), ("https_proxy", "http://lower:1")]);
    assert_eq!(through(&lower, "https://a").unwrap(), "http://lower:1/");
    assert_eq!(through(&proxies(&[("HTTPS_PROXY", "")]), "https://a"), None);
    // `HTTP_PROXY` may be a header of a request.
    let asked = [("REQUEST_METHOD", "GET"), ("HTTP_PROXY", "p:1")];
    assert_eq!(through(&proxies(&asked), "http://a"), None);
}

#[test]
fn no_proxy_names_addresses_networks_and_names_as_with_go_programs() {
    // Entry, hosts without a proxy, hosts with a proxy.
    let table: [(&str, &[&str], &[&str]); 11] = [
        (
            "10.0.0.0/8",
            &["10.1.2.3:6443", "[::ffff:10.1.2.3]"],
            &["11.0.0.1", "ten.example"],
        ),
        ("10.1.2.3", &["10.1.2.3", "10.1.2.3:8443"], &["10.1.2.4"]),
        (
            "10.1.2.3:6443",
            &["10.1.2.3:6443"],
            &["10.1.2.3", "10.1.2.3:8443"],
        ),
        ("fd00::/8", &["[fd12::1]:6443"], &["[fe80::1]", "10.0.0.1"]),
        ("::2", &["[::2]:1"], &["[::3]:1"]),
        ("[fd00::1]:443", &["[fd00::1]"], &["[fd00::1]:6443"]),
        (
            "example.com",
            &["example.com", "a.b.example.com:6443"],
            &["anexample.com"],
        ),
        (".example.com", &["a.example.com"], &["example.com"]),
        ("*.Example.com", &["a.example.COM"], &["example.com"]),
        (
            "example.com:6443",
            &["a.example.com:6443"],
            &["example.com"],
        ),
        (" , 0.0.0.0/0 ", &["1.2.3.4"], &["[fd00::1]", "a.example"]),
    ];
    for (entry, direct, not) in table {
        let set = proxies(&[
            ("HTTPS_PROXY", "p:1"),
            ("no_proxy", &format!("x.test,{entry}")),
        ]);
        for host in direct {
            assert_eq!(
                through(&set, &format!("https://{host}")),
                None,
                "{entry}: {host}"
            );
        }
        for host in not {
            assert!(
                through(&set, &format!("https://{host}")).is_some(),
                "{entry}: {host}"
            );
        }
    }
    let all = proxies(&[("HTTPS_PROXY", "p:1"), ("NO_PROXY", "a,*")]);
    assert_eq!(through(&all, "https://b"), None);
}

#[test]
fn all_proxy_is_for_clouds_alone() {
    let all = |name: &str| (name == "ALL_PROXY").then_some("p:1");
    assert_eq!(through(&Proxies::from_variables(all), "https://a"), None);
    let clouds = Proxies::of_clouds(all);
    assert_eq!(through(&clouds, "http://a").unwrap(), "http://p:1/");
    assert_eq!(through(&clouds, "http://127.0.0.1"), None);
}

#[test]
fn the_password_of_a_proxy_is_not_in_its_debug_form() {
    let set = proxies(&[("HTTPS_PROXY", "http://me:hunter2@p:1")]);
    assert!(!format!("{set:?}").contains("hunter2"));
    assert!(through(&set, "https://a").is_some());
}
