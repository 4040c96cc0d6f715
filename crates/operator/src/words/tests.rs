use kube::core::Status;

use super::*;

#[derive(Debug, thiserror::Error)]
#[error("creating Machine default/demo")]
struct Failed(#[source] Box<kube::Error>);

#[derive(Debug, thiserror::Error)]
#[error("client error (Connect)")]
struct Layer(#[source] io::Error);

fn words(error: kube::Error) -> String {
    chain(&Failed(Box::new(error)))
}

#[test]
fn an_answer_of_an_api_server_has_its_words_and_no_debug_form() {
    let status =
        Status::failure("machines \"demo\" is forbidden: quota", "Forbidden").with_code(403);
    assert_eq!(
        words(kube::Error::Api(status.boxed())),
        "creating Machine default/demo: machines \"demo\" is forbidden: quota"
    );
    let bare = Status::failure("", "").with_code(502);
    assert_eq!(
        words(kube::Error::Api(bare.boxed())),
        "creating Machine default/demo: the API server answers 502"
    );
}

#[test]
fn a_server_that_does_not_answer_is_named_as_such() {
    for (kind, expected) in [
        (io::ErrorKind::ConnectionRefused, "connection refused"),
        (io::ErrorKind::ConnectionReset, "the connection was closed"),
    ] {
        let error = kube::Error::Service(Box::new(Layer(io::Error::from(kind))));
        assert_eq!(
            words(error),
            format!("creating Machine default/demo: the API server does not answer: {expected}")
        );
    }
    let missing = io::Error::from_raw_os_error(2);
    assert_eq!(plain(&missing.to_string()), "No such file or directory");
}

#[derive(Debug, thiserror::Error)]
#[error("reading Node a: {source}")]
struct Reading {
    source: Box<kube::Error>,
}

#[test]
fn a_cause_that_an_error_repeats_stands_once() {
    let status = Status::failure("nodes \"a\" is forbidden", "Forbidden");
    let error = Reading {
        source: Box::new(kube::Error::Api(status.boxed())),
    };
    assert_eq!(chain(&error), "reading Node a: nodes \"a\" is forbidden");
}

#[test]
fn a_layer_of_the_client_is_named_only_if_nothing_else_is_known() {
    let refused = Layer(io::Error::from_raw_os_error(111));
    assert_eq!(chain(&refused), "Connection refused");
    assert_eq!(chain(&io::Error::other("HyperError")), "HyperError");
}

#[test]
fn a_stream_of_events_that_breaks_off_has_the_cause_without_layers() {
    let closed = io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "peer closed connection without sending TLS close_notify: https://docs.rs/rustls",
    );
    let of_layers = io::Error::other(Layer(closed));
    assert_eq!(
        chain(&kube::Error::ReadEvents(of_layers)),
        "the stream of events ended: the connection was closed"
    );
}
