//! POST of a volume: the checks in Cinder's order, source, type, zone and back end.

use std::sync::Arc;

use serde_json::{Value, json};

use super::{body, groups, hosts, quotas, volume_types, volumes};
use crate::cloud::attribute::python_list;
use crate::cloud::call::{Answer, Call, Reply};
use crate::cloud::clock::naive_micros;
use crate::cloud::document::{Doc, Fields, doc as to_doc};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;
use crate::cloud::latency::Transition;

/// Fields of a new volume known to Cinder; from 3.53 on, others are refused.
const FIELDS: [&str; 16] = [
    "name",
    "description",
    "display_name",
    "display_description",
    "volume_type",
    "metadata",
    "snapshot_id",
    "source_volid",
    "consistencygroup_id",
    "size",
    "availability_zone",
    "multiattach",
    "image_id",
    "imageRef",
    "group_id",
    "backup_id",
];
/// Scheduler hints of a request.
const HINTS: &str = "OS-SCH-HNT:scheduler_hints";
/// First microversion that creates a volume in a group.
const IN_A_GROUP: u32 = 13;
/// First microversion that creates a volume from a backup.
const FROM_A_BACKUP: u32 = 47;

/// POST /volumes
pub(crate) fn post(call: &mut Call<'_>) -> Answer {
    let mut given = call.wrapped("volume")?;
    body::only(&call.body, "volume", &[HINTS])?;
    body::fields(call, "volume", &given, &FIELDS)?;
    body::texts(&given, &["name", "description"])?;
    body::metadata(&given)?;
    let flag = |name: &str| given.get(name).is_some_and(body::is_true);
    if flag("multiattach") {
        return Err(Fault::bad(
            "multiattach parameter has been removed. The default behavior is to use multiattach enabled volume types. \
             Contact your administrator to create a multiattach enabled volume type and use it to create multiattach \
             volumes.",
        ));
    }
    // Fields newer than the version are ignored.
    for (field, since) in [("group_id", IN_A_GROUP), ("backup_id", FROM_A_BACKUP)] {
        if call.version < since {
            given.remove(field);
        }
    }
    let hints = hosts::hints(call.body.get(HINTS))?;
    let doc = create(call, &given, &hints)?;
    Ok(Reply::with(
        202,
        json!({"volume": volumes::brief(call, &doc)}),
    ))
}

/// Creates a volume for a new server.
pub(crate) fn create_for_server(call: &mut Call<'_>, given: Value) -> Result<String, Fault> {
    let doc = create(call, &to_doc(given), &hosts::Hints::default())?;
    Ok(doc.text("id").to_owned())
}

/// Creates a volume for the restoration of a backup.
pub(crate) fn create_for_backup(call: &mut Call<'_>, given: Value) -> Result<String, Fault> {
    create_for_server(call, given)
}

/// Source of a new volume.
#[derive(Default)]
struct Source {
    snapshot: Option<Arc<Doc>>,
    volume: Option<Arc<Doc>>,
    backup: Option<Arc<Doc>>,
    image: Option<Arc<Doc>>,
}

pub(super) fn create(call: &mut Call<'_>, given: &Doc, hints: &hosts::Hints) -> Result<Doc, Fault> {
    let project = call.who.project_id.clone();
    let wanted_type = match given.text("volume_type") {
        "" => None,
        name => Some(volume_types::resolve(call, name)?),
    };
    let source = source(call, given)?;
    let group = groups::of_new_volume(call, given.text("group_id"), wanted_type.as_deref())?;
    source.check_type(call, wanted_type.as_deref())?;
    source.check_status()?;
    let size = source.size(given)?;
    source.check_image(size)?;
    let kind = match wanted_type {
        Some(kind) => kind,
        None => volume_types::resolve(call, source.type_name())?,
    };
    let zone = zone(call, given, &source, group.as_deref(), &kind)?;
    let encrypted = kind.given("_encryption");
    let multiattach = volume_types::is_multiattach(&kind);
    if multiattach && encrypted {
        return Err(Fault::bad(
            "Invalid volume: Multiattach cannot be used with encrypted volumes.",
        ));
    }
    quotas::check_volume(call, &project, kind.text("name"), size)?;
    let id = call.state.new_id();
    let key = encrypted.then(|| call.state.new_id());
    let beside = source.host().or_else(|| {
        let group = group.as_ref()?;
        Some(group.text("_host")).filter(|host| !host.is_empty())
    });
    let wanted = hosts::HostFilter {
        zone: &zone,
        back_end: &volume_types::back_end(&kind),
        hints,
        beside,
    };
    let host = hosts::place(call, &id, &wanted);
    let mut doc = to_doc(json!({
        "id": id, "project_id": project, "user_id": call.who.user_id, "name": body::trimmed(given, "name"),
        "description": given.get("description").cloned().unwrap_or_default(), "size": size,
        "status": "creating", "availability_zone": zone, "volume_type": kind.text("name"),
        "multiattach": multiattach,
        "snapshot_id": source.snapshot.as_ref().map(|doc| doc.text("id")),
        "source_volid": source.volume.as_ref().map(|doc| doc.text("id")),
        "bootable": source.bootable().to_string(), "encrypted": encrypted,
        "replication_status": null, "consistencygroup_id": null,
        "metadata": given.get("metadata").filter(|it| !it.is_null()).cloned().unwrap_or_else(|| json!({})),
        "created_at": naive_micros(call.now()), "updated_at": null,
        "_host": host, "_group": group.as_ref().map(|group| group.text("id")), "_encryption_key": key,
        "_backup": source.backup.as_ref().map(|doc| doc.text("id")),
    }));
    if let Some(metadata) = source.image_metadata() {
        doc.set("volume_image_metadata", metadata);
    }
    if let Some(backup) = &source.backup {
        let id = backup.text("id");
        call.state
            .edit(Kind::Backup, id, |doc| doc.set("status", "restoring"));
    }
    call.state.put(Kind::Volume, doc.clone());
    let delay = call.settings.latency.transition(Transition::Volume);
    call.state.schedule(delay, "created", Kind::Volume, &id);
    Ok(doc)
}

