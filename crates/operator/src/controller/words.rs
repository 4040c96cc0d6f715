//! Errors in words for conditions, events and logs.

use std::error::Error;

/// Texts of errors that only name a layer of the HTTP client. Their causes say what is wrong.
const LAYERS: [&str; 8] = [
    "ServiceError",
    "HyperError",
    "HttpError",
    "client error (Connect)",
    "client error (SendRequest)",
    "connection error",
    "error trying to connect",
    "tcp connect error",
];

/// An error with the chain of its causes, on one line: of an API server its message, of the operating system no number.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let (own, source) = match answer(error) {
            Some(message) => (message, None),
            None => (own_text(error), error.source()),
        };
        let own = without_number(&own);
        let known = parts.iter().any(|part| part.contains(&own));
        if !known && !LAYERS.contains(&own.as_str()) {
            parts.push(own);
        }
        next = source;
    }
    match parts.is_empty() {
        true => without_number(&error.to_string()),
        false => parts.join(": "),
    }
}

/// The message with which an API server rejected a request. The text of the client's error has its debug form, too.
fn answer(error: &(dyn Error + 'static)) -> Option<String> {
    let boxed = error.downcast_ref::<Box<kube::Error>>();
    let error = boxed
        .map(|error| &**error)
        .or_else(|| error.downcast_ref::<kube::Error>())?;
    match error {
        kube::Error::Api(status) if !status.message.is_empty() => Some(status.message.clone()),
        kube::Error::Api(status) => Some(status.reason.clone()),
        _ => None,
    }
}

/// The text of an error without that of its source, with which it may end.
fn own_text(error: &(dyn Error + 'static)) -> String {
    let text = error.to_string();
    let source = error.source().map(ToString::to_string);
    let own = source.and_then(|source| text.strip_suffix(&source));
    match own {
        Some(own) => own.trim_end_matches([':', ' ']).to_owned(),
        None => text,
    }
}

/// A text without the error numbers of the operating system: `No such file or directory (os error 2)`.
fn without_number(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(start) = text.find(" (os error ") {
        let Some(end) = text.get(start..).and_then(|rest| rest.find(')')) else {
            break;
        };
        text.replace_range(start..=start + end, "");
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("reading Node a: {source}")]
    struct Reading {
        source: Box<kube::Error>,
    }

    #[derive(Debug, thiserror::Error)]
    #[error("client error (Connect)")]
    struct Connecting(#[source] io::Error);

    #[test]
    fn an_answer_is_its_message_and_not_its_debug_form() {
        let status = kube::core::Status::failure("nodes \"a\" is forbidden", "Forbidden");
        let error = Reading {
            source: Box::new(kube::Error::Api(Box::new(status))),
        };
        assert_eq!(chain(&error), "reading Node a: nodes \"a\" is forbidden");
    }

    #[test]
    fn a_server_that_does_not_answer_is_told_without_the_layers_of_the_client() {
        let refused = Connecting(io::Error::from_raw_os_error(111));
        let error = Reading {
            source: Box::new(kube::Error::Service(Box::new(refused))),
        };
        assert_eq!(chain(&error), "reading Node a: Connection refused");
    }

    #[test]
    fn a_single_error_keeps_its_text() {
        assert_eq!(chain(&io::Error::other("HyperError")), "HyperError");
        let missing = io::Error::from_raw_os_error(2);
        assert_eq!(chain(&missing), "No such file or directory");
    }
}
