use super::*;

const FILE: &str = "
request: 20
serverCreate: 1500
routes:
- {service: network, method: post, route: /v2.0/routers, milliseconds: 900}
";

#[test]
fn a_file_sets_requests_routes_and_transitions() {
    let latency = Latency::parse(FILE).unwrap();
    let request = |method, route| latency.request(Service::Network, &method, route);
    assert_eq!(request(Method::POST, "/v2.0/routers").as_millis(), 900);
    assert_eq!(request(Method::GET, "/v2.0/routers").as_millis(), 20);
    assert_eq!(
        latency.transition(Transition::ServerCreate).as_millis(),
        1500
    );
    assert_eq!(latency.transition(Transition::Volume), Duration::ZERO);
}

#[test]
fn errors_name_the_entry() {
    let unknown = "routes: [{service: network, method: GET, route: /v2.0/nets, milliseconds: 1}]";
    let error = Latency::parse(unknown).unwrap_err().to_string();
    assert!(error.contains("routes[0]"), "{error}");
    assert!(error.contains("/v2.0/nets"), "{error}");
    for wrong in ["requests: 5", "request: soon", "request: -1", "[", "- 5"] {
        assert!(Latency::parse(wrong).is_err(), "{wrong}");
    }
    assert_eq!(
        Latency::parse("request: 0").unwrap(),
        Latency::Custom(Box::default())
    );
}

proptest::proptest! {
    #[test]
    fn parsing_any_text_never_panics(text in ".{0,200}") {
        let _ = Latency::parse(&text);
    }
}

#[test]
fn the_documented_example_is_valid() {
    let text = include_str!("../../../../../docs/latencies.yaml");
    let latency = Latency::parse(text).unwrap();
    assert_eq!(
        latency.transition(Transition::BalancerDelete).as_millis(),
        2200
    );
}