fn source(call: &Call<'_>, given: &Doc) -> Result<Source, Fault> {
    let found = |kind: Kind, field: &str, name: &str| match given.text(field) {
        "" => Ok(None),
        id => match call.accessible(kind, id) {
            Some(doc) => Ok(Some(doc)),
            None => Err(Fault::missing(format!("{name} {id} could not be found."))),
        },
    };
    let image = match given.text("imageRef") {
        "" => given.text("image_id"),
        image => image,
    };
    let image = match image {
        "" => None,
        image => Some(call.state.get(Kind::Image, image).ok_or_else(|| {
            Fault::bad("Invalid image identifier or unable to access requested image.")
        })?),
    };
    let source = Source {
        snapshot: found(Kind::Snapshot, "snapshot_id", "Snapshot")?,
        volume: found(Kind::Volume, "source_volid", "Volume")?,
        backup: found(Kind::Backup, "backup_id", "Backup")?,
        image,
    };
    let count = [
        &source.snapshot,
        &source.volume,
        &source.backup,
        &source.image,
    ];
    if count.into_iter().flatten().count() > 1 {
        return Err(Fault::bad(
            "Invalid input received: May specify only one of snapshot, imageRef, source_volume or backup",
        ));
    }
    Ok(source)
}

impl Source {
    fn check_status(&self) -> Result<(), Fault> {
        let sources = [
            (&self.snapshot, "snapshot", "snapshot", &["available"][..]),
            (
                &self.volume,
                "volume",
                "source volume",
                &["in-use", "available"],
            ),
            (&self.backup, "backup", "backup", &["available"]),
        ];
        for (source, kind, name, allowed) in sources {
            let status = source.as_ref().map_or("", |doc| doc.text("status"));
            if !status.is_empty() && !allowed.contains(&status) {
                return Err(Fault::bad(format!(
                    "Invalid {kind}: Originating {name} status must be one of '{}' values",
                    allowed.join(", ")
                )));
            }
        }
        Ok(())
    }

    /// Returns the given size, or else the source's.
    fn size(&self, given: &Doc) -> Result<i64, Fault> {
        let least = match (&self.volume, &self.snapshot, &self.backup) {
            (Some(doc), ..) | (_, _, Some(doc)) => doc.number("size"),
            (_, Some(doc), _) => doc.number("volume_size"),
            _ => 0,
        };
        let size = match given.get("size") {
            None | Some(Value::Null) => least,
            Some(value) => body::size("size", value)?,
        };
        let too_small = |text: String| Err(Fault::bad(format!("Invalid input received: {text}")));
        if size < 1 {
            return too_small(
                "Volume size 'None' must be an integer and greater than 0".to_owned(),
            );
        }
        if size >= least {
            return Ok(size);
        }
        if self.volume.is_some() {
            return too_small(format!(
                "Volume size '{size}'GB cannot be smaller than original volume size  {least}GB. They must be >= \
                 original volume size."
            ));
        }
        if self.snapshot.is_some() {
            return too_small(format!(
                "Volume size '{size}'GB cannot be smaller than the snapshot size {least}GB. They must be >= original \
                 snapshot size."
            ));
        }
        too_small(format!(
            "Volume size {size}GB cannot be smaller than the backup size {least}GB. It must be >= backup size."
        ))
    }

