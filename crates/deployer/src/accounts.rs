//! What a cloud has in the stores of accounts: desired, observed, and the writes between them. Pure.
//!
//! ```text
//!   broker     virtual hosts, users and permissions of RabbitMQ, by its management API
//!   identity   projects, users, roles, services and endpoints of Keystone
//! ```

pub(crate) mod broker;
pub(crate) mod identity;

use self::broker::Broker;
use self::identity::Identity;
use crate::object::Password;

/// What a cloud has in a store of accounts.
#[derive(Clone, Debug, PartialEq)]
pub enum Accounts {
    /// RabbitMQ.
    Broker(Broker),
    /// Keystone.
    Identity(Identity),
}

impl Accounts {
    /// The name of the store for people.
    pub fn store(&self) -> &'static str {
        match self {
            Self::Broker(_) => "RabbitMQ",
            Self::Identity(_) => "Keystone",
        }
    }

    /// The workload whose Pods answer.
    pub fn program(&self) -> &'static str {
        match self {
            Self::Broker(_) => Broker::PROGRAM,
            Self::Identity(_) => Identity::PROGRAM,
        }
    }

    /// The port on which they do.
    pub fn port(&self) -> u16 {
        match self {
            Self::Broker(_) => Broker::PORT,
            Self::Identity(_) => Identity::PORT,
        }
    }
}

/// What is on everything of the cloud with this uid.
pub(crate) fn mark(uid: &str) -> String {
    format!("ferrostack-cloud-{uid}")
}

/// A request to a store of accounts. The body may hold a password.
#[derive(Clone, Debug, PartialEq)]
pub struct AccountWrite {
    /// The HTTP method.
    pub method: &'static str,
    /// The path, escaped.
    pub path: String,
    /// The body as JSON; none for a deletion.
    pub body: Option<Password>,
    /// What is done, in words, such as `creating virtual host nova`.
    pub doing: String,
}

/// What is known of a store of accounts of a cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// Everything is as desired.
    All,
    /// Not yet, and why.
    Not(String),
    /// Something of another has a wanted name.
    Conflict(String),
}

/// What is to be done in a store of accounts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccountPlan {
    /// The requests, in order; none when there are conflicts.
    pub writes: Vec<AccountWrite>,
    /// What has a wanted name and is not of this cloud.
    pub conflicts: Vec<String>,
}

/// A segment of a path: everything but letters, digits and `-._~` is escaped.
fn segment(text: &str) -> String {
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escaped = text.bytes().map(|byte| match unreserved(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    escaped.collect()
}
