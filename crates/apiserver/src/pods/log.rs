//! `pods/NAME/log`: the selected lines of a container's log. Options are validated as by kube-apiserver and applied as
//! by a kubelet.

use std::fmt::Write as _;

use apimachinery::kinds::shape::time;
use apimachinery::schema::FieldError;
use apimachinery::value::text;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt as _};
use http::{Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Request, plain};
use crate::body::{self, Body};
use crate::error::ApiError;
use crate::kubelet::{Line, Log};
use crate::request::query::Query;

/// Options of a request for a log (`v1.PodLogOptions`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Options {
    follow: bool,
    previous: bool,
    timestamps: bool,
    since_seconds: Option<i64>,
    since_time: Option<Timestamp>,
    tail_lines: Option<i64>,
    limit_bytes: Option<i64>,
    /// True if `stream` is set, a parameter behind a disabled feature gate.
    stream: bool,
}

/// Answers a [`Request`] for a log.
pub(super) async fn answer(request: &Request<'_>) -> Result<Response<Body>, ApiError> {
    let options = Options::from_query(request.query)?;
    let errors = options.problems();
    if !errors.is_empty() {
        let name = request.name();
        return Err(ApiError::invalid("", "PodLogOptions", name, &errors));
    }
    let pod = request.pod()?;
    let container = request.container(&pod, request.query.get("container"))?;
    if text(&pod["spec"]["nodeName"]).is_empty() {
        // The container has not written anything yet.
        let mut response = Response::new(body::full(""));
        *response.status_mut() = StatusCode::NO_CONTENT;
        return Ok(response);
    }
    let node = request.node(&pod)?;
    let location = format!(
        "/containerLogs/{}/{}/{container}{}",
        request.namespace(),
        request.name(),
        options.query()
    );
    if let Some(kubelet) = request.backend(&node) {
        return kubelet.log(request.core, request.name(), &location).await;
    }
    let Some(kubelet) = request.simulated(&node) else {
        let url = format!("https://{}{location}", node.address());
        let message = format!("Get {url:?}: {}", node.not_reached());
        return Err(ApiError::new(500, "", message));
    };
    has_log(request.name(), &pod["status"], &container, options.previous)
        .map_err(ApiError::bad_request)?;
    let mut log = kubelet
        .log(&node.object, &pod, &container, options.follow)
        .await
        .map_err(ApiError::bad_request)?;
    let shutdown = request.core.shutdown.clone();
    let ending =
        |more: BoxStream<'static, Line>| more.take_until(shutdown.cancelled_owned()).boxed();
    log.more = log.more.map(ending);
    Ok(plain(
        StatusCode::OK,
        body_of(log, &options, Timestamp::now()),
    ))
}

impl Options {
    fn from_query(query: &Query) -> Result<Self, ApiError> {
        Ok(Self {
            follow: query.flag("follow"),
            previous: query.flag("previous"),
            timestamps: query.flag("timestamps"),
            since_seconds: integer(query, "sinceSeconds")?,
            since_time: moment(query, "sinceTime")?,
            tail_lines: integer(query, "tailLines")?,
            limit_bytes: integer(query, "limitBytes")?,
            stream: query.all("stream").next().is_some(),
        })
    }

    /// Validates as `ValidatePodLogOptions` does.
    fn problems(&self) -> Vec<FieldError> {
        let positive = "must be greater than 0";
        let mut errors = Vec::new();
        let mut reject = |field: &str, value: i64, why: &str| {
            errors.push(FieldError::invalid(field, &Value::from(value), why));
        };
        if let Some(lines) = self.tail_lines.filter(|lines| *lines < 0) {
            reject("tailLines", lines, "must be greater than or equal to 0");
        }
        if let Some(bytes) = self.limit_bytes.filter(|bytes| *bytes < 1) {
            reject("limitBytes", bytes, positive);
        }
        match (self.since_seconds, self.since_time) {
            (Some(_), Some(_)) => {
                let why = "at most one of `sinceTime` or `sinceSeconds` may be specified";
                // kube-apiserver prints an empty path here.
                errors.push(FieldError::forbidden("[]", why));
            }
            (Some(seconds), None) if seconds < 1 => reject("sinceSeconds", seconds, positive),
            _ => {}
        }
        if self.stream {
            errors.push(FieldError::forbidden("stream", "may not be specified"));
        }
        errors
    }

    /// Query for the kubelet.
    fn query(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let flag = |on: bool| on.then(|| "true".to_owned());
        let number = |number: Option<i64>| number.map(|number| number.to_string());
        let since = self.since_time.map(apimachinery::time::seconds);
        let pairs = [
            ("follow", flag(self.follow)),
            ("limitBytes", number(self.limit_bytes)),
            ("previous", flag(self.previous)),
            ("sinceSeconds", number(self.since_seconds)),
            ("sinceTime", since),
            ("tailLines", number(self.tail_lines)),
            ("timestamps", flag(self.timestamps)),
        ];
        for (name, value) in pairs {
            if let Some(value) = value {
                query.append_pair(name, &value);
            }
        }
        match query.finish().as_str() {
            "" => String::new(),
            query => format!("?{query}"),
        }
    }
}

