//! Keystone: identity.

use crate::config::Config;

/// The configuration. Fernet and credential keys are Secrets, mounted as directories.
pub(super) fn configuration() -> Config {
    let mut config = Config::default();
    config.logging();
    config.database("database", "keystone", "keystone");
    config.behind_edge();
    let keys = "the keys are made and rotated by the controller";
    config.require("token", "provider", "fernet", keys);
    for section in ["fernet_tokens", "fernet_receipts"] {
        config.require(section, "key_repository", "/etc/keystone/fernet-keys", keys);
    }
    config.require(
        "credential",
        "key_repository",
        "/etc/keystone/credential-keys",
        keys,
    );
    let cache = "the cache of the cloud";
    config.require("cache", "enabled", "true", cache);
    config.require("cache", "backend", "dogpile.cache.memcached", cache);
    config.require("cache", "memcache_servers", "memcached:11211", cache);
    config.preset(
        "oslo_messaging_notifications",
        "driver",
        "noop",
        "nothing reads notifications",
    );
    config
}
