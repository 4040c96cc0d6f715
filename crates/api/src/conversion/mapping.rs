//! Conversion of a kind: spec, status, and the [`Stash`] of fields without equivalent.
//!
//! Conversion works on JSON. A kube-apiserver also converts partial objects: server-side apply converts the rest of an
//! object after the removal of fields, with `null` for objects and lists that lost their last member. So absent fields
//! stay absent, unknown ones pass unchanged, and `null` moves like any value.

use serde_json::{Value, json};

use super::ConversionError;
use super::fields::{Done, Fields, Turn};
use super::moves::{self, Move};
use super::stash::{self, Lists, Stash};

/// Conversions of a kind.
#[derive(Clone, Copy)]
pub(crate) struct Mapping {
    /// Conversion of the spec, from v1beta1 to v1beta2.
    pub(crate) up: Turn,
    /// Conversion of the spec, from v1beta2 to v1beta1.
    pub(crate) down: Turn,
    /// Conversions of the status, up and down, if the kind has one.
    pub(crate) status: Option<(Turn, Turn)>,
    /// Versions before v1beta1, oldest first.
    pub(crate) older: &'static [Older],
}

/// Version before v1beta1, with the moves to its successor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Older {
    /// Its name.
    pub(crate) version: &'static str,
    /// Moves in the spec.
    pub(crate) spec: &'static [Move],
    /// Moves in the status; `None` for a version without status.
    pub(crate) status: Option<&'static [Move]>,
}

/// Versions common to all groups, after the older ones.
const COMMON: [&str; 2] = ["v1beta1", "v1beta2"];

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
        let place = |text: &str| {
            let version = text.strip_prefix(group)?.strip_prefix('/')?;
            self.versions().position(|known| known == version)
        };
        let turn = OneWay {
            mapping: self,
            group,
            kind,
            from: place(from)?,
            to: place(to)?,
        };
        let malformed = |problem| ConversionError::Malformed {
            kind: kind.to_owned(),
            version: from.to_owned(),
            problem,
        };
        Some(turn.convert(object, to).map_err(malformed))
    }

    /// All versions, oldest first.
    fn versions(&self) -> impl Iterator<Item = &'static str> {
        self.older.iter().map(|it| it.version).chain(COMMON)
    }

    /// Converts a spec between two versions, by their indices.
    fn spec(&self, fields: &mut Fields, from: usize, to: usize) -> Done {
        self.steps(fields, from, to, (self.up, self.down), |it| it.spec)
    }

    /// Converts a status between two versions; unchanged without a conversion.
    fn status(&self, fields: &mut Fields, from: usize, to: usize) -> Done {
        let Some(turns) = self.status else {
            return Ok(());
        };
        self.steps(fields, from, to, turns, |it| it.status.unwrap_or_default())
    }

    fn has_status(&self, place: usize) -> bool {
        match self.older.get(place) {
            Some(version) => version.status.is_some(),
            None => self.status.is_some(),
        }
    }

    fn steps(
        &self,
        fields: &mut Fields,
        from: usize,
        to: usize,
        (up, down): (Turn, Turn),
        moves: fn(&Older) -> &'static [Move],
    ) -> Done {
        let between = from.min(to)..from.max(to);
        let older = self
            .older
            .get(between.start..between.end.min(self.older.len()));
        let older = older.unwrap_or_default();
        // The last step is from v1beta1 to v1beta2.
        let is_last = between.end > self.older.len();
        if from < to {
            older
                .iter()
                .try_for_each(|it| moves::up(fields, moves(it)))?;
            return if is_last { up(fields) } else { Ok(()) };
        }
        if is_last {
            down(fields)?;
        }
        let mut older = older.iter().rev();
        older.try_for_each(|it| moves::down(fields, moves(it)))
    }
}

/// Conversion in one direction, between indices of versions.
struct OneWay<'a> {
    mapping: &'a Mapping,
    group: &'a str,
    kind: &'a str,
    from: usize,
    to: usize,
}

type Part = fn(&Mapping, &mut Fields, usize, usize) -> Done;

impl OneWay<'_> {
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        let name = |place| self.mapping.versions().nth(place).unwrap_or_default();
        let (from, to) = (name(self.from), name(self.to));
        let mut out = object.clone();
        let kept = stash::take(&mut out, to);
        let has_status = |place| self.mapping.has_status(place);
        let both = has_status(self.from) && has_status(self.to);
        if !both
            && has_status(self.from)
            && let Some(fields) = out.as_object_mut()
        {
            fields.remove("status");
        }
        let parts: &[(&str, Part)] = match both {
            true => &[("spec", Mapping::spec), ("status", Mapping::status)],
            false => &[("spec", Mapping::spec)],
        };
        for (name, part) in parts {
            self.turn(&mut out, name, *part, (self.from, self.to))?;
        }
        kept.restore(&mut out, Lists::new(self.group, self.kind, to));
        // The way back starts from the restored fields: otherwise a change invisible in the other version would be
        // lost.
        let mut back = json!({"spec": out.get("spec"), "status": out.get("status")});
        let lists = Lists::new(self.group, self.kind, from);
        let mut lost = Stash::default();
        for (name, part) in parts {
            let Some(before) = object.get(*name) else {
                continue;
            };
            self.turn(&mut back, name, *part, (self.to, self.from))?;
            match *name {
                "spec" => lost.add_spec(before, &back[*name], lists),
                _ => lost.add_status(before, &back[*name], lists),
            }
        }
        out["apiVersion"] = json!(api_version);
        stash::put(&mut out, from, &lost);
        Ok(out)
    }

    /// Converts the part `name` of an object.
    fn turn(
        &self,
        object: &mut Value,
        name: &str,
        part: Part,
        (from, to): (usize, usize),
    ) -> Result<(), String> {
        match object.get_mut(name) {
            Some(Value::Object(fields)) => {
                part(self.mapping, fields, from, to).map_err(|problem| format!("{name}.{problem}"))
            }
            None | Some(Value::Null) => Ok(()),
            Some(_) => Err(format!("{name} is not an object")),
        }
    }
}
