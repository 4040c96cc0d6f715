//! A simulated Keystone: logins, and projects, users, roles, services, endpoints and roles in projects as an administrator
//! reads and writes them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use form_urlencoded::parse;
use http::{HeaderValue, Request, Response};
use http_body_util::Full;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::namespace::Bootstrap;
use crate::nodes::object::text;

/// Collections and the names of their objects.
const KINDS: [(&str, &str); 5] = [
    ("projects", "project"),
    ("users", "user"),
    ("roles", "role"),
    ("services", "service"),
    ("endpoints", "endpoint"),
];

/// A Keystone. Clones share what it has.
#[derive(Clone, Default)]
pub(super) struct Keystone {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// By collection and id.
    objects: BTreeMap<&'static str, BTreeMap<String, Value>>,
    /// By the id of the user.
    passwords: BTreeMap<String, String>,
    /// Project, user, role.
    grants: BTreeSet<[String; 3]>,
    /// Users and projects of tokens.
    tokens: BTreeMap<String, (String, String)>,
    /// The Job of the last bootstrap.
    bootstrapped: String,
}

type Answer = (u16, Value);

impl Keystone {
    /// Does what `keystone-manage bootstrap` does, once for each time that it has run.
    pub(super) fn bootstrap(&self, bootstrap: &Bootstrap) {
        let mut state = self.state.lock();
        if state.bootstrapped == bootstrap.job {
            return;
        }
        state.bootstrapped.clone_from(&bootstrap.job);
        let project = state.ensure("projects", json!({"name": "admin", "domain_id": "default"}));
        let user = state.ensure("users", json!({"name": "admin", "domain_id": "default"}));
        state
            .passwords
            .insert(user.clone(), bootstrap.password.clone());
        let mut roles = vec!["reader", "member", "admin"];
        if bootstrap.service_role {
            roles.extend(["manager", "service"]);
        }
        for role in roles {
            let role = state.ensure("roles", json!({"name": role}));
            if state.objects["roles"][&role]["name"] == "admin" {
                let grant = [project.clone(), user.clone(), role];
                state.grants.insert(grant);
            }
        }
        let service = state.ensure("services", json!({"name": "keystone", "type": "identity"}));
        for interface in ["public", "internal", "admin"] {
            state.ensure(
                "endpoints",
                json!({"service_id": service, "interface": interface, "url": bootstrap.url,
                    "region_id": bootstrap.region, "region": bootstrap.region}),
            );
        }
    }

    /// Answers a request.
    pub(super) fn answer(&self, request: &Request<Bytes>) -> Response<Full<Bytes>> {
        let mut state = self.state.lock();
        let body: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let (method, uri) = (request.method().as_str(), request.uri());
        if (method, uri.path()) == ("POST", "/v3/auth/tokens") {
            return state.log_in(&body);
        }
        let token = request.headers().get("x-auth-token");
        let token = token.and_then(|it| it.to_str().ok()).unwrap_or_default();
        let (status, body) = match state.tokens.get(token).cloned() {
            None => unauthorized(),
            Some((user, project)) if !state.is_admin(&user, &project) => error(
                403,
                "Forbidden",
                "You are not authorized to perform the requested action.",
            ),
            Some(_) => state.act(method, uri.path(), uri.query().unwrap_or_default(), &body),
        };
        super::json(status, &body)
    }

    /// Answers an administrator.
    pub(super) fn asked(&self, method: &str, path: &str, body: &Value) -> Answer {
        if (method, path) == ("POST", "/v3/auth/tokens") {
            let answer = self.state.lock().log_in(body);
            return (answer.status().as_u16(), Value::Null);
        }
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        self.state.lock().act(method, path, query, body)
    }
}

impl State {
    /// The id of the object with these fields, which is created unless it is there.
    fn ensure(&mut self, kind: &'static str, fields: Value) -> String {
        let same = |it: &&Value| {
            let mut fields = fields.as_object().into_iter().flatten();
            fields.all(|(name, value)| name == "url" || it[name] == *value)
        };
        let there = self
            .objects
            .get(kind)
            .and_then(|all| all.values().find(same));
        match there.map(|it| text(&it["id"]).to_owned()) {
            Some(id) => id,
            None => self.insert(kind, fields),
        }
    }

