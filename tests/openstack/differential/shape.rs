//! The structure of a JSON document: fields, types, and the values of enumerations.
//!
//! A string is represented by its type (an id, a time with or without time zone, a URL, text), and in fields with a
//! state, a kind or an error's type by its value, such as `=ACTIVE`. So are booleans.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The shape of a value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Shape {
    /// No body.
    #[default]
    Nothing,
    Leaf(String),
    Object(BTreeMap<String, Shape>),
    /// The shapes of the elements, each once; objects are merged into one.
    Array(Vec<Shape>),
}

/// Fields whose values are compared. Not included: operating_status, which is simulated on the real cloud, too
/// (docs/project/test-cloud.md).
const BY_VALUE: [&str; 45] = [
    "status",
    "provisioning_status",
    "vm_state",
    "OS-EXT-STS:vm_state",
    "OS-EXT-STS:task_state",
    "visibility",
    "type",
    "title",
    "faultcode",
    "port_state",
    "device_owner",
    "binding:vnic_type",
    "ethertype",
    "direction",
    "protocol",
    "lb_algorithm",
    "policy",
    "policies",
    "interface",
    "OS-EXT-IPS:type",
    "ipv6_ra_mode",
    "ipv6_address_mode",
    "segmentation_type",
    "attach_status",
    "admin_state",
    "config_drive",
    "OS-DCF:diskConfig",
    "client_authentication",
    "action",
    "compare_type",
    "http_method",
    "expected_codes",
    "methods",
    "provider",
    "vip_vnic_type",
    "ip_allocation",
    "rel",
    "host_status",
    "attachment_status",
    "encryption_status",
    "replication_status",
    "binding:vif_type",
    "rules_state",
    "version",
    "scope",
];
/// Numbers whose values are compared.
const NUMBERS_BY_VALUE: [&str; 5] = [
    "code",
    "ip_version",
    "OS-EXT-STS:power_state",
    "progress",
    "mtu",
];

impl Shape {
    /// The shape of a document; `run` is removed from the names of fields.
    pub(crate) fn of(value: &Value, run: &str) -> Self {
        Self::in_field("", value, run)
    }

    fn in_field(field: &str, value: &Value, run: &str) -> Self {
        let leaf = |text: &str| Self::Leaf(text.to_owned());
        match value {
            Value::Null => leaf("null"),
            Value::Bool(value) => Self::Leaf(format!("={value}")),
            Value::Number(number) if NUMBERS_BY_VALUE.contains(&field) => {
                Self::Leaf(format!("={number}"))
            }
            Value::Number(number) if number.is_f64() => leaf("float"),
            Value::Number(_) => leaf("integer"),
            Value::String(text) if BY_VALUE.contains(&field) => Self::Leaf(format!("={text}")),
            Value::String(text) => leaf(look(text)),
            Value::Array(items) => {
                let mut objects: Option<Self> = None;
                let mut others = BTreeSet::new();
                for item in items {
                    match (Self::in_field(field, item, run), objects.take()) {
                        (shape @ Self::Object(_), Some(known)) => {
                            objects = Some(known.merged(shape))
                        }
                        (shape @ Self::Object(_), None) => objects = Some(shape),
                        (shape, known) => {
                            others.insert(shape);
                            objects = known;
                        }
                    }
                }
                Self::Array(objects.into_iter().chain(others).collect())
            }
            // The fields are names of the cloud's hosts.
            Value::Object(hosts) if field == "hosts" => {
                let shapes = hosts.values().map(|host| Self::in_field("", host, run));
                let all = shapes.reduce(Self::merged);
                Self::Object(
                    all.map(|all| ("HOST".to_owned(), all))
                        .into_iter()
                        .collect(),
                )
            }
            Value::Object(fields) => Self::Object(
                fields
                    .iter()
                    .map(|(name, value)| {
                        (name.replace(run, "RUN"), Self::in_field(name, value, run))
                    })
                    .collect(),
            ),
        }
    }

    fn is_object(&self) -> bool {
        matches!(self, Self::Object(_))
    }

    /// The union of the shapes of two elements of an array.
    fn merged(self, other: Self) -> Self {
        match (self, other) {
            (Self::Object(mut all), Self::Object(more)) => {
                for (name, shape) in more {
                    let merged = match all.remove(&name) {
                        Some(known) => known.merged(shape),
                        None => shape,
                    };
                    all.insert(name, merged);
                }
                Self::Object(all)
            }
            (Self::Array(all), Self::Array(more)) => {
                let mut out = Self::Array(Vec::new());
                for item in all.into_iter().chain(more) {
                    out.push(item);
                }
                out
            }
            (Self::Leaf(a), Self::Leaf(b)) => {
                let kinds: BTreeSet<&str> = a.split('|').chain(b.split('|')).collect();
                Self::Leaf(kinds.into_iter().collect::<Vec<_>>().join("|"))
            }
            // Of null and an object, the object.
            (Self::Leaf(_) | Self::Nothing, more) | (more, _) => more,
        }
    }