/// Number in the format of Go's conversion of [`Query`] parameters.
fn integer(query: &Query, name: &str) -> Result<Option<i64>, ApiError> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    let Some(text) = query.all(name).next() else {
        return Ok(None);
    };
    text.parse()
        .map(Some)
        .map_err(|error: std::num::ParseIntError| {
            let why = match error.kind() {
                PosOverflow | NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
        })
}

fn moment(query: &Query, name: &str) -> Result<Option<Timestamp>, ApiError> {
    match query.all(name).next() {
        None => Ok(None),
        // The zero time, which selects the whole log.
        Some("" | "null") => Ok(Some(Timestamp::UNIX_EPOCH)),
        Some(text) => {
            time::check(text, false).map_err(ApiError::bad_request)?;
            let time = text.parse().map_err(|error: jiff::Error| {
                ApiError::bad_request(format!("parsing time {text:?}: {error}"))
            });
            time.map(Some)
        }
    }
}

/// Checks that the status of a container implies a log, as a kubelet does.
fn has_log(pod: &str, status: &Value, container: &str, previous: bool) -> Result<(), String> {
    let lists = [
        "containerStatuses",
        "initContainerStatuses",
        "ephemeralContainerStatuses",
    ];
    let found = lists
        .iter()
        .flat_map(|list| status[*list].as_array().into_iter().flatten())
        .find(|status| status["name"] == container);
    let about = format!("container {container:?} in pod {pod:?}");
    let Some(status) = found else {
        return Err(format!("{about} is not available"));
    };
    let (state, last) = (&status["state"], &status["lastState"]["terminated"]);
    let ended_before = !text(&last["containerID"]).is_empty();
    if previous {
        return match ended_before {
            true => Ok(()),
            false => Err(format!("previous terminated {about} not found")),
        };
    }
    if !state["running"].is_null() || ended_before {
        return Ok(());
    }
    if !state["terminated"].is_null() || !last.is_null() {
        return match text(&state["terminated"]["containerID"]) {
            "" => Err(format!("{about} is terminated")),
            _ => Ok(()),
        };
    }
    let waiting = &state["waiting"];
    Err(match text(&waiting["reason"]) {
        _ if waiting.is_null() => format!("{about} is waiting to start - no logs yet"),
        "ErrImagePull" => format!("{about} is waiting to start: image can't be pulled"),
        "ImagePullBackOff" => {
            format!("{about} is waiting to start: trying and failing to pull image")
        }
        reason => format!("{about} is waiting to start: {reason}"),
    })
}

/// [`Body`] of a [`Log`]: the selected lines, then later lines.
fn body_of(log: Log, options: &Options, now: Timestamp) -> Body {
    let mut printer = Printer::new(options, now);
    let lines = log.lines.len();
    let tail = options
        .tail_lines
        .and_then(|tail| usize::try_from(tail).ok())
        .unwrap_or(lines);
    let mut printed = Vec::new();
    for line in log.lines.iter().skip(lines.saturating_sub(tail)) {
        printer.print(line, &mut printed);
    }
    let Some(more) = log.more.filter(|_| options.follow) else {
        return body::full(printed);
    };
    let first = stream::iter((!printed.is_empty()).then(|| Bytes::from(printed)));
    let more = stream::unfold((more, printer), |(mut more, mut printer)| async move {
        while !printer.is_full() {
            let mut printed = Vec::new();
            printer.print(&more.next().await?, &mut printed);
            if !printed.is_empty() {
                return Some((Bytes::from(printed), (more, printer)));
            }
        }
        None
    });
    body::stream(first.chain(more))
}

/// Formats lines up to the byte limit.
struct Printer {
    since: Timestamp,
    timestamps: bool,
    left: usize,
}

impl Printer {
    fn new(options: &Options, now: Timestamp) -> Self {
        let seconds = options.since_seconds.map(SignedDuration::from_secs);
        let ago = seconds.map(|ago| now.checked_sub(ago).unwrap_or(Timestamp::MIN));
        let limit = options.limit_bytes;
        Self {
            since: options.since_time.or(ago).unwrap_or(Timestamp::MIN),
            timestamps: options.timestamps,
            left: limit
                .and_then(|limit| usize::try_from(limit).ok())
                .unwrap_or(usize::MAX),
        }
    }

    fn is_full(&self) -> bool {
        self.left == 0
    }

    fn print(&mut self, line: &Line, printed: &mut Vec<u8>) {
        if line.at < self.since || self.is_full() {
            return;
        }
        let mut text = String::new();
        if self.timestamps {
            // Nine digits of the fraction, as container runtimes write them.
            let _ = write!(text, "{:.9} ", line.at);
        }
        text.push_str(&line.text);
        text.push('\n');
        let mut bytes = text.into_bytes();
        bytes.truncate(self.left);
        self.left -= bytes.len();
        printed.append(&mut bytes);
    }
}

#[cfg(test)]
mod tests;
