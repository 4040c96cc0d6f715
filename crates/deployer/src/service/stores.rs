//! Where tasks find what a cloud keeps its data in.

use super::definition::File;
use super::{mariadb, ovn};
use crate::held::Held;

/// The database.
pub(crate) const DATABASE: &str = "mariadb:3306";
/// The message broker.
pub(crate) const BROKER: &str = "rabbitmq:5672";
/// The API of Keystone.
pub(crate) const IDENTITY: &str = "http://keystone:5000/v3";
/// The cache.
pub(crate) const CACHE: &str = "memcached:11211";

/// The northbound database of the cloud in this namespace.
pub(crate) fn northbound(namespace: &str) -> String {
    ovn::northbound(namespace)
}

/// The login of the administrator of the [`DATABASE`].
pub(crate) fn login(held: &Held) -> File {
    mariadb::client(held)
}
