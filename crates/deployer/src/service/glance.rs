//! Glance: images, in files on a volume.

use crate::config::Config;
use crate::parameters::Parameters;

/// The configuration.
pub(super) fn configuration(parameters: &Parameters) -> Config {
    let mut config = Config::default();
    config.logging();
    config.database("database", "glance", "glance");
    config.tokens("glance", parameters);
    config.behind_edge();
    config.locks("glance");
    let store = "images are files on the volume of Glance";
    config.require("DEFAULT", "enabled_backends", "file:file", store);
    config.require("glance_store", "default_backend", "file", store);
    for (section, directory) in [
        ("file", "images"),
        ("os_glance_staging_store", "staging"),
        ("os_glance_tasks_store", "tasks"),
    ] {
        let path = format!("/var/lib/glance/{directory}");
        config.require(section, "filesystem_store_datadir", &path, store);
    }
    config.require(
        "paste_deploy",
        "flavor",
        "keystone",
        "callers are authenticated by Keystone",
    );
    config.preset(
        "oslo_messaging_notifications",
        "driver",
        "noop",
        "nothing reads notifications",
    );
    config
}
