//! Placement: what resources there are, and who uses them.

use crate::config::Config;
use crate::parameters::Parameters;

/// The configuration.
pub(super) fn configuration(parameters: &Parameters) -> Config {
    let mut config = Config::default();
    config.logging();
    config.database("placement_database", "placement", "placement");
    config.tokens("placement", parameters);
    config.behind_edge();
    let why = "callers are authenticated by Keystone";
    config.require("api", "auth_strategy", "keystone", why);
    config
}