    fn insert(&mut self, kind: &'static str, mut object: Value) -> String {
        let id = uuid::Uuid::new_v4().simple().to_string();
        object["id"] = id.as_str().into();
        object["links"] = json!({"self": format!("http://keystone:5000/v3/{kind}/{id}")});
        for (field, value) in match kind {
            "projects" => vec![("enabled", json!(true)), ("description", json!(""))],
            "roles" => vec![("domain_id", Value::Null), ("description", Value::Null)],
            _ => vec![("enabled", json!(true))],
        } {
            if object[field].is_null() {
                object[field] = value;
            }
        }
        self.objects
            .entry(kind)
            .or_default()
            .insert(id.clone(), object);
        id
    }

    fn is_admin(&self, user: &str, project: &str) -> bool {
        let mut grants = self.grants.iter();
        grants.any(|[of, who, role]| {
            (of.as_str(), who.as_str()) == (project, user)
                && self.objects["roles"]
                    .get(role)
                    .is_some_and(|it| it["name"] == "admin")
        })
    }

    fn named(&self, kind: &str, name: &Value) -> Option<&Value> {
        let mut all = self.objects.get(kind)?.values();
        all.find(|it| it["name"] == *name && it["domain_id"] == "default")
    }

    fn log_in(&mut self, body: &Value) -> Response<Full<Bytes>> {
        let rejected = || {
            let (status, body) = unauthorized();
            super::json(status, &body)
        };
        let given = &body["auth"]["identity"]["password"]["user"];
        let user = self
            .named("users", &given["name"])
            .filter(|it| it["enabled"] == true);
        let user = user
            .map(|it| text(&it["id"]).to_owned())
            .unwrap_or_default();
        let password = self.passwords.get(&user);
        if password.map(String::as_str) != given["password"].as_str() || password.is_none() {
            return rejected();
        }
        let scope = &body["auth"]["scope"]["project"];
        let project = match scope {
            Value::Null => String::new(),
            scope => {
                let project = self.named("projects", &scope["name"]);
                let project = project
                    .map(|it| text(&it["id"]).to_owned())
                    .unwrap_or_default();
                if !self
                    .grants
                    .iter()
                    .any(|it| it[0] == project && it[1] == user)
                {
                    return rejected();
                }
                project
            }
        };
        let token = uuid::Uuid::new_v4().simple().to_string();
        let body = json!({"token": {"methods": ["password"], "user": {"id": user}}});
        let mut response = super::json(201, &body);
        if let Ok(value) = HeaderValue::from_str(&token) {
            response.headers_mut().insert("x-subject-token", value);
        }
        self.tokens.insert(token, (user, project));
        response
    }

    fn act(&mut self, method: &str, path: &str, query: &str, body: &Value) -> Answer {
        let path: Vec<&str> = path.trim_start_matches("/v3/").split('/').collect();
        let kind = |collection: &str| KINDS.into_iter().find(|(plural, _)| *plural == collection);
        match (method, path.as_slice()) {
            ("GET", ["role_assignments"]) => self.assignments(query),
            (_, ["projects", project, "users", user, "roles", role]) => {
                self.grant(method, [project, user, role].map(|it| (*it).to_owned()))
            }
            (_, [collection]) => match (method, kind(collection)) {
                ("GET", Some(kind)) => self.list(kind.0, query),
                ("POST", Some(kind)) => self.create(kind, body),
                _ => missing(collection),
            },
            (_, [collection, id]) => match kind(collection) {
                Some(kind) => self.one(method, kind, id, body),
                None => missing(collection),
            },
            _ => missing(path.first().unwrap_or(&"")),
        }
    }

    fn list(&self, kind: &str, query: &str) -> Answer {
        let all = self
            .objects
            .get(kind)
            .into_iter()
            .flat_map(BTreeMap::values);
        let found = all.filter(|it| {
            let mut filters = parse(query.as_bytes());
            filters.all(|(name, value)| it[&*name].is_null() || it[&*name] == *value)
        });
        (200, json!({kind: found.collect::<Vec<_>>(), "links": {}}))
    }

