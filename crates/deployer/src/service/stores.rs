//! Addresses of a cloud's data stores for tasks.

use super::definition::File;
use super::{mariadb, ovn};
use crate::held::Credentials;

/// Address of the database.
pub(crate) const DATABASE: &str = "mariadb:3306";
/// Address of the message broker.
pub(crate) const BROKER: &str = "rabbitmq:5672";
/// URL of the API of Keystone.
pub(crate) const IDENTITY: &str = "http://keystone:5000/v3";
/// Address of the cache.
pub(crate) const CACHE: &str = "memcached:11211";

/// URL of the northbound database of the cloud in this namespace.
pub(crate) fn northbound(namespace: &str) -> String {
    ovn::northbound(namespace)
}

/// Login of the administrator of the [`DATABASE`], as a [`File`].
pub(crate) fn login(held: &Credentials) -> File {
    mariadb::client(held)
}
