//! Projects, users, roles, services and endpoints of Keystone.
//!
//! The mark of the cloud is the description: all five types have one in every release, and Keystone sets the
//! description together with the object. Attributes of other names are no alternative: newer releases leave such
//! attributes out of responses about endpoints. Roles have no mark: role names belong to policy files, are made by
//! bootstrap in some releases only, and are only ever created.

mod seen;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value as Json, json};

use super::{AccountPlan, AccountWrite, mark, segment};
use crate::object::Password;

pub use self::seen::IdentitySeen;
use self::seen::{Endpoint, Named, Service};

/// Account of the controller, made by `keystone-manage bootstrap`.
const ADMIN: &str = "admin";
/// Key of the password of [`ADMIN`] in the Secret `openstack-accounts`.
pub(crate) const ADMIN_PASSWORD: &str = "identity-admin";
/// Project of the services.
const PROJECT: &str = "service";
/// Roles of the services in [`PROJECT`]; the second one is for service tokens.
const ROLES: [&str; 2] = ["admin", "service"];
/// Id of the domain of services and administrators.
const DOMAIN: &str = "default";
/// Type of Keystone itself.
const KEYSTONE: &str = "identity";
const INTERFACES: [&str; 3] = ["public", "internal", "admin"];

/// Desired objects of a cloud in Keystone, besides the objects made by bootstrap.
#[derive(Clone, Debug, PartialEq)]
pub struct Identity {
    /// Uid of the cloud.
    pub(crate) uid: String,
    /// Password of the controller.
    pub(crate) admin: Password,
    /// Next password of the controller, in a rotation.
    pub(crate) next: Option<Password>,
    /// Region of all endpoints.
    pub(crate) region: String,
    /// Passwords of the services, by the names of their users.
    pub(crate) users: BTreeMap<String, Password>,
    /// Name and [`Urls`] of each service in the catalogue, by type.
    pub(crate) catalogue: BTreeMap<String, (String, Urls)>,
    /// [`Urls`] of Keystone itself, registered by its bootstrap.
    pub(crate) keystone: Option<Urls>,
}

/// URLs of a service in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Urls {
    /// URL for users.
    pub(crate) public: String,
    /// URL for services of the cloud.
    pub(crate) internal: String,
}

impl Urls {
    fn of(&self, interface: &str) -> &str {
        match interface {
            "public" => &self.public,
            _ => &self.internal,
        }
    }
}

impl Identity {
    /// Workload whose Pods serve the API.
    pub const PROGRAM: &str = "keystone-api";
    /// Port of the API.
    pub const PORT: u16 = 5000;
    /// Path of logins.
    pub const TOKENS: &str = "/v3/auth/tokens";

    /// Bodies of the login of the controller, with the current and with the next password; Keystone accepts one of
    /// both.
    pub fn logins(&self) -> Vec<Password> {
        let passwords = std::iter::once(&self.admin).chain(&self.next);
        passwords
            .map(|password| login(ADMIN, password, Some(ADMIN)))
            .collect()
    }

    /// Body of the login of a service, as a test of its password.
    pub fn trial(&self, user: &str) -> Option<Password> {
        let password = match user {
            ADMIN => self.next.as_ref()?,
            user => self.users.get(user)?,
        };
        Some(login(user, password, None))
    }

    /// Lists to read first.
    pub fn lists() -> [String; 5] {
        [
            format!("/v3/projects?domain_id={DOMAIN}&name={PROJECT}"),
            format!("/v3/users?domain_id={DOMAIN}"),
            "/v3/roles".to_owned(),
            "/v3/services".to_owned(),
            "/v3/endpoints".to_owned(),
        ]
    }

    /// List of the roles in the project of the services, if the project exists.
    pub fn assignments(&self, seen: &IdentitySeen) -> Option<String> {
        let project = self.project(seen)?;
        let id = segment(&project.id);
        Some(format!("/v3/role_assignments?scope.project.id={id}"))
    }

    /// Users of the cloud whose passwords can be tested by a login.
    pub fn tried(&self, seen: &IdentitySeen) -> Vec<String> {
        let users = self.users.keys();
        let tried = users.filter(|name| self.user(seen, name).is_some_and(|it| it.enabled));
        let admin = self.next.as_ref().map(|_| ADMIN.to_owned());
        tried.cloned().chain(admin).collect()
    }

    /// Advice for the user after a rejected login of the controller.
    pub fn advice() -> String {
        format!(
            "The task keystone-bootstrap gave the user {ADMIN} the password {ADMIN_PASSWORD} of the Secret openstack-accounts: restore it there, or delete the Job of that task, which runs again and sets it"
        )
    }

