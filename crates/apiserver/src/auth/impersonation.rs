//! Acting as somebody else: `kubectl --as`, by the headers `Impersonate-User`, `-Group`, `-Uid` and `-Extra-*`
//! (`k8s.io/apiserver/pkg/endpoints/filters/impersonation`). Who asks must be allowed the verb `impersonate` on each of them.

use http::HeaderMap;
use percent_encoding::percent_decode_str;

use super::rules::{Attributes, allowed, refused};
use crate::error::ApiError;
use crate::server::Core;
use crate::user::UserInfo;

const USER: &str = "impersonate-user";
const GROUP: &str = "impersonate-group";
const UID: &str = "impersonate-uid";
const EXTRA: &str = "impersonate-extra-";
const AUTHENTICATION: &str = "authentication.k8s.io";

/// The user that a request acts as: the one it comes from, unless it names another.
///
/// # Errors
/// 403 when the user may not act as the other, 500 (as from kube-apiserver) when the headers name groups of nobody.
pub(crate) fn applied(
    core: &Core,
    requestor: UserInfo,
    headers: &HeaderMap,
) -> Result<UserInfo, ApiError> {
    let Some(wanted) = wanted(headers)? else {
        return Ok(requestor);
    };
    let may = |group: &str, resource: &str, subresource: &str, namespace: &str, name: &str| {
        let attributes = Attributes {
            verb: "impersonate".to_owned(),
            group: group.to_owned(),
            resource: resource.to_owned(),
            subresource: subresource.to_owned(),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            path: String::new(),
        };
        if allowed(core, &requestor, &attributes) {
            Ok(())
        } else {
            Err(refused(&requestor, &attributes))
        }
    };
    match service_account(&wanted.name) {
        Some((namespace, name)) => may("", "serviceaccounts", "", namespace, name)?,
        None => may("", "users", "", "", &wanted.name)?,
    }
    for group in &wanted.groups {
        may("", "groups", "", "", group)?;
    }
    for (key, values) in &wanted.extra {
        for value in values {
            may(AUTHENTICATION, "userextras", key, "", value)?;
        }
    }
    if !wanted.uid.is_empty() {
        may(AUTHENTICATION, "uids", "", "", &wanted.uid)?;
    }
    Ok(completed(wanted))
}

/// What the headers say; none when they name nobody.
fn wanted(headers: &HeaderMap) -> Result<Option<UserInfo>, ApiError> {
    let text = |name: &str| {
        let value = headers.get(name).and_then(|value| value.to_str().ok());
        value.unwrap_or_default().to_owned()
    };
    let mut user = UserInfo {
        name: text(USER),
        uid: text(UID),
        ..UserInfo::default()
    };
    let groups = headers.get_all(GROUP).iter();
    user.groups
        .extend(groups.filter_map(|group| group.to_str().ok().map(str::to_owned)));
    for (name, value) in headers {
        if let (Some(key), Ok(value)) = (name.as_str().strip_prefix(EXTRA), value.to_str()) {
            let key = percent_decode_str(key).decode_utf8_lossy().into_owned();
            user.extra.entry(key).or_default().push(value.to_owned());
        }
    }
    if !user.name.is_empty() {
        return Ok(Some(user));
    }
    if user == UserInfo::default() {
        return Ok(None);
    }
    let what = "groups, a uid or extra fields were requested without impersonating a user";
    Err(ApiError::internal(what))
}

/// The namespace and the name in the user name of a service account.
fn service_account(user: &str) -> Option<(&str, &str)> {
    user.strip_prefix("system:serviceaccount:")?.split_once(':')
}

/// The user with the groups that everybody of its sort is in.
fn completed(mut user: UserInfo) -> UserInfo {
    if let Some((namespace, _)) = service_account(&user.name)
        && user.groups.is_empty()
    {
        user.groups.push("system:serviceaccounts".to_owned());
        let own = format!("system:serviceaccounts:{namespace}");
        user.groups.push(own);
    }
    let known = ["system:authenticated", "system:unauthenticated"];
    let (sort, told) = match user.name.as_str() {
        "system:anonymous" => (known[1], user.is_in(known[1])),
        _ => (known[0], known.iter().any(|group| user.is_in(group))),
    };
    if !told {
        user.groups.push(sort.to_owned());
    }
    user
}
