//! Authentication and authorization of requests over the network.

pub(crate) mod impersonation;
mod node;
pub(crate) mod restriction;
pub(crate) mod rules;

use http::{HeaderMap, header};

use crate::authenticator::{Bearer, UNKNOWN};
use crate::core::Core;
use crate::error::ApiError;
use crate::user::UserInfo;

/// User of a bearer token, as known to the server or to its reviewer.
///
/// # Errors
/// The reason why the token is invalid.
pub(crate) async fn bearer(
    core: &Core,
    token: &str,
    audiences: &[String],
) -> Result<Bearer, String> {
    let why = match core.authenticator.token(&core.store, token, audiences) {
        Ok(bearer) => return Ok(bearer),
        Err(why) => why,
    };
    let audience = core.authenticator.audience();
    let reviewer = core.options.reviewer.as_ref();
    // An invalid token of a service account belongs to nobody else, and is not passed to others.
    let (Some(reviewer), true, true) = (
        reviewer,
        why == UNKNOWN,
        audiences.iter().any(|it| it == audience),
    ) else {
        return Err(why);
    };
    match reviewer.user(token).await {
        Ok(Some(user)) => Ok(Bearer {
            user,
            audiences: vec![audience.to_owned()],
        }),
        Ok(None) => Err(why),
        Err(more) => Err(format!("[{why}, {more}]")),
    }
}

/// Authenticates a request over the network: anonymous without credentials, 401 for invalid ones.
pub(crate) async fn authenticate(
    core: &Core,
    headers: &HeaderMap,
    certificate: Option<&UserInfo>,
) -> Result<UserInfo, ApiError> {
    let authenticated = |mut user: UserInfo| {
        user.groups.push("system:authenticated".to_owned());
        user
    };
    if let Some(user) = certificate {
        return Ok(authenticated(user.clone()));
    }
    let Some(value) = headers.get(header::AUTHORIZATION) else {
        return Ok(UserInfo::anonymous());
    };
    let token = value
        .to_str()
        .ok()
        .and_then(|value| value.strip_prefix("Bearer "))
        .map(str::trim);
    let token = token.ok_or_else(ApiError::unauthorized)?;
    let audiences = [core.authenticator.audience().to_owned()];
    match bearer(core, token, &audiences).await {
        Ok(bearer) => Ok(authenticated(bearer.user)),
        Err(why) => {
            tracing::debug!(why, "a bearer token is rejected");
            Err(ApiError::unauthorized())
        }
    }
}