    /// [`AccountPlan`] from the objects in `seen` to the desired ones, as far as the needed ids are known: other writes
    /// follow when created objects have been read.
    pub fn plan(&self, seen: &IdentitySeen) -> AccountPlan {
        let conflicts = self.conflicts(seen);
        if !conflicts.is_empty() {
            return AccountPlan {
                conflicts,
                ..AccountPlan::default()
            };
        }
        let mut writes = self.project_and_roles(seen);
        for (name, password) in &self.users {
            writes.extend(self.user_write(seen, name, password));
            writes.extend(self.rights(seen, name));
        }
        for (kind, (name, urls)) in &self.catalogue {
            writes.extend(self.service_write(seen, kind, name));
            writes.extend(self.endpoint_writes(seen, kind, urls));
        }
        writes.extend(self.bootstrap_endpoints(seen));
        writes.extend(self.removed(seen));
        writes.extend(self.administrator(seen));
        AccountPlan {
            writes,
            conflicts: vec![],
        }
    }

    /// Write of the administrator's next password. Keystone then revokes the administrator's tokens, so that no write
    /// can follow.
    fn administrator(&self, seen: &IdentitySeen) -> Option<AccountWrite> {
        let next = self.next.as_ref()?;
        let mut users = seen.users.iter();
        let admin = users.find(|it| it.name == ADMIN)?;
        let password = json!({"password": next.expose()});
        seen.rejected
            .contains(ADMIN)
            .then(|| change("users", "user", &admin.id, password, ADMIN))
    }

    /// True if the [`AccountWrite`] revokes the token of the controller.
    pub fn ends_token(write: &AccountWrite) -> bool {
        write.doing == format!("changing user {ADMIN}: password")
    }

    /// Rounds of a plan's writes, one after the other; the writes of a round do not depend on each other. Creations and
    /// changes use ids of existing objects; a deletion may free an object for the next deletion.
    pub fn rounds(writes: &[AccountWrite]) -> impl Iterator<Item = &[AccountWrite]> {
        writes.chunk_by(|one, next| {
            one.method == next.method
                && !Self::ends_token(next)
                && (one.method != "DELETE" || collection(one) == collection(next))
        })
    }

    fn mark(&self) -> String {
        mark(&self.uid)
    }

