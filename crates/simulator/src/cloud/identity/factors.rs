//! Several factors: one-time passwords (TOTP), the rules of a user, and receipts of half-done logins.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::directory::{denied, listing, missing, one, required, with_link};
use super::login::{Login, is_enabled, named_user};
use super::tokens::hashed;
use super::validation::header;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::zulu_micros;
use crate::cloud::document::{Doc, Fields, doc};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::route::{Access, Table};

/// Lifetime of a passcode in seconds; the one before is valid, too.
const PERIOD: i64 = 30;
/// Keystone's `[receipt] expiration`.
const RECEIPT_MS: i64 = 300_000;
/// Header of a receipt.
const RECEIPT: &str = "openstack-auth-receipt";

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    let (many, single) = ("/v3/credentials", "/v3/credentials/{id}");
    table
        .on(Method::GET, many, Access::Token, |call| {
            let user = call.who.user_id.clone();
            let is_admin = call.who.admin();
            let all = call.state.all(Kind::SecondFactor);
            let visible = all.filter(|it| is_admin || it.text("user_id") == user);
            let visible = visible.cloned().collect();
            Ok(listing(call, "credentials", visible))
        })
        .on(Method::POST, many, Access::Token, create)
        .on(Method::GET, single, Access::Token, |call| {
            accessible(call, "get_credential")?;
            one(call, Kind::SecondFactor, "credential")
        })
        .on(Method::DELETE, single, Access::Token, |call| {
            let id = accessible(call, "delete_credential")?;
            call.state.remove(Kind::SecondFactor, &id);
            Ok(Reply::empty(204))
        });
}

/// POST /v3/credentials
fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("credential")?;
    let kind = required(&given, "credential", "type")?;
    let blob = required(&given, "credential", "blob")?;
    let user = match given.text("user_id") {
        "" => call.who.user_id.clone(),
        user => user.to_owned(),
    };
    if user != call.who.user_id && !call.who.admin() {
        return Err(denied("create_credential"));
    }
    let id = call.state.new_hex_id();
    let credential = doc(
        json!({"id": id, "type": kind, "blob": blob, "user_id": user, "project_id": given.get("project_id")}),
    );
    call.state.put(Kind::SecondFactor, credential.clone());
    let rendered = with_link(call, "credentials", credential);
    Ok(Reply::with(201, json!({"credential": rendered})))
}

fn accessible(call: &Call<'_>, action: &str) -> Result<String, Fault> {
    let id = call.parameter("id");
    let found = call.state.get(Kind::SecondFactor, id);
    let is_owner = |it: &Arc<Doc>| it.text("user_id") == call.who.user_id;
    match found {
        Some(found) if is_owner(&found) || call.who.admin() => Ok(id.to_owned()),
        None if call.who.admin() => Err(missing("credential", id)),
        _ => Err(denied(action)),
    }
}

/// Implements the [`Login`] by the method `totp`.
pub(super) fn totp(call: &Call<'_>, given: &Doc) -> Result<Login, Fault> {
    let user = given.get("user").and_then(Value::as_object);
    let user = user.ok_or_else(|| super::login::required("user"))?;
    let passcode = user.text("passcode");
    let found = named_user(call.state, user)
        .filter(|user| is_enabled(call.state, user))
        .ok_or_else(Fault::unauthenticated)?;
    let step = call.now().as_second().div_euclid(PERIOD);
    let factors = call
        .state
        .by(Kind::SecondFactor, "user_id", found.text("id"));
    let is_good = factors
        .iter()
        .filter(|factor| factor.text("type") == "totp")
        .filter_map(|factor| secret(factor.text("blob")))
        .any(|secret| {
            [step, step - 1]
                .iter()
                .any(|step| code(&secret, *step) == passcode)
        });
    match is_good {
        true => Ok(Login::new(found, "totp")),
        false => Err(Fault::new(
            401,
            "Unauthorized",
            "Invalid username or TOTP passcode",
        )),
    }
}

