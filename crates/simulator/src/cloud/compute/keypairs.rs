//! SSH keypairs of a user.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::naive_micros;
use crate::cloud::document::{Doc, Fields, doc as to_doc};
use crate::cloud::fault::Fault;
use crate::cloud::identity_hash;
use crate::cloud::kind::Kind;
use crate::cloud::route::Table;

/// Registers the operations.
pub(crate) fn routes(table: &mut Table<'_>) {
    table
        .get("/v2.1/os-keypairs", |call| {
            let keypairs = call.state.by(Kind::Keypair, "user_id", &call.who.user_id);
            let limit = call
                .query
                .limit()
                .ok()
                .flatten()
                .filter(|_| call.version >= 35);
            let marker = call.query.get("marker").unwrap_or_default();
            let mut rest: Vec<_> = keypairs
                .iter()
                .filter(|doc| doc.text("name") > marker)
                .collect();
            rest.sort_by(|a, b| a.text("name").cmp(b.text("name")));
            rest.truncate(limit.unwrap_or(1000));
            let all: Vec<Value> = rest
                .iter()
                .map(|doc| json!({"keypair": view(call, doc, false)}))
                .collect();
            let mut body = json!({"keypairs": all});
            // Nova adds the link as soon as a page is full.
            if let (Some(limit), Some(last)) = (limit, rest.last())
                && rest.len() == limit
            {
                let query = call.query.with_marker(last.text("name"), false);
                let href = format!("{}{}?{query}", call.root(), call.path);
                body["keypairs_links"] = json!([{"rel": "next", "href": href}]);
            }
            Ok(Reply::ok(body))
        })
        .get("/v2.1/os-keypairs/{name}", |call| {
            let owner = owner(call)?;
            let doc = find(call, &owner)?;
            Ok(Reply::ok(json!({"keypair": view(call, &doc, true)})))
        })
        .post("/v2.1/os-keypairs", create)
        .delete("/v2.1/os-keypairs/{name}", |call| {
            let doc = find(call, &call.who.user_id)?;
            call.state.remove(Kind::Keypair, doc.text("_key"));
            Ok(Reply::empty(if call.version >= 2 { 204 } else { 202 }))
        });
}

/// Returns the user of the requested keypair: the caller, or any user for an administrator from microversion 2.10 on.
fn owner(call: &Call<'_>) -> Result<String, Fault> {
    let asked = call.query.get("user_id").filter(|_| call.version >= 10);
    match asked {
        Some(user) if user != call.who.user_id && !call.who.admin() => Err(Fault::forbidden(
            "Policy doesn't allow os_compute_api:os-keypairs:show to be performed.",
        )),
        Some(user) => Ok(user.to_owned()),
        None => Ok(call.who.user_id.clone()),
    }
}

fn find(call: &Call<'_>, user: &str) -> Result<std::sync::Arc<Doc>, Fault> {
    let name = call.parameter("name");
    let key = format!("{user}/{name}");
    let missing = || Fault::missing(format!("Keypair {name} not found for user {user}"));
    call.state.get(Kind::Keypair, &key).ok_or_else(missing)
}

fn create(call: &mut Call<'_>) -> Answer {
    let given = call.wrapped("keypair")?;
    let name = given.text("name").to_owned();
    if name.is_empty() || name.len() > 255 {
        return Err(Fault::bad(
            "Invalid input for field/attribute name. Value: . '' is too short",
        ));
    }
    let key = format!("{}/{name}", call.who.user_id);
    if call.state.get(Kind::Keypair, &key).is_some() {
        return Err(Fault::conflict(format!(
            "Key pair '{name}' already exists."
        )));
    }
    let mut private = None;
    let public = match given.text("public_key") {
        "" if call.version >= 92 => {
            return Err(Fault::bad(
                "Invalid input for field/attribute keypair. 'public_key' is a required property",
            ));
        }
        "" => {
            let (public, secret) = generate()
                .map_err(|_| Fault::new(500, "KeyGeneration", "Key generation failed"))?;
            private = Some(secret);
            public
        }
        text => text.to_owned(),
    };
    let material = public
        .split_whitespace()
        .nth(1)
        .and_then(|data| STANDARD.decode(data).ok());
    let Some(material) = material else {
        return Err(Fault::bad(
            "Keypair data is invalid: failed to generate fingerprint",
        ));
    };
    // A real fingerprint is an MD5 hash of the key; clients depend on its form only.
    let digest = identity_hash(&STANDARD.encode(material));
    let pairs: Vec<&str> = (0..16)
        .map(|index| &digest[index * 2..index * 2 + 2])
        .collect();
    let id = call.state.count(Kind::Keypair) + 1;
    let doc = to_doc(
        json!({"_key": key, "id": id, "name": name, "user_id": call.who.user_id,
        "public_key": public, "fingerprint": pairs.join(":"), "created_at": naive_micros(call.now()),
        "type": "ssh"}),
    );
    call.state.put(Kind::Keypair, doc.clone());
    let mut body = view(call, &doc, false);
    body["user_id"] = json!(call.who.user_id);
    if let Some(private) = private {
        body["private_key"] = json!(private);
    }
    Ok(Reply::with(
        if call.version >= 2 { 201 } else { 200 },
        json!({"keypair": body}),
    ))
}

fn view(call: &Call<'_>, doc: &Doc, detail: bool) -> Value {
    let mut out = json!({"name": doc.text("name"), "public_key": doc.text("public_key"),
        "fingerprint": doc.text("fingerprint")});
    if call.version >= 2 {
        out["type"] = json!(doc.text("type"));
    }
    if detail {
        out["id"] = json!(doc.number("id"));
        out["user_id"] = json!(doc.text("user_id"));
        out["created_at"] = json!(doc.text("created_at"));
        out["updated_at"] = Value::Null;
        out["deleted"] = json!(false);
        out["deleted_at"] = Value::Null;
    }
    out
}

/// Generates an Ed25519 pair: the public key as a line of OpenSSH, the private key as PKCS#8.
fn generate() -> Result<(String, String), rcgen::Error> {
    let pair = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519)?;
    let mut blob = Vec::new();
    for part in [b"ssh-ed25519".as_slice(), pair.public_key_raw()] {
        blob.extend(u32::try_from(part.len()).unwrap_or_default().to_be_bytes());
        blob.extend_from_slice(part);
    }
    Ok((
        format!("ssh-ed25519 {} Generated-by-Nova", STANDARD.encode(blob)),
        pair.serialize_pem(),
    ))
}