    fn push(&mut self, item: Self) {
        let Self::Array(items) = self else { return };
        let object = items.iter().position(Self::is_object);
        match (object, &item) {
            (Some(index), Self::Object(_)) => {
                let known = items.remove(index);
                items.insert(0, known.merged(item));
            }
            _ if items.contains(&item) => {}
            _ => items.push(item),
        }
    }
}

/// A difference between two shapes: its place, and both values.
#[derive(Debug, PartialEq)]
pub(crate) struct Difference {
    pub(crate) at: String,
    pub(crate) real: String,
    pub(crate) simulated: String,
}

/// The differences of two shapes. The elements of arrays depend on the content of the cloud, so one common shape is
/// enough there; an empty array equals only an empty one, except at the places in `may_be_empty`.
pub(crate) fn differences(real: &Shape, simulated: &Shape, may_be_empty: &[String]) -> Differences {
    let mut comparison = Comparison {
        may_be_empty,
        needed: BTreeSet::new(),
        found: Vec::new(),
    };
    comparison.compare("", real, simulated, false);
    let Comparison { needed, found, .. } = comparison;
    let unneeded = may_be_empty.iter().filter(|at| !needed.contains(*at));
    Differences {
        found,
        unneeded: unneeded.cloned().collect(),
    }
}

/// The result of a comparison of two shapes.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    pub(crate) found: Vec<Difference>,
    /// Places of `may_be_empty` at which the arrays are equal without it.
    pub(crate) unneeded: Vec<String>,
}

struct Comparison<'a> {
    may_be_empty: &'a [String],
    /// Places of `may_be_empty` where one array is empty and the other is not.
    needed: BTreeSet<&'a String>,
    found: Vec<Difference>,
}

impl Comparison<'_> {
    fn compare(&mut self, at: &str, real: &Shape, simulated: &Shape, in_array: bool) {
        match (real, simulated) {
            (Shape::Object(a), Shape::Object(b)) => {
                let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
                for name in names {
                    let at = format!("{at}/{name}");
                    match (a.get(name), b.get(name)) {
                        (Some(a), Some(b)) => self.compare(&at, a, b, in_array),
                        (a, b) => self.differ(&at, a, b),
                    }
                }
            }
            (Shape::Array(a), Shape::Array(b)) if a.is_empty() != b.is_empty() => {
                match self.may_be_empty.iter().find(|allowed| *allowed == at) {
                    Some(allowed) => drop(self.needed.insert(allowed)),
                    None => self.differ(at, Some(real), Some(simulated)),
                }
            }
            (Shape::Array(a), Shape::Array(b)) => {
                let object = |all: &[Shape]| all.iter().find(|one| one.is_object()).cloned();
                if let (Some(a), Some(b)) = (object(a), object(b)) {
                    self.compare(&format!("{at}[]"), &a, &b, true);
                } else if !a.is_empty() && !a.iter().any(|one| b.contains(one)) {
                    self.differ(at, Some(real), Some(simulated));
                }
            }
            (Shape::Leaf(a), Shape::Leaf(b)) if a == b => {}
            (Shape::Leaf(a), Shape::Leaf(b))
                if in_array
                    && a.split('|')
                        .any(|kind| b.split('|').any(|other| other == kind)) => {}
            (Shape::Nothing, Shape::Nothing) => {}
            _ => self.differ(at, Some(real), Some(simulated)),
        }
    }

    fn differ(&mut self, at: &str, real: Option<&Shape>, simulated: Option<&Shape>) {
        self.found.push(Difference {
            at: at.to_owned(),
            real: named(real),
            simulated: named(simulated),
        });
    }
}

fn named(shape: Option<&Shape>) -> String {
    match shape {
        None => "-".to_owned(),
        Some(Shape::Nothing) => "nothing".to_owned(),
        Some(Shape::Leaf(kind)) => kind.clone(),
        Some(Shape::Object(_)) => "object".to_owned(),
        Some(Shape::Array(items)) => match items.first() {
            Some(Shape::Leaf(kind)) => format!("array of {kind}"),
            Some(_) => "array of objects".to_owned(),
            None => "empty array".to_owned(),
        },
    }
}

/// The type of a string.
pub(crate) fn look(text: &str) -> &'static str {
    let bytes = text.as_bytes();
    let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let dated = bytes.len() >= 19 && bytes[4] == b'-' && bytes[10] == b'T' && bytes[13] == b':';
    if text.is_empty() {
        "empty"
    } else if text.len() == 36 && uuid::Uuid::try_parse(text).is_ok() {
        "uuid"
    } else if text.len() == 32 && hex(text) {
        "hex"
    } else if dated && text.ends_with('Z') {
        if text.contains('.') {
            "time.f-z"
        } else {
            "time-z"
        }
    } else if dated {
        if text.contains('.') { "time.f" } else { "time" }
    } else if text.starts_with("http://") || text.starts_with("https://") {
        "url"
    } else {
        "text"
    }
}

#[cfg(test)]
mod tests;
