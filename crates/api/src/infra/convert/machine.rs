//! Conversion of the spec of a machine, and of ports.

use serde_json::{Value, json};

use crate::conversion::fields::{Done, Fields, each, inverted};

/// Field for port security in v1beta1 and in v1beta2.
const SECURITY: (&str, &str) = ("disablePortSecurity", "enablePortSecurity");

/// From v1beta1 to v1beta2.
pub(super) fn up(fields: &mut Fields) -> Done {
    ports_up(fields);
    let name = fields.remove("flavor").filter(|name| !name.is_null());
    let id = fields.remove("flavorID").filter(|id| !id.is_null());
    // The id takes precedence; a name beside it is preserved by the stash.
    let flavor = match (id, name) {
        (Some(id), _) => json!({ "id": id }),
        (None, Some(name)) => json!({ "filter": { "name": name } }),
        (None, None) => return Ok(()),
    };
    fields.insert("flavor".to_owned(), flavor);
    Ok(())
}

/// From v1beta2 to v1beta1.
pub(super) fn down(fields: &mut Fields) -> Done {
    ports_down(fields);
    let Some(flavor) = fields.remove("flavor") else {
        return Ok(());
    };
    if let Some(id) = flavor.get("id") {
        fields.insert("flavorID".to_owned(), id.clone());
    } else if let Some(name) = flavor.pointer("/filter/name") {
        fields.insert("flavor".to_owned(), name.clone());
    }
    Ok(())
}

/// Ports in `fields`, from v1beta1 to v1beta2.
pub(super) fn ports_up(fields: &mut Fields) {
    each(fields, "ports", |port| invert(port, SECURITY.0, SECURITY.1));
}

/// Inverse of [`ports_up`].
pub(super) fn ports_down(fields: &mut Fields) {
    each(fields, "ports", |port| invert(port, SECURITY.1, SECURITY.0));
}

fn invert(fields: &mut Fields, from: &str, to: &str) {
    let value: Option<Value> = fields.remove(from);
    fields.extend(value.map(|value| (to.to_owned(), inverted(value))));
}
