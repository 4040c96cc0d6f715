//! Nova: servers. API, conductor and scheduler read the same file.

use crate::config::Config;
use crate::parameters::Parameters;

/// The configuration.
pub(super) fn configuration(parameters: &Parameters) -> Config {
    let mut config = Config::default();
    config.logging();
    config.database("api_database", "nova", "nova_api");
    config.database("database", "nova", "nova");
    config.messaging("nova");
    config.tokens("nova", parameters);
    config.behind_edge();
    config.locks("nova");
    config.require(
        "DEFAULT",
        "state_path",
        "/var/lib/nova",
        "the only writable directory of the Pod",
    );
    for section in ["placement", "neutron", "service_user"] {
        config.login(section, "nova", parameters);
    }
    let why = "services call each other with service tokens";
    config.require("service_user", "send_service_user_token", "true", why);
    for section in ["placement", "neutron", "glance"] {
        let why = "services call each other inside the cluster";
        config.require(section, "valid_interfaces", "internal", why);
    }
    config.derive("glance", "region_name", &parameters.region, "region");
    config
}