    fn create(&mut self, (plural, kind): (&'static str, &str), body: &Value) -> Answer {
        let mut object = body[kind].clone();
        let needed: &[&str] = match plural {
            "services" => &["type"],
            "endpoints" => &["interface", "service_id", "url"],
            _ => &["name"],
        };
        if let Some(field) = needed.iter().find(|field| !object[**field].is_string()) {
            return error(
                400,
                "Bad Request",
                &format!("'{field}' is a required property"),
            );
        }
        let taken =
            |it: &Value| it["name"] == object["name"] && it["domain_id"] == object["domain_id"];
        let mut there = self
            .objects
            .get(plural)
            .into_iter()
            .flat_map(BTreeMap::values);
        if ["projects", "users", "roles"].contains(&plural) && there.any(taken) {
            let words = format!(
                "Conflict occurred attempting to store {kind} - Duplicate entry found with name {}.",
                text(&object["name"])
            );
            return error(409, "Conflict", &words);
        }
        let services = self.objects.get("services");
        let service = text(&object["service_id"]);
        if plural == "endpoints" && !services.is_some_and(|all| all.contains_key(service)) {
            return error(
                400,
                "Bad Request",
                "the service of the endpoint does not exist",
            );
        }
        let password = object.as_object_mut().and_then(|it| it.remove("password"));
        if plural == "endpoints" {
            object["region"] = object["region_id"].clone();
        }
        let id = self.insert(plural, object);
        if let Some(Value::String(password)) = password {
            self.passwords.insert(id.clone(), password);
        }
        (201, json!({kind: self.objects[plural][&id]}))
    }

    fn one(&mut self, method: &str, kind: (&'static str, &str), id: &str, body: &Value) -> Answer {
        let (plural, kind) = kind;
        let Some(object) = self.objects.entry(plural).or_default().get_mut(id) else {
            return missing(id);
        };
        match method {
            "GET" => (200, json!({kind: object})),
            "PATCH" => {
                for (field, value) in body[kind].as_object().into_iter().flatten() {
                    match (field.as_str(), value) {
                        ("password", Value::String(password)) => {
                            self.passwords.insert(id.to_owned(), password.clone());
                        }
                        (field, value) => object[field] = value.clone(),
                    }
                }
                (200, json!({kind: object}))
            }
            "DELETE" => {
                self.objects.entry(plural).or_default().remove(id);
                self.passwords.remove(id);
                self.grants.retain(|grant| !grant.iter().any(|it| it == id));
                if let Some(endpoints) = self.objects.get_mut("endpoints") {
                    endpoints.retain(|_, it| it["service_id"] != id);
                }
                (204, Value::Null)
            }
            _ => error(405, "Method Not Allowed", "The method is not allowed."),
        }
    }

    fn assignments(&self, query: &str) -> Answer {
        let project = parse(query.as_bytes()).find(|(name, _)| name == "scope.project.id");
        let grants = self
            .grants
            .iter()
            .filter(|[of, ..]| project.as_ref().is_none_or(|(_, project)| project == of));
        let all = grants.map(|[project, user, role]| {
            json!({"scope": {"project": {"id": project}}, "user": {"id": user},
                "role": {"id": role}, "links": {}})
        });
        (
            200,
            json!({"role_assignments": all.collect::<Vec<_>>(), "links": {}}),
        )
    }

    fn grant(&mut self, method: &str, grant: [String; 3]) -> Answer {
        for (kind, id) in ["projects", "users", "roles"].iter().zip(&grant) {
            if !self
                .objects
                .get(kind)
                .is_some_and(|all| all.contains_key(id))
            {
                return missing(id);
            }
        }
        match method {
            "PUT" => {
                self.grants.insert(grant);
                (204, Value::Null)
            }
            "DELETE" if self.grants.remove(&grant) => (204, Value::Null),
            _ => missing(&grant[2]),
        }
    }
}

fn unauthorized() -> Answer {
    let words = "The request you have made requires authentication.";
    error(401, "Unauthorized", words)
}

fn missing(what: &str) -> Answer {
    error(404, "Not Found", &format!("Could not find {what}."))
}

fn error(code: u16, title: &str, message: &str) -> Answer {
    (
        code,
        json!({"error": {"code": code, "title": title, "message": message}}),
    )
}
