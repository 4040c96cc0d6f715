//! The data of images. Small data is stored; of large data only size and hash.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use sha2::{Digest, Sha512};

use super::{find, find_writable};
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::zulu;
use crate::cloud::document::Fields;
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;

/// Maximum size of stored data in bytes.
const KEPT: usize = 1 << 20;

/// PUT /v2/images/{id}/file
pub(super) fn upload(call: &mut Call<'_>) -> Answer {
    let doc = find_writable(call)?;
    if doc.text("status") != "queued" {
        return Err(Fault::conflict(format!(
            "Image status transition from {} to saving is not allowed",
            doc.text("status")
        )));
    }
    if !doc.given("disk_format") || !doc.given("container_format") {
        return Err(Fault::bad(
            "Properties disk_format, container_format must be set prior to saving data.",
        ));
    }
    let data = call.raw_body.clone();
    let hash: String = Sha512::digest(&data)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let now = zulu(call.now());
    call.state.edit(Kind::Image, doc.text("id"), |doc| {
        doc.set("status", "active");
        doc.set("size", data.len());
        doc.set("virtual_size", data.len());
        doc.set("os_hash_algo", "sha512");
        doc.set("os_hash_value", hash);
        doc.set("updated_at", now);
        if data.len() <= KEPT {
            doc.set("_data", STANDARD.encode(&data));
        }
    });
    Ok(Reply::empty(204))
}

/// GET /v2/images/{id}/file
pub(super) fn download(call: &mut Call<'_>) -> Answer {
    let doc = find(call)?;
    if doc.text("status") == "queued" {
        return Ok(Reply {
            raw: Some(("", Bytes::new())),
            ..Reply::empty(204)
        });
    }
    if doc.text("status") == "deactivated" && !call.who.admin() {
        return Err(Fault::forbidden(
            "The requested image has been deactivated. Image data download is forbidden.",
        ));
    }
    if !doc.given("_data") {
        return Err(Fault::missing(
            "The simulated cloud does not keep image data of more than 1 MiB.",
        ));
    }
    let data = STANDARD.decode(doc.text("_data")).unwrap_or_default();
    Ok(Reply {
        raw: Some(("application/octet-stream", Bytes::from(data))),
        ..Reply::empty(200)
    })
}
