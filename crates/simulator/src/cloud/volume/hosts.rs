//! The back ends of volumes, and how a new volume gets one.

use serde_json::{Value, json};

use crate::cloud::call::Call;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;

/// Back ends of each zone.
const BACK_ENDS: u64 = 3;

/// Volumes with which a new one shares its back end, and volumes with which it does not.
#[derive(Default)]
pub(super) struct Hints {
    same: Option<Vec<String>>,
    different: Option<Vec<String>>,
}

/// Returns the [`Hints`] of a request.
pub(super) fn hints(given: Option<&Value>) -> Result<Hints, Fault> {
    let given = match given {
        None | Some(Value::Null) => return Ok(Hints::default()),
        Some(Value::Object(given)) => given,
        Some(other) => {
            return Err(Fault::bad(format!(
                "Invalid input for field/attribute OS-SCH-HNT:scheduler_hints. Value: {other}. {other} is not of type \
                 'object', 'null'"
            )));
        }
    };
    Ok(Hints {
        same: volumes(given, "same_host")?,
        different: volumes(given, "different_host")?,
    })
}

/// Returns one id, or a list of different ones, or a [`Fault`].
fn volumes(given: &Doc, name: &str) -> Result<Option<Vec<String>>, Fault> {
    let Some(value) = given.get(name) else {
        return Ok(None);
    };
    let one = |value: &Value| {
        let text = value.as_str()?;
        uuid::Uuid::try_parse(text).ok()?;
        Some(text.to_owned())
    };
    let ids: Option<Vec<String>> = match value {
        Value::Array(items) => items.iter().map(one).collect(),
        value => one(value).map(|id| vec![id]),
    };
    match ids {
        Some(ids) => Ok(Some(ids).filter(|ids| !ids.is_empty())),
        None => Err(Fault::bad(format!(
            "Invalid input for field/attribute {name}. Value: {value}. {value} is not valid under any of the given \
             schemas"
        ))),
    }
}

/// Where a new volume or group can be.
pub(super) struct HostFilter<'a> {
    pub zone: &'a str,
    /// `volume_backend_name` of the types; empty for any back end of the zone.
    pub back_end: &'a str,
    pub hints: &'a Hints,
    /// Back end of the source or of the group.
    pub beside: Option<&'a str>,
}

/// Returns the back end of a new volume or group; null if none fits: the status then becomes `error`.
pub(super) fn place(call: &Call<'_>, id: &str, wanted: &HostFilter<'_>) -> Value {
    let HostFilter {
        zone,
        back_end,
        hints,
        beside,
    } = wanted;
    let on = |host: &str, ids: &[String]| {
        ids.iter().any(|id| {
            let volume = call.accessible(Kind::Volume, id);
            volume.is_some_and(|volume| volume.text("_host") == host)
        })
    };
    let first = id.get(..8).unwrap_or_default();
    let first = u64::from_str_radix(first, 16).unwrap_or_default();
    let of_zone =
        || (0..BACK_ENDS).map(|step| format!("{zone}-vol{}", (first + step) % BACK_ENDS + 1));
    let all: Vec<String> = match (beside, *back_end) {
        (Some(host), _) => vec![(*host).to_owned()],
        (None, "") => of_zone().collect(),
        (None, name) => vec![format!("{zone}-{name}")],
    };
    let mut fitting = all
        .into_iter()
        .filter(|host| hints.same.as_ref().is_none_or(|ids| on(host, ids)))
        .filter(|host| !hints.different.as_ref().is_some_and(|ids| on(host, ids)));
    fitting.next().map_or(Value::Null, |host| json!(host))
}
