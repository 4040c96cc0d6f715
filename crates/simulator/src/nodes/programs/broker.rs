//! Simulated RabbitMQ: the part of the management API for virtual hosts, users and permissions. Statuses and bodies are
//! from RabbitMQ 3.10.8 and 4.0.5, which differ in the words of a 401 alone; there, the words of 4.0.5 are used.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::AUTHORIZATION;
use http::{Request, Response};
use http_body_util::Full;
use parking_lot::Mutex;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

const ALGORITHM: &str = "rabbit_password_hashing_sha256";

/// Broker. Clones share the data.
#[derive(Clone, Default)]
pub(super) struct Broker {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    /// File with the data of the volume, in RabbitMQ's export form for definitions. `None`: in memory.
    file: Option<PathBuf>,
    hosts: BTreeMap<String, Host>,
    users: BTreeMap<String, User>,
    /// By virtual host and user: configure, write, read.
    permissions: BTreeMap<(String, String), [String; 3]>,
}

#[derive(Default)]
struct Host {
    description: String,
    tags: Vec<String>,
}

struct User {
    tags: Vec<String>,
    /// Salt and hash; empty without a password, so that nobody can log in.
    hash: Vec<u8>,
}

type Answer = (u16, Value);

impl Broker {
    /// Opens a broker with the data in the file, or on an empty volume without one.
    pub(super) fn open(
        options: &BTreeMap<String, String>,
        file: Option<PathBuf>,
    ) -> Result<Self, String> {
        let Some(path) = &file else {
            return Ok(Self::new(options));
        };
        let broker = match std::fs::read(path) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|error| error.to_string())
                .and_then(|all| State::read(&all).ok_or_else(|| "no definitions".to_owned()))
                .map(|state| Self {
                    state: Arc::new(Mutex::new(state)),
                }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::new(options)),
            Err(error) => Err(error.to_string()),
        };
        let broker = broker.map_err(|why| format!("{}: {why}", path.display()))?;
        broker.state.lock().file = file;
        Ok(broker)
    }

    /// Creates a broker on an empty volume. The options have the first user (`default_user`, `default_pass`).
    pub(super) fn new(options: &BTreeMap<String, String>) -> Self {
        let option = |name: &str, default: &str| {
            let value = options.get(name).map_or(default, String::as_str);
            value.to_owned()
        };
        let user = option("default_user", "ferrostack");
        let admin = User {
            tags: vec!["administrator".to_owned()],
            hash: hash(&option("default_pass", "guest")),
        };
        let host = Host {
            description: "Default virtual host".to_owned(),
            tags: vec![],
        };
        let state = State {
            file: None,
            hosts: [("/".to_owned(), host)].into(),
            permissions: [(("/".to_owned(), user.clone()), everything())].into(),
            users: [(user, admin)].into(),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Answers a request.
    pub(super) fn answer(&self, request: &Request<Bytes>) -> Response<Full<Bytes>> {
        let login = request.headers().get(AUTHORIZATION);
        let login = login.and_then(|it| it.to_str().ok()).unwrap_or_default();
        let mut state = self.state.lock();
        let (status, body) = match state.user(login) {
            None => (401, error("not_authorized", "Not_Authorized")),
            Some(user) => {
                let body = String::from_utf8_lossy(request.body());
                state.act(
                    &user,
                    request.method().as_str(),
                    request.uri().path(),
                    &body,
                )
            }
        };
        super::json(status, &body)
    }

    /// Answers the first administrator.
    pub(super) fn asked(&self, method: &str, path: &str, body: &str) -> Answer {
        let mut state = self.state.lock();
        let mut users = state.users.iter();
        let admin = users.find(|(_, it)| it.tags.iter().any(|tag| tag == "administrator"));
        let admin = admin.map(|(name, _)| name.clone()).unwrap_or_default();
        state.act(&admin, method, path, body)
    }
}

impl State {
    /// Returns the administrator of a login.
    fn user(&self, login: &str) -> Option<String> {
        let login = STANDARD.decode(login.strip_prefix("Basic ")?).ok()?;
        let login = String::from_utf8(login).ok()?;
        let (name, password) = login.split_once(':')?;
        let user = self.users.get(name)?;
        let (salt, _) = user.hash.split_at_checked(4)?;
        let right = salted(salt, password) == user.hash;
        (right && user.tags.iter().any(|it| it == "administrator")).then(|| name.to_owned())
    }

    fn act(&mut self, user: &str, method: &str, path: &str, body: &str) -> Answer {
        let answer = self.acted(user, method, path, body);
        let changed = method != "GET" && answer.0 < 300;
        match self
            .file
            .as_deref()
            .filter(|_| changed)
            .map(|file| self.keep(file))
        {
            Some(Err(why)) => (500, error("internal_server_error", &why.to_string())),
            _ => answer,
        }
    }

    /// Writes everything to the file, for the owner alone: the file has hashes of passwords.
    fn keep(&self, file: &Path) -> io::Result<()> {
        let all = json!({
            "vhosts": self.hosts.iter().map(host).collect::<Value>(),
            "users": self.users.iter().map(person).collect::<Value>(),
            "permissions": self.permissions.iter().map(permission).collect::<Value>(),
        });
        let directory = file.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(directory)?;
        let new = file.with_extension("new");
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(0o600);
        options.open(&new)?.write_all(all.to_string().as_bytes())?;
        std::fs::rename(new, file)
    }

    fn read(all: &Value) -> Option<Self> {
        let text = |of: &Value, field: &str| of[field].as_str().map(str::to_owned);
        let mut state = Self::default();
        for it in all["vhosts"].as_array()? {
            let description = text(it, "description").unwrap_or_default();
            let tags = tags(&it["tags"]);
            state
                .hosts
                .insert(text(it, "name")?, Host { description, tags });
        }
        for it in all["users"].as_array()? {
            let hash = STANDARD.decode(it["password_hash"].as_str()?).ok()?;
            let tags = tags(&it["tags"]);
            state.users.insert(text(it, "name")?, User { tags, hash });
        }
        for it in all["permissions"].as_array()? {
            let rights = [
                text(it, "configure")?,
                text(it, "write")?,
                text(it, "read")?,
            ];
            state
                .permissions
                .insert((text(it, "vhost")?, text(it, "user")?), rights);
        }
        Some(state)
    }

    fn acted(&mut self, user: &str, method: &str, path: &str, body: &str) -> Answer {
        let path: Vec<String> = path
            .trim_start_matches("/api/")
            .split('/')
            .map(|it| percent_decode_str(it).decode_utf8_lossy().into_owned())
            .collect();
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let body = match method {
            "PUT" => match serde_json::from_str(body) {
                Ok(body) => body,
                Err(_) => return (400, error("bad_request", "not_json")),
            },
            _ => Value::Null,
        };
        match (method, path.as_slice()) {
            ("GET", ["vhosts"]) => (200, self.hosts.iter().map(host).collect()),
            ("GET", ["users"]) => (200, self.users.iter().map(person).collect()),
            ("GET", ["permissions"]) => (200, self.permissions.iter().map(permission).collect()),
            ("GET", ["vhosts", name]) => found(self.hosts.get_key_value(*name).map(host)),
            ("GET", ["users", name]) => found(self.users.get_key_value(*name).map(person)),
            ("PUT", ["vhosts", name]) => self.put_host(user, name, &body),
            ("PUT", ["users", name]) => self.put_user(name, &body),
            ("PUT", ["permissions", host, name]) => self.put_permission(host, name, &body),
            ("DELETE", ["vhosts", name]) => {
                self.permissions.retain(|(host, _), _| host != name);
                deleted(self.hosts.remove(*name))
            }
            ("DELETE", ["users", name]) => {
                self.permissions.retain(|(_, user), _| user != name);
                deleted(self.users.remove(*name))
            }
            ("DELETE", ["permissions", host, name]) => {
                let key = ((*host).to_owned(), (*name).to_owned());
                deleted(self.permissions.remove(&key))
            }
            ("POST", ["vhosts" | "users" | "permissions"]) => (405, Value::Null),
            _ => missing(),
        }
    }

    fn put_host(&mut self, user: &str, name: &str, body: &Value) -> Answer {
        let host = Host {
            description: body["description"].as_str().unwrap_or_default().to_owned(),
            tags: tags(&body["tags"]),
        };
        let before = self.hosts.insert(name.to_owned(), host);
        if before.is_none() {
            // The creator gets all permissions.
            let key = (name.to_owned(), user.to_owned());
            self.permissions.insert(key, everything());
        }
        put(before)
    }

    fn put_user(&mut self, name: &str, body: &Value) -> Answer {
        if body["tags"].is_null() {
            return (400, error("bad_request", "tags_not_present"));
        }
        let user = User {
            tags: tags(&body["tags"]),
            hash: body["password"].as_str().map(hash).unwrap_or_default(),
        };
        put(self.users.insert(name.to_owned(), user))
    }

    fn put_permission(&mut self, host: &str, user: &str, body: &Value) -> Answer {
        if !self.hosts.contains_key(host) || !self.users.contains_key(user) {
            return (400, error("bad_request", "vhost_or_user_not_found"));
        }
        let rights = ["configure", "write", "read"].map(|it| body[it].as_str());
        let [Some(configure), Some(write), Some(read)] = rights else {
            return (400, error("bad_request", "key_missing"));
        };
        let rights = [configure, write, read].map(str::to_owned);
        put(self
            .permissions
            .insert((host.to_owned(), user.to_owned()), rights))
    }
}

fn host((name, host): (&String, &Host)) -> Value {
    let (description, tags) = (&host.description, &host.tags);
    json!({"name": name, "description": description, "tags": tags, "tracing": false,
        "default_queue_type": "classic", "cluster_state": {"rabbit@simulated": "running"},
        "metadata": {"description": description, "tags": tags, "default_queue_type": "classic"}})
}

fn person((name, user): (&String, &User)) -> Value {
    json!({"name": name, "tags": user.tags, "limits": {}, "hashing_algorithm": ALGORITHM,
        "password_hash": STANDARD.encode(&user.hash)})
}

fn permission(
    ((host, user), [configure, write, read]): (&(String, String), &[String; 3]),
) -> Value {
    json!({"user": user, "vhost": host, "configure": configure, "write": write, "read": read})
}

/// Parses a text with commas, or a list.
fn tags(value: &Value) -> Vec<String> {
    let names: Vec<&str> = match value {
        Value::String(text) => text.split(',').map(str::trim).collect(),
        Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
        _ => vec![],
    };
    let names = names.into_iter().filter(|it| !it.is_empty());
    names.map(str::to_owned).collect()
}

fn everything() -> [String; 3] {
    [".*", ".*", ".*"].map(str::to_owned)
}

fn hash(password: &str) -> Vec<u8> {
    salted(&rand::random::<[u8; 4]>(), password)
}

fn salted(salt: &[u8], password: &str) -> Vec<u8> {
    let hash = Sha256::new().chain_update(salt).chain_update(password);
    [salt, hash.finalize().as_slice()].concat()
}

fn put<T>(before: Option<T>) -> Answer {
    (if before.is_some() { 204 } else { 201 }, Value::Null)
}

fn deleted<T>(before: Option<T>) -> Answer {
    before.map_or_else(missing, |_| (204, Value::Null))
}

fn found(object: Option<Value>) -> Answer {
    object.map_or_else(missing, |it| (200, it))
}

fn missing() -> Answer {
    (404, error("Object Not Found", "Not Found"))
}

fn error(error: &str, reason: &str) -> Value {
    json!({"error": error, "reason": reason})
}
