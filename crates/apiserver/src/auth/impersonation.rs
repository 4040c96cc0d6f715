//! Impersonation: `kubectl --as`, by the headers `Impersonate-User`, `-Group`, `-Uid` and `-Extra-*`
//! (`k8s.io/apiserver/pkg/endpoints/filters/impersonation`). The authenticated user needs the verb `impersonate` for
//! each of the headers. A malformed header is rejected and never ignored: otherwise the request would run as another
//! user than named in the header.

use apimachinery::names::subdomain;
use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::percent_decode_str;

use super::rules::{Attributes, forbidden, review};
use crate::core::Core;
use crate::error::ApiError;
use crate::user::UserInfo;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// Rejection of an impersonation.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// A header is malformed, or the requestor may not impersonate the user.
    Status(ApiError),
    /// The headers have groups, a uid or extra fields, and no user.
    WithoutUser(String),
}

impl From<ApiError> for Refusal {
    fn from(error: ApiError) -> Self {
        Self::Status(error)
    }
}

/// Effective user of a request: the impersonated one, if the headers name one.
///
/// # Errors
/// When the headers are invalid, or the [`Attributes`] of the impersonation are denied.
pub(crate) async fn applied(
    core: &Core,
    requestor: UserInfo,
    headers: &HeaderMap,
) -> Result<UserInfo, Refusal> {
    let Some(wanted) = wanted(headers)? else {
        return Ok(requestor);
    };
    for attributes in asked(&wanted) {
        let decision = review(core, &requestor, &attributes).await;
        decision.map_err(|denied| forbidden(&requestor, &attributes, &denied))?;
    }
    Ok(completed(wanted))
}

/// Permissions that the requestor needs.
fn asked(wanted: &UserInfo) -> Vec<Attributes> {
    let may =
        |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| Attributes {
            verb: "impersonate".to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            ..Attributes::default()
        };
    let mut asked = vec![match service_account(&wanted.name) {
        Some((namespace, name)) => may("", "serviceaccounts", "", namespace, name),
        None => may("", "users", "", "", &wanted.name),
    }];
    asked.extend(
        wanted
            .groups
            .iter()
            .map(|group| may("", "groups", "", "", group)),
    );
    for (key, values) in &wanted.extra {
        let of_key = |value: &String| may(AUTHENTICATION, "userextras", key, "", value);
        asked.extend(values.iter().map(of_key));
    }
    if !wanted.uid.is_empty() {
        asked.push(may(AUTHENTICATION, "uids", "", "", &wanted.uid));
    }
    asked
}

/// User in the headers; `None` without such headers.
fn wanted(headers: &HeaderMap) -> Result<Option<UserInfo>, Refusal> {
    let first = |name: &str| -> Result<String, ApiError> {
        let values = headers.get_all(name).iter();
        let values: Result<Vec<&str>, ApiError> = values.map(|value| text(name, value)).collect();
        Ok(values?.first().copied().unwrap_or_default().to_owned())
    };
    let mut user = UserInfo {
        name: first(USER)?,
        uid: first(UID)?,
        ..UserInfo::default()
    };
    for group in headers.get_all(GROUP) {
        user.groups.push(text(GROUP, group)?.to_owned());
    }
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix(EXTRA) {
            let key = extra_key(name, key)?;
            let value = text(name.as_str(), value)?;
            user.extra.entry(key).or_default().push(value.to_owned());
        }
    }
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user == UserInfo::default() {
        return Ok(None);
    }
    Err(Refusal::WithoutUser(format!(
        "requested [{}] without impersonating a user",
        listed(&user)
    )))
}

/// Groups, uid and extra fields in Go's format.
fn listed(user: &UserInfo) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend(
        user.groups
            .iter()
            .map(|group| format!("{{Group  {group}    }}")),
    );
    for (key, values) in &user.extra {
        let printed =
            |value: &String| format!("{{UserExtra  {value}  {AUTHENTICATION}/v1  {key}}}");
        parts.extend(values.iter().map(printed));
    }
    if !user.uid.is_empty() {
        parts.push(format!("{{UID  {}  {AUTHENTICATION}/v1  }}", user.uid));
    }
    parts.join(" ")
}

/// Value of a header: any UTF-8.
fn text<'a>(name: &str, value: &'a HeaderValue) -> Result<&'a str, ApiError> {
    std::str::from_utf8(value.as_bytes()).map_err(|_| unreadable(name))
}

/// Key in the name of a header. Malformed escapes are kept, as in Go.
fn extra_key(name: &HeaderName, escaped: &str) -> Result<String, ApiError> {
    let mut rest = escaped.split('%').skip(1);
    let escapes = rest.all(|part| {
        let digits = part.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    });
    if !escapes {
        return Ok(escaped.to_owned());
    }
    let key = percent_decode_str(escaped).decode_utf8();
    Ok(key.map_err(|_| unreadable(name.as_str()))?.into_owned())
}

fn unreadable(header: &str) -> ApiError {
    ApiError::bad_request(format!(
        "the header {header} cannot be read: it must be UTF-8"
    ))
}

/// Namespace and name in the user name of a service account; `None` for other user names.
fn service_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user
        .strip_prefix("system:serviceaccount:")?
        .split_once(':')?;
    let valid = namespace.len() <= 63
        && !namespace.contains('.')
        && [namespace, name]
            .iter()
            .all(|part| subdomain(part).is_none());
    valid.then_some((namespace, name))
}

/// User with the implicit groups: of a service account, and of authenticated or anonymous users.
fn completed(mut user: UserInfo) -> UserInfo {
    if let Some((namespace, _)) = service_account(&user.name)
        && user.groups.is_empty()
    {
        user.groups.push("system:serviceaccounts".to_owned());
        let group = format!("system:serviceaccounts:{namespace}");
        user.groups.push(group);
    }
    let known = ["system:authenticated", "system:unauthenticated"];
    let (group, explicit) = match user.name.as_str() {
        "system:anonymous" => (known[1], user.is_in(known[1])),
        _ => (known[0], known.iter().any(|group| user.is_in(group))),
    };
    if !explicit {
        user.groups.push(group.to_owned());
    }
    user
}

#[cfg(test)]
mod tests;
