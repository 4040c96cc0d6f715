//! Content that `keystone-manage bootstrap` creates in an empty Keystone, and recreates if missing.

use serde_json::json;

use super::assignments::assignment_doc;
use super::catalog::{INTERFACES, region_doc};
use super::directory::{project_doc, role_doc, user_doc};
use super::tokens::hashed;
use crate::cloud::document::{Doc, Fields, doc};
use crate::cloud::kind::Kind;
use crate::cloud::network;
use crate::cloud::state::State;

/// Arguments of a bootstrap.
#[derive(Clone, Debug)]
pub(crate) struct Bootstrap {
    /// Password of the administrator.
    pub(crate) password: String,
    /// Region of the endpoints.
    pub(crate) region: String,
    /// URL of Keystone in the catalog.
    pub(crate) url: String,
    /// True to create the roles `manager` and `service`, as Keystone does from 2023.2 on.
    pub(crate) service_role: bool,
}

/// Creates missing project, user, roles, region, service and endpoints. Sets the password.
pub(crate) fn bootstrap(state: &mut State, given: &Bootstrap) {
    if state.get(Kind::Domain, "default").is_none() {
        let domain = json!({"id": "default", "name": "Default", "enabled": true,
            "description": "The default domain", "tags": [], "options": {}});
        state.put(Kind::Domain, doc(domain));
    }
    let project = ensure(state, Kind::Project, &[("name", "admin")], |id| {
        let words = "Bootstrap project for initializing the cloud.";
        project_doc(id, "admin", "default", words)
    });
    network::ensure_default_group(state, &project);
    let user = ensure(state, Kind::User, &[("name", "admin")], |id| {
        user_doc(id, "admin", &given.password, "")
    });
    state.edit(Kind::User, &user, |it| {
        it.set("_password", hashed(&given.password));
        it.set("enabled", true);
    });
    let mut names = vec!["reader", "member", "admin"];
    if given.service_role {
        names.extend(["manager", "service"]);
    }
    for name in names {
        let role = ensure(state, Kind::Role, &[("name", name)], |id| {
            role_doc(id, name, None, true)
        });
        if name == "admin" {
            let grant = assignment_doc(&user, &project, &role);
            state.put(Kind::Assignment, grant);
        }
    }
    catalog(state, given);
}

fn catalog(state: &mut State, given: &Bootstrap) {
    let region = given.region.as_str();
    if state.get(Kind::Region, region).is_none() {
        state.put(Kind::Region, region_doc(region, ""));
    }
    let kind = [("type", "identity")];
    let service = ensure(state, Kind::CatalogService, &kind, |id| {
        doc(json!({"id": id, "type": "identity", "name": "keystone", "enabled": true}))
    });
    for interface in INTERFACES {
        let same = [
            ("service_id", service.as_str()),
            ("interface", interface),
            ("region_id", region),
        ];
        ensure(state, Kind::Endpoint, &same, |id| {
            doc(
                json!({"id": id, "service_id": service, "interface": interface, "enabled": true,
                "region": region, "region_id": region, "url": given.url}),
            )
        });
    }
}

/// Returns the id of the first resource with these fields, created if missing.
fn ensure(
    state: &mut State,
    kind: Kind,
    fields: &[(&str, &str)],
    make: impl FnOnce(&str) -> Doc,
) -> String {
    let same =
        |it: &&std::sync::Arc<Doc>| fields.iter().all(|(name, value)| it.text(name) == *value);
    if let Some(found) = state.all(kind).find(same) {
        return found.text("id").to_owned();
    }
    let id = state.new_hex_id();
    let created = make(&id);
    state.put(kind, created);
    id
}

/// Stores `token` as a token of the first administrator, for requests without faults and hooks. `None` before a bootstrap.
pub(crate) fn operator(state: &mut State, token: &str) -> Option<()> {
    let user = state.by(Kind::User, "name", "admin").first()?.clone();
    let project = state.by(Kind::Project, "name", "admin").first()?.clone();
    let mut doc = Doc::new();
    doc.set("id", hashed(token));
    doc.set("user_id", user.text("id"));
    doc.set("project_id", project.text("id"));
    doc.set("roles", json!(["admin"]));
    doc.set("operator", true);
    doc.set("methods", json!(["password"]));
    doc.set("expires_ms", i64::MAX);
    state.put(Kind::Token, doc);
    Some(())
}
