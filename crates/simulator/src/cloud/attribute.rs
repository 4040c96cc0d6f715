//! Attribute tables: the fields of a resource at creation and update, with types and defaults.
//!
//! Neutron has such a table for each resource (neutron-lib, `RESOURCE_ATTRIBUTE_MAP`), and Octavia has WSME types; the
//! errors below follow both.

use std::net::IpAddr;

use ipnet::IpNet;
use serde_json::{Value, json};

use super::document::Doc;
use super::fault::Fault;
use super::query::truth;
use super::service::Service;

/// Type of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Shape {
    /// String with a maximum number of characters.
    Text(usize),
    Flag,
    /// Number between two bounds, inclusive.
    Number(i64, i64),
    Id,
    Address,
    /// Subnet prefix.
    Prefix,
    Mac,
    /// Any list; the handler validates the items.
    List,
    /// List of strings.
    Texts,
    Object,
    OneOf(&'static [&'static str]),
    Any,
}

/// Default of an attribute that is missing in a creation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Preset {
    /// The attribute is required.
    Required,
    /// The attribute stays absent; the handler decides.
    Absent,
    Null,
    Text(&'static str),
    Flag(bool),
    Number(i64),
    EmptyList,
    EmptyObject,
}

/// One attribute.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attribute {
    pub(crate) name: &'static str,
    shape: Shape,
    preset: Preset,
    /// True for an attribute allowed at creation.
    post: bool,
    /// True for an attribute allowed in an update.
    put: bool,
    /// True if null is valid.
    null: bool,
    /// True for an attribute that only administrators may set.
    admin: bool,
}

/// Creation or update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Create,
    Update,
}

/// Returns an optional [`Attribute`], allowed at creation only.
pub(crate) const fn attribute(name: &'static str, shape: Shape, preset: Preset) -> Attribute {
    let null = matches!(preset, Preset::Null);
    Attribute {
        name,
        shape,
        preset,
        post: true,
        put: false,
        null,
        admin: false,
    }
}

/// Returns an [`Attribute`] that only the service sets.
pub(crate) const fn fixed(name: &'static str) -> Attribute {
    let preset = Preset::Absent;
    Attribute {
        name,
        shape: Shape::Any,
        preset,
        post: false,
        put: false,
        null: true,
        admin: false,
    }
}

impl Attribute {
    /// Allows updates, too.
    pub(crate) const fn editable(mut self) -> Self {
        self.put = true;
        self
    }

    /// Allows null.
    pub(crate) const fn nullable(mut self) -> Self {
        self.null = true;
        self
    }

    /// Restricts the attribute to administrators.
    pub(crate) const fn admin(mut self) -> Self {
        self.admin = true;
        self
    }
}

/// Validates a body against a table of [`Attribute`]s, converts values like the service, and fills in the defaults of a
/// creation. The [`Fault`] has the service's words.
pub(crate) fn check(
    table: &[Attribute],
    body: &Doc,
    verb: Verb,
    admin: bool,
    service: Service,
) -> Result<Doc, Fault> {
    let says = Dialect(service);
    let unknown: Vec<&str> = body
        .keys()
        .map(String::as_str)
        .filter(|name| !table.iter().any(|attribute| attribute.name == *name))
        .collect();
    if !unknown.is_empty() {
        return Err(says.unknown(&unknown));
    }
    let mut out = Doc::new();
    for attribute in table {
        let allowed = if verb == Verb::Create {
            attribute.post
        } else {
            attribute.put
        };
        match body.get(attribute.name) {
            Some(_) if !allowed => return Err(says.not_allowed(attribute.name, verb)),
            Some(_) if attribute.admin && !admin => {
                return Err(says.admin_only(attribute.name, verb));
            }
            Some(Value::Null) if attribute.null => {
                out.insert(attribute.name.to_owned(), Value::Null);
            }
            Some(value) => {
                let value = convert(attribute.shape, value)
                    .map_err(|why| says.invalid(attribute.name, value, &why))?;
                out.insert(attribute.name.to_owned(), value);
            }
            None if verb == Verb::Create => match preset(attribute.preset) {
                Filling::Value(value) => {
                    out.insert(attribute.name.to_owned(), value);
                }
                Filling::Nothing => {}
                Filling::Refusal => return Err(says.required(attribute.name)),
            },
            None => {}
        }
    }
    Ok(out)
}

enum Filling {
    Value(Value),
    Nothing,
    Refusal,
}

fn preset(preset: Preset) -> Filling {
    Filling::Value(match preset {
        Preset::Required => return Filling::Refusal,
        Preset::Absent => return Filling::Nothing,
        Preset::Null => Value::Null,
        Preset::Text(text) => json!(text),
        Preset::Flag(flag) => json!(flag),
        Preset::Number(number) => json!(number),
        Preset::EmptyList => json!([]),
        Preset::EmptyObject => json!({}),
    })
}