    fn project<'a>(&self, seen: &'a IdentitySeen) -> Option<&'a Named> {
        let mut projects = seen.projects.iter();
        projects.find(|it| it.name == PROJECT && it.description == self.mark())
    }

    fn user<'a>(&self, seen: &'a IdentitySeen, name: &str) -> Option<&'a Named> {
        let mut users = seen.users.iter();
        users.find(|it| it.name == name && it.description == self.mark())
    }

    /// [`Service`] of the cloud with a type. Among several, made by two controllers at once, the one with the first id.
    fn service<'a>(&self, seen: &'a IdentitySeen, kind: &str) -> Option<&'a Service> {
        let services = seen.services.iter();
        let ours = services.filter(|it| it.kind == kind && it.description == self.mark());
        ours.min_by_key(|it| &it.id)
    }

    /// [`Endpoint`] of a service of the cloud.
    fn endpoint<'a>(
        &self,
        seen: &'a IdentitySeen,
        service: &str,
        interface: &str,
    ) -> Option<&'a Endpoint> {
        let endpoints = seen.endpoints.iter();
        let ours = endpoints
            .filter(|it| it.is(service, &self.region, interface) && it.description == self.mark());
        ours.min_by_key(|it| &it.id)
    }

    /// Objects with a wanted name but without the mark of this cloud.
    fn conflicts(&self, seen: &IdentitySeen) -> Vec<String> {
        let mark = self.mark();
        let mut found = Vec::new();
        let mut add = |what: String| {
            found.push(format!("Keystone: {what} is there and is not of this cloud: its description is not {mark}. Delete it, or give it that description"));
        };
        for project in seen.projects.iter().filter(|it| it.name == PROJECT) {
            if project.description != mark {
                add(format!("project {PROJECT}"));
            }
        }
        for user in seen
            .users
            .iter()
            .filter(|it| self.users.contains_key(&it.name))
        {
            if user.description != mark {
                add(format!("user {}", user.name));
            }
        }
        for service in seen
            .services
            .iter()
            .filter(|it| self.catalogue.contains_key(&it.kind))
        {
            if service.description != mark {
                add(format!("service {} ({})", service.kind, service.name));
                continue;
            }
            let foreign = |it: &&Endpoint| {
                INTERFACES
                    .iter()
                    .any(|interface| it.is(&service.id, &self.region, interface))
                    && it.description != mark
            };
            for endpoint in seen.endpoints.iter().filter(foreign) {
                add(format!(
                    "endpoint {} of {}",
                    endpoint.interface, service.kind
                ));
            }
        }
        found
    }

    fn project_and_roles(&self, seen: &IdentitySeen) -> Vec<AccountWrite> {
        let mut writes = Vec::new();
        match self.project(seen) {
            None => {
                let project =
                    json!({"name": PROJECT, "domain_id": DOMAIN, "description": self.mark()});
                writes.push(create("projects", "project", project, PROJECT));
            }
            Some(project) if !project.enabled => {
                let enabled = json!({"enabled": true});
                writes.push(change("projects", "project", &project.id, enabled, PROJECT));
            }
            Some(_) => {}
        }
        for name in ROLES {
            if seen.role(name).is_none() {
                let role = json!({"name": name, "description": self.mark()});
                writes.push(create("roles", "role", role, name));
            }
        }
        writes
    }

    fn user_write(
        &self,
        seen: &IdentitySeen,
        name: &str,
        password: &Password,
    ) -> Option<AccountWrite> {
        let Some(user) = self.user(seen, name) else {
            let user = json!({"name": name, "domain_id": DOMAIN, "description": self.mark(),
                "password": password.expose()});
            return Some(create("users", "user", user, name));
        };
        // One that is disabled cannot be tried: that follows when it is enabled.
        if !user.enabled {
            let enabled = json!({"enabled": true});
            return Some(change("users", "user", &user.id, enabled, name));
        }
        if seen.rejected.contains(name) {
            let password = json!({"password": password.expose()});
            return Some(change("users", "user", &user.id, password, name));
        }
        None
    }

    /// Grants and withdrawals of roles of a user in the project of the services.
    fn rights(&self, seen: &IdentitySeen, name: &str) -> Vec<AccountWrite> {
        let (Some(project), Some(user)) = (self.project(seen), self.user(seen, name)) else {
            return vec![];
        };
        let wanted = ROLES
            .into_iter()
            .filter_map(|it| Some((it, seen.role(it)?)));
        let wanted: BTreeMap<&str, &str> = wanted.map(|(name, id)| (id, name)).collect();
        let held = seen.assignments.iter();
        let held = held.filter(|it| it.project == project.id && it.user == user.id);
        let held: BTreeSet<&str> = held.map(|it| it.role.as_str()).collect();
        let path = |role: &str| {
            let ids = [project.id.as_str(), user.id.as_str(), role];
            let [project, user, role] = ids.map(segment);
            format!("/v3/projects/{project}/users/{user}/roles/{role}")
        };
        let missing = wanted.iter().filter(|(id, _)| !held.contains(*id));
        let grants = missing.map(|(id, role)| AccountWrite {
            method: "PUT",
            path: path(id),
            body: None,
            doing: format!("granting user {name} role {role} in project {PROJECT}"),
        });
        let others = held.iter().filter(|id| !wanted.contains_key(*id));
        let withdrawals = others.map(|id| AccountWrite {
            method: "DELETE",
            path: path(id),
            body: None,
            doing: format!("withdrawing role {id} of user {name} in project {PROJECT}"),
        });
        // As long as a role is missing, what is another one is not known.
        let is_known = wanted.len() == ROLES.len();
        grants.chain(withdrawals.filter(|_| is_known)).collect()
    }

    fn service_write(&self, seen: &IdentitySeen, kind: &str, name: &str) -> Option<AccountWrite> {
        let Some(service) = self.service(seen, kind) else {
            let service = json!({"type": kind, "name": name, "description": self.mark()});
            return Some(create("services", "service", service, kind));
        };
        let right = service.enabled && service.name == name;
        let fields = json!({"enabled": true, "name": name});
        (!right).then(|| change("services", "service", &service.id, fields, kind))
    }

    fn endpoint_writes(&self, seen: &IdentitySeen, kind: &str, urls: &Urls) -> Vec<AccountWrite> {
        let Some(service) = self.service(seen, kind) else {
            return vec![];
        };
        let writes = INTERFACES.iter().filter_map(|interface| {
            let words = format!("{interface} of {kind}");
            let url = urls.of(interface);
            let Some(endpoint) = self.endpoint(seen, &service.id, interface) else {
                let endpoint = json!({"service_id": service.id, "region_id": self.region,
                    "interface": interface, "url": url, "description": self.mark()});
                return Some(create("endpoints", "endpoint", endpoint, &words));
            };
            let right = endpoint.enabled && endpoint.url == url;
            let fields = json!({"enabled": true, "url": url});
            (!right).then(|| change("endpoints", "endpoint", &endpoint.id, fields, &words))
        });
        writes.collect()
    }

    /// Changes of the endpoints made by bootstrap: without a mark, but owned by the cloud like its Keystone. Endpoints
    /// of other owners are left alone.
    fn bootstrap_endpoints(&self, seen: &IdentitySeen) -> Vec<AccountWrite> {
        let services = seen.services.iter();
        let services = services.filter(|it| it.kind == KEYSTONE && it.description.is_empty());
        let (Some(urls), Some(service)) = (&self.keystone, services.min_by_key(|it| &it.id)) else {
            return vec![];
        };
        let writes = INTERFACES.iter().filter_map(|interface| {
            let endpoints = seen.endpoints.iter();
            let endpoints = endpoints.filter(|it| {
                it.is(&service.id, &self.region, interface) && it.description.is_empty()
            });
            let endpoint = endpoints.min_by_key(|it| &it.id)?;
            let url = urls.of(interface);
            let words = format!("{interface} of {KEYSTONE}");
            let fields = json!({"url": url});
            (endpoint.url != url)
                .then(|| change("endpoints", "endpoint", &endpoint.id, fields, &words))
        });
        writes.collect()
    }

    /// Deletions of undesired objects with the mark of this cloud: endpoints, services, users.
    fn removed(&self, seen: &IdentitySeen) -> Vec<AccountWrite> {
        let mark = self.mark();
        let kept: BTreeSet<&str> = self
            .catalogue
            .keys()
            .filter_map(|kind| Some(self.service(seen, kind)?.id.as_str()))
            .collect();
        let mut writes = Vec::new();
        for endpoint in seen.endpoints.iter().filter(|it| it.description == mark) {
            let ours = self.endpoint(seen, &endpoint.service_id, &endpoint.interface);
            let is_kept = kept.contains(endpoint.service_id.as_str())
                && ours.is_some_and(|it| it.id == endpoint.id);
            if !is_kept {
                let words = format!("endpoint {} {}", endpoint.interface, endpoint.url);
                writes.push(delete("endpoints", &endpoint.id, &words));
            }
        }
        for service in seen.services.iter().filter(|it| it.description == mark) {
            if !kept.contains(service.id.as_str()) {
                writes.push(delete(
                    "services",
                    &service.id,
                    &format!("service {}", service.kind),
                ));
            }
        }
        for user in seen.users.iter().filter(|it| it.description == mark) {
            if !self.users.contains_key(&user.name) {
                writes.push(delete("users", &user.id, &format!("user {}", user.name)));
            }
        }
        writes
    }
}

