//! Bootstrap tokens of joining machines (`bootstrap.kubernetes.io/token` Secrets in kube-system).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::Value;

use crate::store::Store;
use crate::user::UserInfo;

/// User of a bootstrap token, if the token is known, enabled for authentication and not expired.
pub(super) fn user(store: &Store, token: &str, now: Timestamp) -> Option<UserInfo> {
    let (id, secret) = token.split_once('.')?;
    let simple = |text: &str| {
        text.bytes()
            .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    };
    if id.len() != 6 || secret.len() != 16 || !simple(id) || !simple(secret) {
        return None;
    }
    let object = store.get("/secrets", &format!("kube-system/bootstrap-token-{id}"))?;
    if object.facts.deleting {
        return None;
    }
    let stored = object.value();
    let field = |name: &str| text(&stored, name).unwrap_or_default();
    let fits = stored["type"] == "bootstrap.kubernetes.io/token"
        && field("token-id") == id
        && super::digest(&field("token-secret")) == super::digest(secret)
        && field("usage-bootstrap-authentication") == "true";
    let expired = text(&stored, "expiration").is_some_and(|time| {
        time.parse::<Timestamp>().is_ok_and(|time| time <= now)
            || time.parse::<Timestamp>().is_err()
    });
    if !fits || expired {
        return None;
    }
    let mut groups = vec!["system:bootstrappers".to_owned()];
    let extra = field("auth-extra-groups");
    let extra = extra
        .split(',')
        .map(str::trim)
        .filter(|group| group.starts_with("system:bootstrappers:"));
    groups.extend(extra.map(str::to_owned));
    Some(UserInfo {
        name: format!("system:bootstrap:{id}"),
        groups,
        ..UserInfo::default()
    })
}

fn text(secret: &Value, field: &str) -> Option<String> {
    let bytes = STANDARD.decode(secret["data"][field].as_str()?).ok()?;
    String::from_utf8(bytes).ok()
}
