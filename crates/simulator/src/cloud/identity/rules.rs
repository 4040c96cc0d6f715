//! Access rules of application credentials, enforced by each service for itself. Keystone does not enforce them, but
//! validates such a token only for callers that announce enforcement.

use http::{HeaderMap, Method};
use serde_json::Value;

use super::validation::header;
use crate::cloud::call::Call;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::kind::Kind;
use crate::cloud::service::Service;
use crate::cloud::state::State;

/// True if a token is of an application credential with access rules.
pub(super) fn has(state: &State, token: &Doc) -> bool {
    let credential = state.get(Kind::Credential, token.text("credential_id"));
    credential.is_some_and(|credential| credential.given("access_rules"))
}

/// True if the caller announces the enforcement of access rules, version 1.0.
pub(super) fn understands(headers: &HeaderMap) -> bool {
    let version = header(headers, "openstack-identity-access-rules");
    let version = version.and_then(|text| text.trim().parse::<f64>().ok());
    version.is_some_and(|version| version >= 1.0)
}

/// True if the access rules of a token allow the request, as `keystonemiddleware` decides in a service. A token without
/// rules allows every request.
pub(super) fn allow(call: &Call<'_>, token: &Doc, method: &Method) -> bool {
    if call.service == Service::Identity {
        return true;
    }
    let credential = call
        .state
        .get(Kind::Credential, token.text("credential_id"));
    let Some(credential) = credential.filter(|it| it.given("access_rules")) else {
        return true;
    };
    let (kind, _) = call.service.catalog();
    let mut rules = credential
        .list("access_rules")
        .iter()
        .filter_map(Value::as_object);
    rules.any(|rule| {
        rule.text("service") == kind
            && rule.text("method") == method.as_str()
            && matches(rule.text("path"), call.path)
    })
}

/// True if a path matches a pattern, in which `*` and `{name}` stand for one segment and `**` for any text.
fn matches(pattern: &str, path: &str) -> bool {
    let Some(first) = pattern.chars().next() else {
        return path.is_empty();
    };
    let segment = |rest: &str| {
        let end = path.find('/').unwrap_or(path.len());
        (1..=end).any(|at| path.is_char_boundary(at) && matches(rest, &path[at..]))
    };
    if let Some(rest) = pattern.strip_prefix("**") {
        return (0..=path.len()).any(|at| path.is_char_boundary(at) && matches(rest, &path[at..]));
    }
    if let Some(rest) = pattern.strip_prefix('*') {
        return segment(rest);
    }
    if let Some((_, rest)) = pattern.strip_prefix('{').and_then(|it| it.split_once('}')) {
        return segment(rest);
    }
    let rest = path.strip_prefix(first);
    rest.is_some_and(|rest| matches(&pattern[first.len_utf8()..], rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_keystonemiddleware() {
        for (pattern, path, expected) in [
            ("/v2.1/servers", "/v2.1/servers", true),
            ("/v2.1/servers", "/v2.1/servers/1", false),
            ("/v2.1/servers/*", "/v2.1/servers/1", true),
            ("/v2.1/servers/*", "/v2.1/servers/1/action", false),
            ("/v2.1/servers/{id}/action", "/v2.1/servers/1/action", true),
            ("/v2.1/**", "/v2.1/servers/1/action", true),
            ("/v2.1/**", "/v3/servers", false),
            ("/v2.1/servers/*", "/v2.1/servers/", false),
        ] {
            assert_eq!(matches(pattern, path), expected, "{pattern} {path}");
        }
    }
}