fn login(user: &str, password: &Password, project: Option<&str>) -> Password {
    let domain = json!({"id": DOMAIN});
    let user = json!({"name": user, "domain": domain, "password": password.expose()});
    let identity = json!({"methods": ["password"], "password": {"user": user}});
    let mut body = json!({"auth": {"identity": identity}});
    if let Some(name) = project {
        body["auth"]["scope"] = json!({"project": {"name": name, "domain": domain}});
    }
    Password::new(body.to_string())
}

fn create(collection: &str, kind: &str, fields: Json, name: &str) -> AccountWrite {
    AccountWrite {
        method: "POST",
        path: format!("/v3/{collection}"),
        body: Some(Password::new(json!({kind: fields}).to_string())),
        doing: format!("creating {kind} {name}"),
    }
}

fn change(collection: &str, kind: &str, id: &str, fields: Json, name: &str) -> AccountWrite {
    let names = fields.as_object().into_iter().flatten();
    let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
    AccountWrite {
        method: "PATCH",
        path: format!("/v3/{collection}/{}", segment(id)),
        doing: format!("changing {kind} {name}: {}", names.join(", ")),
        body: Some(Password::new(json!({kind: fields}).to_string())),
    }
}

/// Path of the collection that an [`AccountWrite`] changes.
fn collection(write: &AccountWrite) -> &str {
    let parts = write.path.rsplit_once('/');
    parts.map_or("", |(collection, _)| collection)
}

fn delete(collection: &str, id: &str, words: &str) -> AccountWrite {
    AccountWrite {
        method: "DELETE",
        path: format!("/v3/{collection}/{}", segment(id)),
        body: None,
        doing: format!("deleting {words}"),
    }
}

#[cfg(test)]
mod tests;
