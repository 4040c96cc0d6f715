//! Virtual hosts, users and permissions of RabbitMQ.
//!
//! Each service has a virtual host of its name and a user, or two in a rotation, with all rights there. Both have the
//! uid of the cloud as a tag, kept by RabbitMQ since 3.8 and without any rights; permissions have no tags and belong to
//! the owner of the user. A PUT of the management API creates or replaces an object together with the tags: no object
//! of the cloud ever exists without a tag.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};
use sha2::{Digest as _, Sha256};

use super::{AccountPlan, AccountWrite, mark, segment};
use crate::held::halves::Login;
use crate::object::Password;

/// Account of the controller, made by the broker on an empty volume (`default_user`).
pub(crate) const ADMIN: &str = "ferrostack";
/// Key of the password of [`ADMIN`] in the Secret `openstack-accounts`.
pub(crate) const ADMIN_PASSWORD: &str = "messaging-admin";
/// Pattern for all names.
const EVERYTHING: &str = ".*";
/// Only hashing of the broker for new passwords.
const SHA256: &str = "rabbit_password_hashing_sha256";
/// Length of the salt before a hash, in bytes.
const SALT: usize = 4;

/// Desired objects of a cloud in RabbitMQ.
#[derive(Clone, Debug, PartialEq)]
pub struct Broker {
    /// Uid of the cloud.
    pub(crate) uid: String,
    /// Password of the controller.
    pub(crate) admin: Password,
    /// [`Login`]s of the services, by the names of their virtual hosts.
    pub(crate) accounts: BTreeMap<String, Vec<Login>>,
}

/// Existing objects in RabbitMQ.
#[derive(Clone, Debug, Default)]
pub struct BrokerSeen {
    hosts: Vec<Host>,
    users: Vec<User>,
    permissions: Vec<Permission>,
}

#[derive(Clone, Debug, Deserialize)]
struct Host {
    name: String,
    #[serde(default)]
    tags: Tags,
}

#[derive(Clone, Deserialize)]
struct User {
    name: String,
    #[serde(default)]
    tags: Tags,
    #[serde(default)]
    password_hash: String,
    #[serde(default)]
    hashing_algorithm: String,
}

#[derive(Clone, Debug, Deserialize)]
struct Permission {
    user: String,
    vhost: String,
    configure: String,
    write: String,
    read: String,
}

/// Tags as a list or, in older responses, a text with commas.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Tags {
    List(Vec<String>),
    Text(String),
}

impl Default for Tags {
    fn default() -> Self {
        Self::List(Vec::new())
    }
}

impl std::fmt::Debug for User {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "user {}", self.name)
    }
}

impl Tags {
    fn names(&self) -> Vec<&str> {
        match self {
            Self::List(names) => names.iter().map(String::as_str).collect(),
            Self::Text(text) => text.split(',').map(str::trim).collect(),
        }
    }

    fn has(&self, name: &str) -> bool {
        self.names().contains(&name)
    }
}

impl BrokerSeen {
    /// Reads the responses to [`Broker::LISTS`].
    ///
    /// # Errors
    /// The response with an unexpected form.
    pub fn read([hosts, users, permissions]: [Json; 3]) -> Result<Self, String> {
        Ok(Self {
            hosts: list("virtual hosts", hosts)?,
            users: list("users", users)?,
            permissions: list("permissions", permissions)?,
        })
    }
}

fn list<T: DeserializeOwned>(what: &str, answer: Json) -> Result<Vec<T>, String> {
    // The words of the error would repeat values.
    serde_json::from_value(answer)
        .map_err(|_| format!("RabbitMQ's list of {what} is of an unknown form"))
}

impl Broker {
    /// Workload whose Pod serves the management API.
    pub const PROGRAM: &str = "rabbitmq";
    /// Port of the management API.
    pub const PORT: u16 = 15672;
    /// Lists to read.
    pub const LISTS: [&str; 3] = ["/api/vhosts", "/api/users", "/api/permissions"];

    /// Value of the header `Authorization`.
    pub fn authorization(&self) -> Password {
        let login = format!("{ADMIN}:{}", self.admin.expose());
        Password::new(format!("Basic {}", STANDARD.encode(login)))
    }

    /// Advice for the user after a response with the status 401.
    pub fn advice() -> String {
        format!(
            "RabbitMQ took the password {ADMIN_PASSWORD} of the Secret openstack-accounts for its user {ADMIN} when its volume was empty: restore it there, or set it by `rabbitmqctl change_password {ADMIN}`"
        )
    }

    /// [`AccountPlan`] from the objects in `seen` to the desired ones.
    pub fn plan(&self, seen: &BrokerSeen) -> AccountPlan {
        let tag = mark(&self.uid);
        let conflicts: Vec<String> = self.conflicts(seen, &tag);
        if !conflicts.is_empty() {
            return AccountPlan {
                conflicts,
                ..AccountPlan::default()
            };
        }
        let mut writes = Vec::new();
        for (name, logins) in &self.accounts {
            writes.extend(host(name, seen, &tag));
            for login in logins {
                writes.extend(user(login, seen, &tag));
                writes.extend(permission(name, &login.user, seen));
            }
        }
        writes.extend(self.removed(seen, &tag));
        AccountPlan {
            writes,
            conflicts: vec![],
        }
    }

