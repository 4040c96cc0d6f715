//! HTTP requests as text: a line `METHOD /path?query`, header lines `name: value`, an empty line, and a body.

use http::{HeaderName, HeaderValue, Method, Request};

/// Splits a text at lines of `---` into at most eight requests.
pub fn parts(data: &[u8]) -> impl Iterator<Item = &[u8]> {
    split(data, b"\n---\n").into_iter().take(8)
}

/// Parses one [`Request`]; `None` if invalid. Invalid headers are left out.
pub fn read(text: &[u8]) -> Option<Request<Vec<u8>>> {
    let (head, body) = match split(text, b"\n\n").as_slice() {
        [head] => (*head, Vec::new()),
        [head, body @ ..] => (*head, body.join(&b"\n\n"[..])),
        [] => return None,
    };
    let mut lines = head.split(|byte| *byte == b'\n');
    let (method, uri) = std::str::from_utf8(lines.next()?).ok()?.split_once(' ')?;
    let mut request = Request::new(body);
    *request.method_mut() = method.parse::<Method>().ok()?;
    *request.uri_mut() = uri.trim().parse().ok()?;
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            request.headers_mut().append(name, value);
        }
    }
    Some(request)
}

fn split<'a>(data: &'a [u8], by: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    let mut rest = data;
    while let Some(at) = rest.windows(by.len()).position(|window| window == by) {
        parts.push(&rest[..at]);
        rest = &rest[at + by.len()..];
    }
    parts.push(rest);
    parts
}
