//! Accounts of a cloud in other programs: desired, observed, and the writes between both. Pure.
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

/// Desired accounts of a cloud in a store.
#[derive(Clone, Debug, PartialEq)]
pub enum Accounts {
    /// Accounts in RabbitMQ.
    Broker(Broker),
    /// Accounts in Keystone.
    Identity(Identity),
}

impl Accounts {
    /// Name of the store for people.
    pub fn store(&self) -> &'static str {
        match self {
            Self::Broker(_) => "RabbitMQ",
            Self::Identity(_) => "Keystone",
        }
    }

    /// Workload whose Pods serve the API of the store.
    pub fn program(&self) -> &'static str {
        match self {
            Self::Broker(_) => Broker::PROGRAM,
            Self::Identity(_) => Identity::PROGRAM,
        }
    }

    /// Port of the API of the store.
    pub fn port(&self) -> u16 {
        match self {
            Self::Broker(_) => Broker::PORT,
            Self::Identity(_) => Identity::PORT,
        }
    }
}

/// Mark on all accounts of the cloud with this uid.
pub(crate) fn mark(uid: &str) -> String {
    format!("ferrostack-cloud-{uid}")
}

/// Request to a store of accounts. The body may have a [`Password`].
#[derive(Clone, Debug, PartialEq)]
pub struct AccountWrite {
    /// HTTP method.
    pub method: &'static str,
    /// Path, escaped.
    pub path: String,
    /// Body as JSON; none for a deletion.
    pub body: Option<Password>,
    /// Description of the request, such as `creating virtual host nova`.
    pub doing: String,
}

/// Knowledge about the accounts of a cloud in a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Written {
    /// All accounts are as desired.
    All,
    /// Not all accounts are as desired; the reason.
    Not(String),
    /// An account of another owner has a wanted name.
    Conflict(String),
}

/// Writes to a store of accounts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AccountPlan {
    /// [`AccountWrite`]s, in order; none in case of conflicts.
    pub writes: Vec<AccountWrite>,
    /// Objects of other owners with wanted names.
    pub conflicts: Vec<String>,
}

/// Segment of a path: everything but letters, digits and `-._~` is escaped.
fn segment(text: &str) -> String {
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let escaped = text.bytes().map(|byte| match unreserved(byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    });
    escaped.collect()
}
