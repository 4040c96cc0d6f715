//! Objects kept by the process itself: no client changes them.

use serde_json::Value;

use crate::call::Call;
use crate::error::ApiError;
use crate::user::UserInfo;

/// Rejects a write of a client to an object that the process keeps. `new` is `None` on a deletion, `old` on a create.
///
/// # Errors
/// 403 with the reason.
pub(super) fn admit(call: &Call, new: Option<&Value>, old: Option<&Value>) -> Result<(), ApiError> {
    let (Some(kept), Some(old)) = (&call.core.options.kept, old) else {
        return Ok(());
    };
    if call.user.name == UserInfo::admin().name {
        return Ok(());
    }
    let name = old["metadata"]["name"].as_str().unwrap_or_default();
    match kept(new, old) {
        Some(why) => Err(ApiError::forbidden(
            call.group(),
            &call.resource.plural,
            name,
            &why,
        )),
        None => Ok(()),
    }
}
