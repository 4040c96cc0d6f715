//! Configuration sections of several services.

use super::edge;
use crate::config::{Config, Source, Value};
use crate::parameters::Parameters;

/// Account of a service in the database, the message broker, and Keystone.
const DATABASE: &str = "database";
const MESSAGING: &str = "messaging";
const IDENTITY: &str = "identity";
/// Key of a service's cache of tokens.
const CACHE: &str = "cache";
/// Secret shared by Nova's metadata API and the proxies of networks.
const METADATA: &str = "metadata";

impl Config {
    /// Sets an option that the user cannot change.
    pub(super) fn require(&mut self, section: &str, name: &str, value: &str, why: &'static str) {
        self.set(section, name, Value::text(value), Source::Structure(why));
    }

    /// Sets an option that the user can change.
    pub(super) fn preset(&mut self, section: &str, name: &str, value: &str, why: &'static str) {
        self.set(section, name, Value::text(value), Source::Default(why));
    }

    /// Sets an option to the value of a parameter, where the user changes it.
    pub(super) fn derive(&mut self, section: &str, name: &str, value: &str, field: &'static str) {
        self.set(section, name, Value::text(value), Source::Parameter(field));
    }

    fn password(&mut self, section: &str, name: &str, pattern: String, account: &'static str) {
        let why = "the account is made by the controller";
        let value = Value::Secret { pattern, account };
        self.set(section, name, value, Source::Structure(why));
    }

    /// Sends logs to standard error, where the kubelet collects them.
    pub(super) fn logging(&mut self) {
        let why = "logs are read with kubectl logs";
        self.require("DEFAULT", "use_stderr", "true", why);
        self.require("DEFAULT", "use_syslog", "false", why);
        self.require("DEFAULT", "log_file", "", why);
        self.require("DEFAULT", "log_dir", "", why);
    }

    /// Connection to a database of the service.
    pub(super) fn database(&mut self, section: &str, user: &str, database: &str) {
        let url = format!("mysql+pymysql://{user}:{{}}@mariadb:3306/{database}?charset=utf8");
        self.password(section, "connection", url, DATABASE);
        // A database that restarts is waited for; without this a service ends after ten attempts.
        self.preset(
            section,
            "max_retries",
            "-1",
            "the service waits for its database",
        );
        self.preset(
            section,
            "connection_recycle_time",
            "600",
            "shorter than the broker's and firewalls' idle limits",
        );
    }

    /// Connection to the message broker, with a virtual host named like the service.
    pub(super) fn messaging(&mut self, service: &str) {
        let url = format!("rabbit://{service}:{{}}@rabbitmq:5672/{service}");
        self.password("DEFAULT", "transport_url", url, MESSAGING);
        self.require(
            "oslo_messaging_rabbit",
            "rabbit_quorum_queue",
            "true",
            "the type of a queue cannot change later, and quorum queues grow to three brokers",
        );
        self.preset(
            "oslo_messaging_notifications",
            "driver",
            "noop",
            "nothing reads notifications",
        );
    }

    /// Login of the service at Keystone as `user`, in `section`.
    pub(super) fn login(&mut self, section: &str, user: &str, parameters: &Parameters) {
        let why = "the account is made by the controller";
        for (name, value) in [
            ("auth_type", "password"),
            ("auth_url", "http://keystone:5000/v3"),
            ("username", user),
            ("user_domain_name", "Default"),
            ("project_name", "service"),
            ("project_domain_name", "Default"),
        ] {
            self.require(section, name, value, why);
        }
        self.password(section, "password", "{}".to_owned(), IDENTITY);
        // The section of Cinder has another name for it, and logins alone have none.
        if !["service_user", "service_auth", "cinder"].contains(&section) {
            self.derive(section, "region_name", &parameters.region, "region");
        }
    }

    /// Identification of servers in the metadata API: a proxy sends the server in a header, signed with a shared
    /// secret.
    pub(super) fn metadata(&mut self) {
        let why = "servers reach the metadata API through the proxies of their networks";
        self.require("neutron", "service_metadata_proxy", "true", why);
        let (section, name) = ("neutron", "metadata_proxy_shared_secret");
        self.password(section, name, "{}".to_owned(), METADATA);
    }

    /// Validation of the tokens of callers.
    pub(super) fn tokens(&mut self, user: &str, parameters: &Parameters) {
        let section = "keystone_authtoken";
        self.login(section, user, parameters);
        let why = "the address of Keystone in answers to callers without a token";
        let keystone = edge::public(parameters, "http://keystone:5000/v3");
        self.require(section, "www_authenticate_uri", &keystone, why);
        self.require(
            section,
            "memcached_servers",
            "memcached:11211",
            "the cache of the cloud",
        );
        // Whoever reads the cache sees no token, and whoever writes to it forges none.
        let why = "what is cached of tokens is encrypted with a key of the service";
        self.require(section, "memcache_security_strategy", "ENCRYPT", why);
        self.password(section, "memcache_secret_key", "{}".to_owned(), CACHE);
        // Without service tokens Nova cannot detach volumes since the mend of CVE-2023-2088.
        let why = "services call each other with service tokens";
        self.require(section, "service_token_roles", "service", why);
        self.require(section, "service_token_roles_required", "true", why);
    }

    /// Headers of the edge, from which URLs in responses are made.
    pub(super) fn behind_edge(&mut self) {
        let why = "the edge ends TLS and sets the headers";
        self.require(
            "oslo_middleware",
            "enable_proxy_headers_parsing",
            "true",
            why,
        );
    }

    /// Number of processes of a program. By default a program has a process for each processor of the node, each with a
    /// hundred megabytes and connections to the database of its own.
    pub(super) fn processes(&mut self, section: &str, name: &str, number: u32) {
        let why = "the same on every node, whatever its processors";
        self.preset(section, name, &number.to_string(), why);
    }

    /// Directory of locks between processes of one Pod.
    pub(super) fn locks(&mut self, service: &str) {
        self.require(
            "oslo_concurrency",
            "lock_path",
            &format!("/var/lib/{service}/tmp"),
            "the only writable directory of the Pod",
        );
    }
}