/// Returns the six digits of a step of 30 seconds (RFC 6238, SHA-1).
pub(crate) fn code(secret: &[u8], step: i64) -> String {
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret);
    let tag = ring::hmac::sign(&key, &step.to_be_bytes());
    let tag = tag.as_ref();
    let at = usize::from(tag.last().copied().unwrap_or_default() & 15);
    let number = tag.iter().skip(at).take(4);
    let number = number.fold(0_u32, |sum, byte| sum << 8 | u32::from(*byte)) & 0x7fff_ffff;
    format!("{:06}", number % 1_000_000)
}

/// Returns the bytes of a secret in base 32, with or without padding.
fn secret(text: &str) -> Option<Vec<u8>> {
    let (mut out, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for letter in text.trim_end_matches('=').bytes() {
        let value = match letter.to_ascii_uppercase() {
            letter @ b'A'..=b'Z' => letter - b'A',
            letter @ b'2'..=b'7' => letter - b'2' + 26,
            _ => return None,
        };
        bits = bits << 5 | u32::from(value);
        count += 5;
        if count >= 8 {
            count -= 8;
            out.push(u8::try_from(bits >> count & 255).ok()?);
        }
    }
    Some(out)
}

/// Adds the methods of the receipt in the request to a [`Login`].
pub(super) fn with_receipt(call: &Call<'_>, login: &mut Login) -> Result<(), Fault> {
    let Some(receipt) = header(call.headers, RECEIPT) else {
        return Ok(());
    };
    let unknown = || Fault::new(401, "Unauthorized", "Could not find auth receipt.");
    let receipt = call.state.get(Kind::Receipt, &hashed(receipt));
    let receipt = receipt
        .filter(|it| it.text("user_id") == login.user.text("id"))
        .filter(|it| it.number("expires_ms") > call.now().as_millisecond())
        .ok_or_else(unknown)?;
    for method in receipt.texts("methods") {
        if !login.methods.iter().any(|known| known == method) {
            login.methods.push(method.to_owned());
        }
    }
    Ok(())
}

/// Returns the answer to a [`Login`] whose methods satisfy none of the user's rules (`multi_factor_auth_rules`): a
/// receipt, with which the client continues. `None` if a rule is satisfied.
pub(super) fn incomplete(call: &mut Call<'_>, login: &Login, known: &[&str]) -> Option<Reply> {
    let options = login.user.object("options");
    let is_off = options.get("multi_factor_auth_enabled") == Some(&Value::Bool(false));
    let rules: Vec<Vec<String>> = options
        .list("multi_factor_auth_rules")
        .iter()
        .filter_map(Value::as_array)
        .map(|rule| {
            let methods = rule.iter().filter_map(Value::as_str);
            let methods = methods.filter(|method| known.contains(method));
            methods.map(str::to_owned).collect()
        })
        .collect();
    let fulfils = |rule: &Vec<String>| rule.iter().all(|method| login.methods.contains(method));
    if is_off || rules.is_empty() || rules.iter().any(fulfils) {
        return None;
    }
    let receipt = format!(
        "gAAAAA{}",
        URL_SAFE_NO_PAD.encode(rand::random::<[u8; 48]>())
    );
    let now = call.now();
    let expires = now.as_millisecond().saturating_add(RECEIPT_MS);
    let kept = json!({"id": hashed(&receipt), "user_id": login.user.text("id"),
        "methods": login.methods, "expires_ms": expires});
    call.state.put(Kind::Receipt, doc(kept));
    let domain = call.state.get(Kind::Domain, login.user.text("domain_id"));
    let domain = domain.unwrap_or_default();
    let expires = Timestamp::from_millisecond(expires).map_or_else(|_| String::new(), zulu_micros);
    let body = json!({"receipt": {
            "methods": login.methods,
            "user": {"id": login.user.text("id"), "name": login.user.text("name"),
                "domain": {"id": domain.text("id"), "name": domain.text("name")}},
            "expires_at": expires, "issued_at": zulu_micros(now)},
        "required_auth_methods": rules});
    Some(Reply::with(401, body).header(RECEIPT, receipt))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_rfc_6238() {
        let key = secret("GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ").unwrap();
        assert_eq!(key, b"12345678901234567890");
        for (seconds, expected) in [(59, "287082"), (1_111_111_109, "081804")] {
            assert_eq!(code(&key, seconds / 30), expected);
        }
        assert_eq!(secret("1"), None);
    }
}
