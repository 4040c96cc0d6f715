//! The conversion of a kind: its spec, its status, and the stash of fields without equivalent.
//!
//! Conversion works on JSON. A kube-apiserver converts not only whole objects: server-side apply converts the rest of
//! an object after fields were removed, with `null` for objects and lists that lost their last member. So absent fields
//! stay absent, unknown ones pass unchanged, and `null` moves like any value.

use serde_json::{Value, json};

use super::ConversionError;
use super::fields::Turn;
use super::stash::{self, Lists, Stash};

/// The conversions of a kind.
#[derive(Clone, Copy)]
pub(crate) struct Mapping {
    /// The spec, from v1beta1 to v1beta2.
    pub(crate) up: Turn,
    /// The spec, from v1beta2 to v1beta1.
    pub(crate) down: Turn,
    /// The status, up and down, if the kind has one.
    pub(crate) status: Option<(Turn, Turn)>,
}

impl Mapping {
    /// Converts `object` of `group`; `None` for other groups and versions.
    pub(crate) fn convert(
        &self,
        object: &Value,
        group: &str,
        kind: &str,
        from: &str,
        to: &str,
    ) -> Option<Result<Value, ConversionError>> {
        let version = |text: &str| {
            let rest = text.strip_prefix(group)?.strip_prefix('/')?;
            matches!(rest, "v1beta1" | "v1beta2").then(|| rest.to_owned())
        };
        let (from_version, to_version) = (version(from)?, version(to)?);
        let turn = OneWay {
            mapping: self,
            group,
            kind,
            from: &from_version,
            to: &to_version,
        };
        let malformed = |problem| ConversionError::Malformed {
            kind: kind.to_owned(),
            version: from.to_owned(),
            problem,
        };
        Some(turn.convert(object, to).map_err(malformed))
    }
}

/// A conversion in one direction.
struct OneWay<'a> {
    mapping: &'a Mapping,
    group: &'a str,
    kind: &'a str,
    from: &'a str,
    to: &'a str,
}

impl OneWay<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        let mut out = object.clone();
        let lists = Lists::of(self.group, self.kind, self.from);
        let kept = stash::take(&mut out, self.to);
        let mut lost = Stash::default();
        let spec = self.in_order(self.mapping.up, self.mapping.down);
        if let Some((after, again)) = there_and_back(object, "spec", spec)? {
            lost.add_spec(&object["spec"], &again, lists);
            out["spec"] = after;
        }
        if let Some((up, down)) = self.mapping.status {
            let status = self.in_order(up, down);
            if let Some((after, again)) = there_and_back(object, "status", status)? {
                lost.add_status(&object["status"], &again, lists);
                out["status"] = after;
            }
        }
        kept.restore(&mut out, Lists::of(self.group, self.kind, self.to));
        out["apiVersion"] = json!(api_version);
        stash::put(&mut out, self.from, &lost);
        Ok(out)
    }

    /// The conversion of this direction, and its inverse.
    fn in_order(&self, up: Turn, down: Turn) -> (Turn, Turn) {
        if self.from == "v1beta1" {
            (up, down)
        } else {
            (down, up)
        }
    }
}

/// The part `name` of an object in the other version, and the result of converting it back.
fn there_and_back(
    object: &Value,
    name: &str,
    (there, back): (Turn, Turn),
) -> Result<Option<(Value, Value)>, String> {
    let Some(before) = object.get(name) else {
        return Ok(None);
    };
    let mut after = before.clone();
    apply(there, &mut after, name)?;
    let mut again = after.clone();
    apply(back, &mut again, name)?;
    Ok(Some((after, again)))
}

fn apply(turn: Turn, value: &mut Value, name: &str) -> Result<(), String> {
    match value {
        Value::Object(fields) => turn(fields).map_err(|problem| format!("{name}.{problem}")),
        Value::Null => Ok(()),
        _ => Err(format!("{name} is not an object")),
    }
}