    /// Objects with a wanted name but without the tag of this cloud.
    fn conflicts(&self, seen: &BrokerSeen, tag: &str) -> Vec<String> {
        let hosts = seen.hosts.iter();
        let hosts = hosts.filter(|it| self.accounts.contains_key(&it.name));
        let hosts = hosts.map(|it| ("virtual host", &it.name, &it.tags));
        let users = seen.users.iter();
        let users = users.filter(|it| self.host_of(&it.name).is_some());
        let users = users.map(|it| ("user", &it.name, &it.tags));
        let foreign = hosts.chain(users).filter(|(.., tags)| !tags.has(tag));
        let words = foreign.map(|(kind, name, _)| {
            format!("RabbitMQ: {kind} {name} is there and is not of this cloud: it has no tag {tag}. Delete it, or give it that tag")
        });
        words.collect()
    }

    /// Deletions of undesired objects with the tag of this cloud: rights, then users, then virtual hosts.
    fn removed(&self, seen: &BrokerSeen, tag: &str) -> Vec<AccountWrite> {
        let rights = seen
            .permissions
            .iter()
            .filter(|it| self.host_of(&it.user).is_some_and(|host| host != it.vhost));
        let mut writes: Vec<AccountWrite> = rights
            .map(|it| AccountWrite {
                method: "DELETE",
                path: permission_path(&it.vhost, &it.user),
                body: None,
                doing: format!(
                    "removing the rights of user {} in virtual host {}",
                    it.user, it.vhost
                ),
            })
            .collect();
        let users = seen.users.iter();
        let users = users.filter(|it| it.tags.has(tag) && self.host_of(&it.name).is_none());
        let users = users.map(|it| ("user", "users", &it.name));
        let hosts = seen.hosts.iter();
        let hosts = hosts.filter(|it| it.tags.has(tag) && !self.accounts.contains_key(&it.name));
        let hosts = hosts.map(|it| ("virtual host", "vhosts", &it.name));
        writes.extend(users.chain(hosts).map(|(kind, path, name)| AccountWrite {
            method: "DELETE",
            path: format!("/api/{path}/{}", segment(name)),
            body: None,
            doing: format!("deleting {kind} {name}"),
        }));
        writes
    }

    /// Virtual host of a desired user.
    fn host_of(&self, user: &str) -> Option<&str> {
        let mut all = self.accounts.iter();
        let (host, _) = all.find(|(_, logins)| logins.iter().any(|it| it.user == user))?;
        Some(host)
    }
}

fn host(name: &str, seen: &BrokerSeen, tag: &str) -> Option<AccountWrite> {
    // Other tags on it are those of the people who set them.
    if seen.hosts.iter().any(|it| it.name == name) {
        return None;
    }
    let body = json!({"tags": tag, "description": format!("messages of {name}")});
    Some(put(
        format!("/api/vhosts/{}", segment(name)),
        &body,
        format!("creating virtual host {name}"),
    ))
}

fn user(login: &Login, seen: &BrokerSeen, tag: &str) -> Option<AccountWrite> {
    let Login {
        user: name,
        password,
    } = login;
    let there = seen.users.iter().find(|it| it.name == *name);
    // Tags of users are also roles in the management API, of which a service needs none.
    let right = there.is_some_and(|it| it.tags.names() == [tag] && it.accepts(password));
    let verb = match there {
        Some(_) if right => return None,
        Some(_) => "resetting",
        None => "creating",
    };
    let body = json!({"password": password.expose(), "tags": tag});
    let path = format!("/api/users/{}", segment(name));
    Some(put(path, &body, format!("{verb} user {name}")))
}

fn permission(host: &str, user: &str, seen: &BrokerSeen) -> Option<AccountWrite> {
    let mut all = seen.permissions.iter();
    let there = all.find(|it| it.user == user && it.vhost == host);
    let right = there.is_some_and(|it| {
        [&it.configure, &it.write, &it.read]
            .into_iter()
            .all(|it| it == EVERYTHING)
    });
    if right {
        return None;
    }
    let body = json!({"configure": EVERYTHING, "write": EVERYTHING, "read": EVERYTHING});
    let doing = format!("granting user {user} all rights in virtual host {host}");
    Some(put(permission_path(host, user), &body, doing))
}

fn permission_path(host: &str, user: &str) -> String {
    format!("/api/permissions/{}/{}", segment(host), segment(user))
}

fn put(path: String, body: &Json, doing: String) -> AccountWrite {
    AccountWrite {
        method: "PUT",
        path,
        body: Some(Password::new(body.to_string())),
        doing,
    }
}

impl User {
    /// True if the [`Password`] has this hash: the salt, followed by SHA-256 of the salt and the password.
    fn accepts(&self, password: &Password) -> bool {
        let Ok(bytes) = STANDARD.decode(&self.password_hash) else {
            return false;
        };
        let Some((salt, hash)) = bytes.split_at_checked(SALT) else {
            return false;
        };
        let mut digest = Sha256::new();
        digest.update(salt);
        digest.update(password.expose());
        self.hashing_algorithm == SHA256 && digest.finalize().as_slice() == hash
    }
}

#[cfg(test)]
mod tests;
