use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};

use super::{Asked, Error, ErrorKind};
use crate::Service;

fn answer(status: u16, header: (&'static str, &str), body: &str) -> http::Response<Bytes> {
    let response = http::Response::builder()
        .status(status)
        .header(header.0, header.1);
    response.body(Bytes::from(body.to_owned())).unwrap()
}

fn error(status: u16, body: &str) -> Error {
    let asked = Asked {
        service: Service::Network,
        method: &Method::PUT,
        path: "/v2.0/things/1",
        host: "cloud.test:9696",
    };
    let response = answer(status, ("x-openstack-request-id", "req-7"), body);
    Error::from_response(&asked, &response)
}

#[test]
fn the_error_messages_of_every_service_are_parsed() {
    let cases = [
        // Nova
        (
            r#"{"badRequest": {"code": 400, "message": "Flavor is bad."}}"#,
            "Flavor is bad.",
        ),
        // Neutron, two forms
        (
            r#"{"NeutronError": {"type": "X", "message": "No subnet.", "detail": ""}}"#,
            "No subnet.",
        ),
        (r#"{"NeutronError": "Plain words."}"#, "Plain words."),
        // Keystone
        (
            r#"{"error": {"code": 400, "message": "No such domain.", "title": "Bad"}}"#,
            "No such domain.",
        ),
        // Octavia
        (
            r#"{"faultcode": "Client", "faultstring": "Invalid CIDR.", "debuginfo": null}"#,
            "Invalid CIDR.",
        ),
        // Cinder
        (
            r#"{"badRequest": {"message": "Size is bad.", "code": 400}}"#,
            "Size is bad.",
        ),
        // Glance
        (
            r#"{"message": "No image.<br /><br />\n\n\n", "code": "404", "title": "Not Found"}"#,
            "No image.",
        ),
        // Barbican
        (
            r#"{"code": 404, "title": "Not Found", "description": "No secret."}"#,
            "No secret.",
        ),
        // Placement
        (
            r#"{"errors": [{"status": 400, "title": "Bad", "detail": "No class.\n\n  "}]}"#,
            "No class.",
        ),
    ];
    for (body, words) in cases {
        assert_eq!(error(400, body).message(), words, "{body}");
    }
}

#[test]
fn the_text_of_an_answer_that_is_no_error_of_openstack_is_left_out() {
    for body in [
        "",
        "{}",
        "[1]",
        "null",
        "canary",
        "\"canary\"",
        "<html><head><title>canary</title></head><body>canary</body></html>",
        r#"{"message": "canary"}"#,
        r#"{"error": "canary"}"#,
        r#"{"error": {"message": "canary", "code": 400, "status": "INVALID"}}"#,
        r#"{"canary": {"message": "canary", "code": 400}}"#,
        r#"{"kind": "Status", "apiVersion": "v1", "message": "canary", "code": 400}"#,
        r#"{"badRequest": {"code": 400, "message": "a"}, "x": "canary"}"#,
        r#"{"error": {"root_cause": [], "reason": "canary"}, "status": 400}"#,
    ] {
        assert_eq!(
            error(400, body).message(),
            "cloud.test:9696 answers 400 Bad Request, without an error of OpenStack",
            "{body}"
        );
    }
}

#[test]
fn texts_of_a_cloud_are_on_one_line_without_control_characters() {
    let fault =
        r#"{"NeutronError": {"type": "X", "message": "a\u001b[2J\r\nb\u202ec", "detail": ""}}"#;
    let text = error(400, fault).explain("why\u{1b}").to_string();
    assert_eq!(
        text,
        "network PUT /v2.0/things/1: 400 why\\u{1b} (a\\u{1b}[2J b\\u{202e}c) (request req-7)"
    );
    let at = Error::new(ErrorKind::Protocol, "x\n").at(Service::Image, &Method::GET, "/\u{9b}");
    assert_eq!(at.to_string(), "image GET /\\u{9b}: x\\n");
}

#[test]
fn the_kind_depends_on_status_and_message() {
    use ErrorKind::{
        Absent, Busy, Conflict, Denied, Invalid, Protocol, Quota, Transient, Unauthenticated,
    };
    let transient = Transient { retry_after: None };
    let cases = [
        (
            404,
            r#"{"itemNotFound": {"code": 404, "message": "No server."}}"#,
            Absent,
        ),
        (
            410,
            r#"{"computeFault": {"code": 410, "message": "It is gone."}}"#,
            Absent,
        ),
        // Of a proxy, or of another server.
        (404, "", Protocol),
        (404, "<html><h1>404 Not Found</h1></html>", Protocol),
        (410, r#"{"message": "gone"}"#, Protocol),
        (401, "", Unauthenticated),
        (400, "", Invalid),
        (
            406,
            r#"{"computeFault": {"code": 406, "message": "Version 2.60 is not supported by the API."}}"#,
            Invalid,
        ),
        (422, "", Invalid),
        (
            501,
            r#"{"faultcode": "Client", "faultstring": "Provider 'ovn' does not support a requested action"}"#,
            Invalid,
        ),
        (
            403,
            r#"{"forbidden": {"code": 403, "message": "Policy doesn't allow it"}}"#,
            Denied,
        ),
        (
            403,
            r#"{"forbidden": {"code": 403, "message": "Quota exceeded for cores: Requested 4"}}"#,
            Quota,
        ),
        (
            403,
            r#"{"forbidden": {"code": 403, "message": "Maximum number of ports exceeded"}}"#,
            Quota,
        ),
        (
            403,
            r#"{"faultcode": "Client", "faultstring": "Quota has been met for resources: Load Balancer"}"#,
            Quota,
        ),
        (
            409,
            r#"{"NeutronError": {"type": "OverQuota", "message": "Over."}}"#,
            Quota,
        ),
        (
            413,
            r#"{"overLimit": {"code": 413, "message": "VolumeLimitExceeded: 10 volumes"}}"#,
            Quota,
        ),
        (
            409,
            r#"{"NeutronError": {"type": "NetworkInUse", "message": "There are ports."}}"#,
            Busy,
        ),
        (
            409,
            r#"{"faultcode": "Client", "faultstring": "Load Balancer 1 is immutable and cannot be updated."}"#,
            Busy,
        ),
        (
            409,
            r#"{"conflictingRequest": {"code": 409, "message": "Cannot 'stop' instance while it is in vm_state building"}}"#,
            Busy,
        ),
        (
            412,
            r#"{"NeutronError": {"type": "RevisionNumberConstraintFailed", "message": "x"}}"#,
            Busy,
        ),
        (
            409,
            r#"{"NeutronError": {"type": "IpAddressInUse", "message": "IP in use"}}"#,
            Conflict,
        ),
        (
            409,
            r#"{"conflictingRequest": {"code": 409, "message": "Key pair 'a' already exists."}}"#,
            Conflict,
        ),
        (
            409,
            r#"{"error": {"code": 409, "title": "Conflict", "message": "Duplicate entry"}}"#,
            Conflict,
        ),
        (429, "", transient),
        (500, "", transient),
        (
            503,
            "<html><body><h1>503 Service Unavailable</h1></body></html>",
            transient,
        ),
        (302, "", Protocol),
    ];
    for (status, body, kind) in cases {
        assert_eq!(error(status, body).kind(), kind, "{status} {body}");
    }
}

#[test]
fn the_wait_that_the_cloud_requests_is_parsed() {
    for (text, wait) in [
        ("7", Some(Duration::from_secs(7))),
        ("0.5", Some(Duration::from_millis(500))),
        ("-1", None),
        ("NaN", None),
        ("inf", None),
        ("1e300", None),
        ("Fri, 31 Dec 1999 23:59:59 GMT", None),
    ] {
        let asked = Asked {
            service: Service::Image,
            method: &Method::GET,
            path: "/",
            host: "cloud.test",
        };
        let error = Error::from_response(&asked, &answer(503, ("retry-after", text), ""));
        assert_eq!(error.retry_after(), wait, "{text}");
        assert!(error.is_temporary());
    }
}

#[test]
fn an_error_prints_service_path_status_message_and_request() {
    let error = error(
        409,
        r#"{"NeutronError": {"type": "PortInUse", "message": "Port is used."}}"#,
    );
    assert_eq!(
        error.to_string(),
        "network PUT /v2.0/things/1: 409 Port is used. (request req-7)"
    );
    assert_eq!(
        error.cause("change the thing"),
        "Port is used (change the thing: network PUT /v2.0/things/1: 409)"
    );
}

#[test]
fn a_cause_without_a_message_or_a_request_says_what_is_known() {
    let silent = Error::new(ErrorKind::Protocol, " ");
    assert_eq!(silent.cause("log in"), "no reason is given (log in)");
    let timed_out = Error::new(ErrorKind::Unreachable, "no answer in 60 s");
    let timed_out = timed_out.at(Service::Network, &Method::GET, "/v2.0/ports");
    assert_eq!(
        timed_out.cause("list the ports"),
        "no answer in 60 s (list the ports: network GET /v2.0/ports)"
    );
}

#[test]
fn long_messages_are_truncated_between_characters() {
    let fault = serde_json::json!({"NeutronError": "ä".repeat(5000)});
    let error = error(400, &fault.to_string());
    assert_eq!(error.message().chars().count(), 600);
    assert!(error.message().ends_with("ä…"));
    let listed = Error::new(ErrorKind::Invalid, "\u{1b}ä".repeat(5000));
    assert_eq!(listed.message().chars().count(), 1000);
}

proptest::proptest! {
    #[test]
    fn no_body_makes_it_panic(status in 100u16..1000, body in ".*") {
        if StatusCode::from_u16(status).is_ok() {
            let text = error(status, &body).to_string();
            proptest::prop_assert!(!text.is_empty() && !text.contains(char::is_control));
        }
    }

    #[test]
    fn no_json_body_makes_it_panic(
        body in r#"(\{"[a-z]{1,3}":|\[|"x"|1|null|\}|\]|,|"message":"[a-z<]*"|\{){0,12}"#,
    ) {
        error(409, &body);
    }
}
