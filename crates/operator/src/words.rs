//! Errors as sentences for users: in conditions, events and logs.

use std::error::Error;
use std::io;

use crate::client::Refused;

/// Error texts that only name a layer of the HTTP client. Their causes name the problem.
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

/// Beginning of the text of such a layer, followed by a URL.
const SENDING: &str = "error sending request";

fn is_layer(text: &str) -> bool {
    LAYERS.contains(&text) || text.starts_with(SENDING)
}

/// Returns an error with the chain of its causes, on one line. Errors of API servers keep the server's words;
/// connection errors say that the server does not answer, and why. Debug forms and error numbers of the operating
/// system are left out.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(failed) = request(error) {
            append(&mut text, &of_request(failed));
            return text;
        }
        let part = without_source(error);
        next = error.source();
        // A layer is named only if nothing else is known.
        if !(is_layer(&part) && (next.is_some() || !text.is_empty())) {
            append(&mut text, &part);
        }
    }
    text
}

/// Returns the text of an error without the text of the source at the end.
fn without_source(error: &(dyn Error + 'static)) -> String {
    let text = error.to_string();
    let source = error.source().map(ToString::to_string);
    let before_source = source.and_then(|source| text.strip_suffix(&source));
    match before_source {
        Some(before_source) if !before_source.is_empty() => {
            plain(before_source.trim_end_matches([':', ' ']))
        }
        _ => plain(&text),
    }
}

/// Reason in kube's error for an answer whose body is no Status; the message is the body.
const NO_STATUS: &str = "Failed to parse error data";

/// Returns the words of a failed request to an API server.
///
/// A body that is no Status of Kubernetes is not quoted: the writer of a kubeconfig may name any address, and the
/// reader of a condition, an event or a log must not see its content.
pub fn of_request(error: &kube::Error) -> String {
    if let Some(refused) = limit(error) {
        return refused.to_string();
    }
    match error {
        kube::Error::Api(status) if status.reason == NO_STATUS => {
            format!("the API server answers {}", status.code)
        }
        kube::Error::Api(status) if !status.message.is_empty() => plain(&status.message),
        kube::Error::Api(status) if !status.reason.is_empty() => {
            format!("the API server answers {} {}", status.code, status.reason)
        }
        kube::Error::Api(status) => format!("the API server answers {}", status.code),
        kube::Error::Service(_) | kube::Error::HyperError(_) => {
            format!("the API server does not answer: {}", last(error))
        }
        // The text of such an error quotes the answer.
        kube::Error::SerdeError(source) if source.is_io() => {
            format!(
                "the answer of the API server cannot be read: {}",
                last(error)
            )
        }
        kube::Error::SerdeError(source) => format!(
            "the answer of the API server is not the object that was asked for (line {}, column {})",
            source.line(),
            source.column()
        ),
        // The text of kube's error has all causes, with the layers of the HTTP client.
        kube::Error::ReadEvents(_) => format!("the stream of events ended: {}", last(error)),
        other => {
            let mut text = plain(&other.to_string());
            append(&mut text, &last(other));
            text
        }
    }
}

/// Returns `text` without error numbers of the operating system.
pub fn plain(text: &str) -> String {
    let mut text = text.to_owned();
    while let Some(start) = text.find(" (os error ") {
        let Some(end) = text.get(start..).and_then(|rest| rest.find(')')) else {
            break;
        };
        text.replace_range(start..=start + end, "");
    }
    text
}

/// Returns the exceeded limit of our own clients, if one caused the error.
fn limit<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a Refused> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(refused) = error.downcast_ref::<Refused>() {
            return Some(refused);
        }
        // An error of the system with another inside names the source of that one.
        let inside = error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref);
        next = match inside {
            Some(inside) => Some(inside),
            None => error.source(),
        };
    }
    None
}

fn request<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a kube::Error> {
    let boxed = error.downcast_ref::<Box<kube::Error>>();
    error
        .downcast_ref::<kube::Error>()
        .or(boxed.map(Box::as_ref))
}

/// Returns the text of the last cause, which names the problem; earlier causes only name layers.
fn last(error: &(dyn Error + 'static)) -> String {
    let mut last = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    // An error with a text of its own, such as that of our limit, says more than its kind.
    let system = last.downcast_ref::<io::Error>();
    // rustls has a text of its own for it, with the address of its documentation.
    if system.is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof) {
        return "the connection was closed".to_owned();
    }
    match system
        .filter(|error| error.get_ref().is_none())
        .map(io::Error::kind)
    {
        Some(io::ErrorKind::ConnectionRefused) => "connection refused".to_owned(),
        Some(io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe) => {
            "the connection was closed".to_owned()
        }
        Some(io::ErrorKind::TimedOut) => "no answer in time".to_owned(),
        _ => plain(&last.to_string()),
    }
}

fn append(text: &mut String, cause: &str) {
    if text.contains(cause) {
        return;
    }
    if !text.is_empty() {
        text.push_str(": ");
    }
    text.push_str(cause);
}

#[cfg(test)]
mod tests;
