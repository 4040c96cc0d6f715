//! Keystone: identity.

use super::Service;
use super::definition::{
    Address, Callers, Definition, Entry, Probe, Run, Task, Variable, Workload, command, uwsgi,
};
use crate::cloud::Cloud;
use crate::config::Config;
use crate::held::{CREDENTIAL, Credentials, FERNET};
use crate::parameters::Parameters;
use crate::release::Release;

/// [`Config`] of Keystone. Fernet and credential keys are Secrets, mounted as directories.
pub(super) fn configuration(parameters: &Parameters) -> Config {
    let mut config = Config::default();
    config.logging();
    config.database("database", "keystone", "keystone");
    config.behind_edge();
    let keys = "the controller makes the keys once";
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
    // Longer ones are not rejected: Keystone itself makes them for application credentials, and with every change of a
    // user it takes the hash of the password for one.
    match parameters.release {
        // With the default Keystone warns with each login that it cuts longer ones.
        Release::Zed => {
            let why = "bcrypt reads no more of a password";
            config.preset("identity", "max_password_length", "54", why);
        }
        Release::Epoxy | Release::Gazpacho => {
            let why = "bcrypt alone reads 72 bytes of a password";
            config.preset("identity", "password_hash_algorithm", "bcrypt_sha256", why);
        }
    }
    config.preset(
        "oslo_messaging_notifications",
        "driver",
        "noop",
        "nothing reads notifications",
    );
    config
}

const USER: &str = "keystone";
const PORTS: &[(&str, u16)] = &[("http", 5000)];
const URL: &str = "http://keystone:5000/v3";

/// [`Definition`] of Keystone.
pub(super) fn definition(cloud: &Cloud, held: &Credentials) -> Definition {
    let files = Service::Keystone.files(cloud, held, None);
    let run = |command: Vec<String>| Run {
        command,
        user: USER,
        files: files.clone(),
        keys: vec![
            (FERNET.to_owned(), "/etc/keystone/fernet-keys"),
            (CREDENTIAL.to_owned(), "/etc/keystone/credential-keys"),
        ],
        scratch: vec!["/tmp", "/var/lib/keystone"],
        ..Run::default()
    };
    let mut bootstrap = run(command(&["keystone-manage", "bootstrap"]));
    for (option, value) in [
        ("--bootstrap-region-id", cloud.parameters.region.as_str()),
        ("--bootstrap-admin-url", URL),
        ("--bootstrap-internal-url", URL),
        ("--bootstrap-public-url", URL),
    ] {
        bootstrap.command.extend(command(&[option, value]));
    }
    bootstrap.environment = vec![("OS_BOOTSTRAP_PASSWORD", Variable::Account("identity-admin"))];
    Definition {
        name: "keystone",
        databases: vec!["keystone"],
        catalogue: vec![Entry {
            kind: "identity",
            name: "keystone",
            url: URL,
        }],
        addresses: vec![Address {
            name: "keystone",
            workload: "keystone-api",
            ports: PORTS,
            replicas: false,
            callers: Callers::Anyone,
        }],
        tasks: vec![
            Task {
                name: "keystone-schema",
                run: run(command(&["keystone-manage", "db_sync"])),
                needs: vec!["databases"],
                repeat: true,
            },
            Task {
                name: "keystone-bootstrap",
                run: bootstrap,
                needs: vec!["keystone-schema"],
                repeat: false,
            },
        ],
        workloads: vec![Workload {
            name: "keystone-api",
            stateful: None,
            run: run(uwsgi(&cloud.parameters, "keystone-api", 5000)),
            ports: PORTS,
            ready: Probe::Http("http", "/healthcheck"),
            alive: Some(Probe::Tcp("http")),
            needs: vec!["keystone-bootstrap", "memcached"],
        }],
        ..Definition::default()
    }
}
