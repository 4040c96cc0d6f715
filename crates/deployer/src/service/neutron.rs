//! Neutron: networks, with OVN.

use crate::config::{Config, Source, Value};
use crate::parameters::Parameters;

/// The bytes that Geneve with OVN's options takes from each packet of an IPv4 network between the nodes.
const GENEVE: &str = "38";

/// The configuration, ML2's included: one file is enough when each program reads only that.
pub(super) fn configuration(parameters: &Parameters) -> Config {
    let mut config = Config::default();
    config.logging();
    config.database("database", "neutron", "neutron");
    config.messaging("neutron");
    config.tokens("neutron", parameters);
    config.behind_edge();
    config.locks("neutron");
    config.require(
        "DEFAULT",
        "state_path",
        "/var/lib/neutron",
        "the only writable directory of the Pod",
    );
    let why = "callers are authenticated by Keystone";
    config.require("DEFAULT", "auth_strategy", "keystone", why);
    config.login("nova", "neutron", parameters);
    config.login("placement", "neutron", parameters);
    ovn(&mut config);
    networks(&mut config, parameters);
    config
}

fn ovn(config: &mut Config) {
    let why = "networks are made by OVN";
    config.require("DEFAULT", "core_plugin", "ml2", why);
    config.require("ml2", "mechanism_drivers", "ovn", why);
    config.require("ovn", "ovn_nb_connection", "tcp:ovn-nb:6641", why);
    config.require("ovn", "ovn_sb_connection", "tcp:ovn-sb:6642", why);
    config.require("ml2_type_geneve", "max_header_size", GENEVE, why);
    let plugins = "what OVN serves";
    config.set(
        "DEFAULT",
        "service_plugins",
        list(&["ovn-router", "trunk", "qos", "port_forwarding"]),
        Source::Default(plugins),
    );
    config.set(
        "ml2",
        "extension_drivers",
        list(&["port_security", "qos"]),
        Source::Default(plugins),
    );
    config.set(
        "ml2",
        "tenant_network_types",
        list(&["geneve"]),
        Source::Default(plugins),
    );
    config.set(
        "ml2",
        "type_drivers",
        list(&["local", "flat", "vlan", "geneve"]),
        Source::Default(plugins),
    );
    config.preset(
        "ml2_type_geneve",
        "vni_ranges",
        "1:65535",
        "every network has a number of these",
    );
}

fn networks(config: &mut Config, parameters: &Parameters) {
    let network = &parameters.network;
    let mtu = network.mtu.0.to_string();
    config.derive("DEFAULT", "global_physnet_mtu", &mtu, "network.mtu");
    config.derive("ml2", "path_mtu", &mtu, "network.mtu");
    let names: Vec<String> = network.physical.iter().map(|it| it.name.clone()).collect();
    let vlans = network
        .physical
        .iter()
        .filter_map(|it| Some(format!("{}:{}", it.name, it.vlans.as_deref()?)))
        .collect();
    for (section, name, value) in [
        ("ml2_type_flat", "flat_networks", names),
        ("ml2_type_vlan", "network_vlan_ranges", vlans),
    ] {
        config.set(
            section,
            name,
            Value::List(value),
            Source::Parameter("network.physical"),
        );
    }
}

fn list(names: &[&str]) -> Value {
    Value::List(names.iter().map(|name| (*name).to_owned()).collect())
}
