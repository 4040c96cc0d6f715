//! Block devices of a new server: boot device and volumes.

use serde_json::{Value, json};

use crate::cloud::call::Call;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::volume;

/// Boot device and volumes of a server.
pub(crate) struct Plan {
    /// Id of the image, empty for a server that boots from a volume.
    pub(crate) image: String,
    pub(crate) image_name: String,
    pub(crate) devices: Vec<Device>,
}

/// One volume of a new server.
pub(crate) struct Device {
    source: Source,
    delete_on_termination: bool,
    tag: String,
}

enum Source {
    Existing(String),
    New {
        size: i64,
        volume_type: String,
        image: Option<String>,
        snapshot: Option<String>,
    },
}

/// Makes a [`Plan`] from `imageRef` and `block_device_mapping_v2`.
pub(crate) fn plan(call: &Call<'_>, given: &Doc) -> Result<Plan, Fault> {
    let image_id = given
        .text("imageRef")
        .rsplit('/')
        .next()
        .unwrap_or_default()
        .to_owned();
    let mut plan = Plan {
        image: String::new(),
        image_name: String::new(),
        devices: Vec::new(),
    };
    if !image_id.is_empty() {
        let image = image(call, &image_id)?;
        image.text("id").clone_into(&mut plan.image);
        image.text("name").clone_into(&mut plan.image_name);
    }
    let mut bootable = !image_id.is_empty();
    for entry in given.list("block_device_mapping_v2") {
        let Some(entry) = entry.as_object() else {
            return Err(super::create::wrong_type("block_device_mapping_v2", entry));
        };
        let boots = index(entry) == Some(0);
        bootable |= boots;
        let local = entry.text("destination_type") == "local";
        match entry.text("source_type") {
            "image" if local => {}
            "blank" if local => {}
            "volume" | "image" | "snapshot" | "blank" => {
                let device = device(call, entry)?;
                if boots {
                    if let Source::New {
                        image: Some(id), ..
                    } = &device.source
                    {
                        image(call, id)?
                            .text("name")
                            .clone_into(&mut plan.image_name);
                    }
                    plan.image = String::new();
                    plan.devices.insert(0, device);
                } else {
                    plan.devices.push(device);
                }
            }
            other => {
                return Err(Fault::bad(format!(
                    "Invalid input for field/attribute source_type. Value: {other}. '{other}' is not \
                     one of ['volume', 'image', 'snapshot', 'blank']"
                )));
            }
        }
    }
    if !bootable {
        return Err(Fault::bad(
            "Block Device Mapping is Invalid: Boot sequence for the instance and image/block device \
             mapping combination is not valid.",
        ));
    }
    Ok(plan)
}

/// Creates the new volumes and reserves the existing ones; the result is stored in the server.
pub(crate) fn carry_out(
    call: &mut Call<'_>,
    devices: Vec<Device>,
    server: &str,
    zone: &str,
    has_image: bool,
) -> Result<Vec<Value>, Fault> {
    let mut out = Vec::new();
    // With an image, that is the first disk.
    let first = u32::from(has_image);
    let cross_zone = call.settings.changeable.read().cross_az_attach;
    for (device, index) in devices.into_iter().zip(first..) {
        let mut attachment = Value::Null;
        let id = match device.source {
            Source::Existing(id) => {
                attachment = json!(volume::reserve(call.state, &id, server));
                id
            }
            Source::New {
                size,
                volume_type,
                image,
                snapshot,
            } => {
                // Nova names a zone only where volumes of others cannot be attached.
                let zone = if cross_zone { "" } else { zone };
                let given = json!({"size": size, "volume_type": volume_type, "imageRef": image,
                    "snapshot_id": snapshot, "name": "", "availability_zone": zone});
                volume::create_for_server(call, given)?
            }
        };
        out.push(
            json!({"id": id, "delete_on_termination": device.delete_on_termination,
            "device": format!("/dev/vd{}", super::volumes::letters(index)), "tag": device.tag,
            "attachment": attachment, "bdm": call.state.new_id()}),
        );
    }
    Ok(out)
}

fn device(call: &Call<'_>, entry: &Doc) -> Result<Device, Fault> {
    let id = entry.text("uuid").to_owned();
    let size = match entry.get("volume_size") {
        Some(Value::String(text)) => text.parse().unwrap_or(0),
        Some(value) => value.as_i64().unwrap_or(0),
        None => 0,
    };
    let new = |size, image, snapshot| Source::New {
        size,
        volume_type: entry.text("volume_type").to_owned(),
        image,
        snapshot,
    };
    let source = match entry.text("source_type") {
        "volume" => {
            let found = call.accessible(Kind::Volume, &id).ok_or_else(|| {
                Fault::bad(format!(
                    "Block Device Mapping is Invalid: failed to get volume {id}."
                ))
            })?;
            if found.flag("multiattach") && call.version < 60 {
                return Err(Fault::bad(
                    "Multiattach volumes are only supported starting with compute API version 2.60.",
                ));
            }
            if let Some(refusal) = volume::refusal(&found, "") {
                return Err(Fault::bad(format!(
                    "Invalid volume: Invalid input received: {} (HTTP 400)",
                    refusal.message
                )));
            }
            Source::Existing(id)
        }
        "image" => {
            let found = image(call, &id)?;
            if size < found.number("min_disk").max(1) {
                return Err(Fault::bad(
                    "Images with destination_type 'volume' need to have a non-zero size specified",
                ));
            }
            new(size, Some(id), None)
        }
        "snapshot" => {
            let found = call.accessible(Kind::Snapshot, &id).ok_or_else(|| {
                Fault::bad(format!(
                    "Block Device Mapping is Invalid: failed to get snapshot {id}."
                ))
            })?;
            new(size.max(found.number("size")), None, Some(id))
        }
        _ => {
            if size < 1 {
                return Err(Fault::bad(
                    "Blank volumes (source: 'blank', dest: 'volume') need to have non-zero size",
                ));
            }
            new(size, None, None)
        }
    };
    Ok(Device {
        source,
        delete_on_termination: entry.flag("delete_on_termination"),
        tag: entry.text("tag").to_owned(),
    })
}

/// Image that the caller may use.
pub(super) fn image(call: &Call<'_>, id: &str) -> Result<std::sync::Arc<Doc>, Fault> {
    call.state
        .get(Kind::Image, id)
        .filter(|image| {
            image.text("visibility") != "private"
                || image.text("owner") == call.who.project_id
                || call.who.admin()
        })
        .ok_or_else(|| Fault::bad("Can not find requested image"))
}

fn index(entry: &Doc) -> Option<i64> {
    match entry.get("boot_index") {
        Some(Value::String(text)) => text.parse().ok(),
        Some(value) => value.as_i64(),
        None => None,
    }
}