/// Converts the value to its canonical form. The error is neutron-lib's message.
fn convert(shape: Shape, value: &Value) -> Result<Value, String> {
    let printed = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let text = value.as_str();
    let fits = match shape {
        Shape::Any => true,
        Shape::Text(longest) => match text {
            None => return Err(format!("'{printed}' is not a valid string")),
            Some(text) if text.chars().count() > longest => {
                return Err(format!("'{text}' exceeds maximum length of {longest}"));
            }
            Some(_) => true,
        },
        Shape::Flag => {
            let flag = value.as_bool().or_else(|| truth(&printed));
            return flag
                .map(Value::Bool)
                .ok_or_else(|| format!("'{printed}' cannot be converted to boolean"));
        }
        Shape::Number(low, high) => {
            let number = value
                .as_i64()
                .or_else(|| text.and_then(|text| text.parse().ok()));
            let number = number.ok_or_else(|| format!("'{printed}' is not an integer"))?;
            if number < low {
                return Err(format!(
                    "'{number}' is too small - must be at least '{low}'"
                ));
            }
            if number > high {
                return Err(format!(
                    "'{number}' is too large - must be no larger than '{high}'"
                ));
            }
            return Ok(json!(number));
        }
        Shape::Id => match text {
            Some(text) if uuid::Uuid::try_parse(text).is_ok() => true,
            _ => return Err(format!("'{printed}' is not a valid UUID")),
        },
        Shape::Address => match text.map(str::parse::<IpAddr>) {
            Some(Ok(address)) => return Ok(json!(address.to_string())),
            _ => return Err(format!("'{printed}' is not a valid IP address")),
        },
        Shape::Prefix => match text.map(str::parse::<IpNet>) {
            Some(Ok(net)) if net.addr() == net.network() => return Ok(json!(net.to_string())),
            Some(Ok(net)) => {
                let better = net.trunc();
                return Err(format!(
                    "'{printed}' isn't a recognized IP subnet cidr, '{better}' is recommended"
                ));
            }
            _ => return Err(format!("'{printed}' is not a valid IP subnet")),
        },
        Shape::Mac => match text {
            Some(text) if is_mac(text) => return Ok(json!(text.to_ascii_lowercase())),
            _ => return Err(format!("'{printed}' is not a valid MAC address")),
        },
        Shape::List => match value {
            Value::Array(_) => true,
            _ => return Err(format!("'{printed}' is not a list")),
        },
        Shape::Texts => match value {
            Value::Array(items) if items.iter().all(Value::is_string) => true,
            Value::Array(_) => return Err(format!("'{printed}' is not a list of strings")),
            _ => return Err(format!("'{printed}' is not a list")),
        },
        Shape::Object => match value {
            Value::Object(_) => true,
            _ => return Err(format!("'{printed}' is not a dictionary")),
        },
        Shape::OneOf(values) => match text {
            Some(text) if values.contains(&text) => true,
            _ => return Err(format!("'{printed}' is not in {}", python_list(values))),
        },
    };
    debug_assert!(fits);
    Ok(value.clone())
}

fn is_mac(text: &str) -> bool {
    let bytes: Vec<&str> = text.split(':').collect();
    bytes.len() == 6
        && bytes
            .iter()
            .all(|byte| byte.len() == 2 && byte.bytes().all(|c| c.is_ascii_hexdigit()))
}

/// Formats `['a', 'b']`, the form of lists in the services' messages.
pub(crate) fn python_list<T: AsRef<str>>(values: &[T]) -> String {
    let quoted: Vec<String> = values
        .iter()
        .map(|value| format!("'{}'", value.as_ref()))
        .collect();
    format!("[{}]", quoted.join(", "))
}

/// Messages of a service.
struct Dialect(Service);

impl Dialect {
    fn octavia(&self) -> bool {
        self.0 == Service::LoadBalancer
    }

    fn unknown(&self, names: &[&str]) -> Fault {
        let list = names.join(", ");
        if self.octavia() {
            let plural = if names.len() > 1 { "s" } else { "" };
            return Fault::bad(format!("Unknown attribute{plural} for argument: {list}"));
        }
        let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
        Fault::bad(format!("Unrecognized attribute(s) {}", quoted.join(", ")))
    }

    fn not_allowed(&self, name: &str, verb: Verb) -> Fault {
        match (self.octavia(), verb) {
            (true, _) => Fault::bad(format!("Unknown attribute for argument: {name}")),
            (false, Verb::Create) => Fault::bad(format!("Attribute '{name}' not allowed in POST")),
            (false, Verb::Update) => {
                Fault::bad(format!("Cannot update read-only attribute {name}"))
            }
        }
    }

    fn admin_only(&self, name: &str, verb: Verb) -> Fault {
        let verb = if verb == Verb::Create {
            "create"
        } else {
            "update"
        };
        Fault::forbidden(format!("rule:{verb}:{name} is disallowed by policy"))
    }

    fn required(&self, name: &str) -> Fault {
        if self.octavia() {
            return Fault::bad(format!(
                "Invalid input for field/attribute {name}. Value: 'None'. Mandatory field missing."
            ));
        }
        Fault::bad(format!(
            "Failed to parse request. Required attribute '{name}' not specified"
        ))
    }

    fn invalid(&self, name: &str, value: &Value, why: &str) -> Fault {
        if self.octavia() {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            return Fault::bad(format!(
                "Invalid input for field/attribute {name}. Value: '{value}'. {why}"
            ));
        }
        // A text that is not a prefix fails in the conversion, which precedes the validation.
        if name == "cidr" && why.ends_with("not a valid IP subnet") {
            let message =
                format!("Invalid input for operation: Invalid input for {name}. Reason: {why}.");
            return Fault::new(400, "InvalidInput", message);
        }
        Fault::bad(format!("Invalid input for {name}. Reason: {why}."))
    }
}