    fn check_image(&self, size: i64) -> Result<(), Fault> {
        let Some(image) = &self.image else {
            return Ok(());
        };
        let bad = |text: String| Err(Fault::bad(format!("Invalid input received: {text}")));
        if image.text("status") != "active" {
            return bad(format!("Image {} is not active.", image.text("id")));
        }
        let image_size = (image.number("size") + (1 << 30) - 1) >> 30;
        if image_size > size {
            return bad(format!(
                "Size of specified image {image_size}GB is larger than volume size {size}GB."
            ));
        }
        let min_disk = image.number("min_disk");
        if size < min_disk {
            return bad(format!(
                "Volume size {size}GB cannot be smaller than the image minDisk size {min_disk}GB."
            ));
        }
        Ok(())
    }

    /// Checks the type: a copy stays on the back end of its source, so the type must fit there.
    fn check_type(&self, call: &Call<'_>, wanted: Option<&Doc>) -> Result<(), Fault> {
        let Some(wanted) = wanted else { return Ok(()) };
        let hint = match (&self.volume, &self.snapshot) {
            (Some(_), _) => "either match source volume, or omit type argument",
            (_, Some(_)) => "recommend omitting the type argument",
            _ => return Ok(()),
        };
        let Ok(before) = volume_types::any(call, self.type_name()) else {
            return Ok(());
        };
        if volume_types::may_become(&before, wanted) {
            return Ok(());
        }
        Err(Fault::bad(format!(
            "Invalid input received: Invalid volume_type provided: {} (requested type is not compatible; {hint}).",
            wanted.text("id")
        )))
    }

    /// Returns the name of the type of the source; empty without one.
    fn type_name(&self) -> &str {
        let copied = self.volume.as_ref().or(self.snapshot.as_ref());
        copied.map_or("", |doc| match doc.text("volume_type") {
            "" => doc.text("_volume_type"),
            name => name,
        })
    }

    fn host(&self) -> Option<&str> {
        let copied = self.volume.as_ref().or(self.snapshot.as_ref())?;
        Some(copied.text("_host")).filter(|host| !host.is_empty())
    }

    fn bootable(&self) -> bool {
        let is_bootable = |doc: &Arc<Doc>| doc.text("bootable") == "true" || doc.flag("_bootable");
        let copied = [&self.volume, &self.snapshot, &self.backup];
        self.image.is_some() || copied.into_iter().flatten().any(is_bootable)
    }

    fn image_metadata(&self) -> Option<Value> {
        if let Some(image) = &self.image {
            return Some(metadata_of(image));
        }
        let copied = [&self.volume, &self.snapshot, &self.backup];
        let mut copied = copied.into_iter().flatten();
        copied.find_map(|doc| {
            let metadata = doc
                .get("volume_image_metadata")
                .or_else(|| doc.get("_image_metadata"));
            metadata.filter(|metadata| !metadata.is_null()).cloned()
        })
    }
}

fn metadata_of(image: &Doc) -> Value {
    let mut metadata = json!({"image_id": image.text("id"), "image_name": image.text("name"),
        "min_disk": image.number("min_disk").to_string(), "min_ram": "0",
        "disk_format": "qcow2", "container_format": "bare", "size": image.number("size").to_string()});
    for name in ["checksum", "os_distro"] {
        if image.given(name) {
            metadata[name] = json!(image.text(name));
        }
    }
    metadata
}

/// Returns the zone of the group, the request, the source, or the default one.
fn zone(
    call: &Call<'_>,
    given: &Doc,
    source: &Source,
    group: Option<&Doc>,
    kind: &Doc,
) -> Result<String, Fault> {
    let zones = &call.settings.volume_zones;
    let of_type = volume_types::zones(kind);
    let usable = |zone: &str| {
        let is_known = zones.iter().any(|known| known == zone);
        is_known && (of_type.is_empty() || of_type.iter().any(|allowed| allowed == zone))
    };
    let copied = source.volume.as_ref().or(source.snapshot.as_ref());
    let of_source = copied.map_or("", |doc| match doc.text("availability_zone") {
        "" => doc.text("_zone"),
        zone => zone,
    });
    let wanted = group.map_or(given.text("availability_zone"), |group| {
        group.text("availability_zone")
    });
    let wanted = if wanted.is_empty() { of_source } else { wanted };
    let zone = match wanted {
        "" => {
            let first = zones.iter().find(|zone| usable(zone));
            first.ok_or_else(|| {
                Fault::bad(format!(
                    "Volume type is only supported in these availability zones: {}",
                    python_list(&of_type)
                ))
            })?
        }
        zone => zone,
    };
    if !usable(zone) {
        return Err(Fault::bad(format!(
            "Availability zone '{zone}' is invalid."
        )));
    }
    if !of_source.is_empty() && of_source != zone {
        let what = if source.volume.is_some() {
            "source volume"
        } else {
            "snapshot"
        };
        return Err(Fault::bad(format!(
            "Invalid input received: Volume must be in the same availability zone as the {what}"
        )));
    }
    Ok(zone.to_owned())
}
