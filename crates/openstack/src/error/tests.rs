use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, StatusCode};

use super::{Error, ErrorKind};
use crate::Service;

fn error(status: u16, body: &str) -> Error {
    let status = StatusCode::from_u16(status).unwrap();
    let mut headers = HeaderMap::new();
    headers.insert("x-openstack-request-id", HeaderValue::from_static("req-7"));
    let path = "/v2.0/things/1";
    Error::from_response(
        Service::Network,
        &Method::PUT,
        path,
        status,
        &headers,
        body.as_bytes(),
    )
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
        // Glance, JSON and HTML
        (
            r#"{"message": "No image.<br /><br />\n\n\n", "code": "404", "title": "Not Found"}"#,
            "No image.",
        ),
        (
            "<html><head><title>400 Bad</title></head><body><h1>400 Bad</h1> Wrong.<br /></body></html>",
            "400 Bad Wrong.",
        ),
        // Placement
        (
            r#"{"errors": [{"status": 400, "title": "Bad", "detail": "No class."}]}"#,
            "No class.",
        ),
        // A proxy, and nothing at all
        ("upstream broke\n", "upstream broke"),
        ("", "Bad Request"),
        ("{}", "Bad Request"),
        ("[1]", "Bad Request"),
        ("null", "Bad Request"),
    ];
    for (body, words) in cases {
        assert_eq!(error(400, body).message(), words, "{body}");
    }
}

#[test]
fn the_kind_depends_on_status_and_message() {
    use ErrorKind::{
        Absent, Busy, Conflict, Denied, Invalid, Protocol, Quota, Transient, Unauthenticated,
    };
    let transient = Transient { retry_after: None };
    let cases = [
        (404, "", Absent),
        (410, "", Absent),
        (401, "", Unauthenticated),
        (400, "", Invalid),
        (406, "Version 2.60 is not supported by the API.", Invalid),
        (422, "", Invalid),
        (
            501,
            r#"{"faultstring": "Provider 'ovn' does not support a requested action"}"#,
            Invalid,
        ),
        (
            403,
            r#"{"forbidden": {"message": "Policy doesn't allow it"}}"#,
            Denied,
        ),
        (
            403,
            r#"{"forbidden": {"message": "Quota exceeded for cores: Requested 4"}}"#,
            Quota,
        ),
        (
            403,
            r#"{"forbidden": {"message": "Maximum number of ports exceeded"}}"#,
            Quota,
        ),
        (
            403,
            r#"{"faultstring": "Quota has been met for resources: Load Balancer"}"#,
            Quota,
        ),
        (
            409,
            r#"{"NeutronError": {"type": "OverQuota", "message": "Over."}}"#,
            Quota,
        ),
        (
            413,
            r#"{"overLimit": {"message": "VolumeLimitExceeded: 10 volumes"}}"#,
            Quota,
        ),
        (
            409,
            r#"{"NeutronError": {"type": "NetworkInUse", "message": "There are ports."}}"#,
            Busy,
        ),
        (
            409,
            r#"{"faultstring": "Load Balancer 1 is immutable and cannot be updated."}"#,
            Busy,
        ),
        (
            409,
            r#"{"conflictingRequest": {"message": "Cannot 'stop' instance while it is in vm_state building"}}"#,
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
            r#"{"conflictingRequest": {"message": "Key pair 'a' already exists."}}"#,
            Conflict,
        ),
        (
            409,
            r#"{"error": {"message": "Duplicate entry"}}"#,
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
    let mut headers = HeaderMap::new();
    for (text, wait) in [
        ("7", Some(Duration::from_secs(7))),
        ("0.5", Some(Duration::from_millis(500))),
        ("-1", None),
        ("NaN", None),
        ("inf", None),
        ("1e300", None),
        ("Fri, 31 Dec 1999 23:59:59 GMT", None),
    ] {
        headers.insert("retry-after", HeaderValue::from_str(text).unwrap());
        let status = StatusCode::SERVICE_UNAVAILABLE;
        let error = Error::from_response(Service::Image, &Method::GET, "/", status, &headers, b"");
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
    let error = error(400, &"ä".repeat(5000));
    assert_eq!(error.message().chars().count(), 601);
}

proptest::proptest! {
    #[test]
    fn no_body_makes_it_panic(status in 100u16..1000, body in ".*") {
        if StatusCode::from_u16(status).is_ok() {
            proptest::prop_assert!(!error(status, &body).to_string().is_empty());
        }
    }

    #[test]
    fn no_json_body_makes_it_panic(
        body in r#"(\{"[a-z]{1,3}":|\[|"x"|1|null|\}|\]|,|"message":"[a-z<]*"|\{){0,12}"#,
    ) {
        error(409, &body);
    }
}
