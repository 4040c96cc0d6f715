//! The back ends of volumes, and how a new volume gets one.

use serde_json::{Value, json};

use crate::cloud::call::Call;
use crate::cloud::document::{Doc, Fields};
use crate::cloud::fault::Fault;
use crate::cloud::kind::Kind;

/// Back ends of each zone.
const BACK_ENDS: u64 = 3;

/// With which volumes a new one shares its back end, and with which it does not.
#[derive(Default)]
pub(super) struct Hints {
    same: Option<Vec<String>>,
    different: Option<Vec<String>>,
}

/// The hints of a request.
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

/// One id, or a list of different ones.
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

/// The back end of a new volume; null if the hints leave none, and the volume will become `error`. A copy has the back
/// end of its source.
pub(super) fn place(
    call: &Call<'_>,
    id: &str,
    zone: &str,
    hints: &Hints,
    source: Option<&str>,
) -> Value {
    let on = |host: &str, ids: &[String]| {
        ids.iter().any(|id| {
            let volume = call.accessible(Kind::Volume, id);
            volume.is_some_and(|volume| volume.text("_host") == host)
        })
    };
    let first = id.get(..8).unwrap_or_default();
    let first = u64::from_str_radix(first, 16).unwrap_or_default();
    let all = (0..BACK_ENDS).map(|step| format!("{zone}-vol{}", (first + step) % BACK_ENDS + 1));
    let mut fitting = all
        .filter(|host| source.is_none_or(|source| source == host))
        .filter(|host| hints.same.as_ref().is_none_or(|ids| on(host, ids)))
        .filter(|host| !hints.different.as_ref().is_some_and(|ids| on(host, ids)));
    fitting.next().map_or(Value::Null, |host| json!(host))
}
