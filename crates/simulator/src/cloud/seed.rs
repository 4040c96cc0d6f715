//! The content of a new cloud.

use std::collections::BTreeSet;

use ipnet::Ipv4Net;
use serde_json::json;

use super::document::Fields;
use super::identity::{assignment_doc, project_doc, role_doc, seed_catalog, user_doc};
use super::kind::Kind;
use super::settings::{REGION, Settings};
use super::state::State;
use super::{Passwords, compute, document, image, network, volume};

/// Images of every simulated cloud.
const IMAGES: [&str; 7] = [
    "ubuntu-24.04",
    "ubuntu-2404-kube-v1.31.0",
    "ubuntu-2404-kube-v1.32.0",
    "ubuntu-2404-kube-v1.33.0",
    "ubuntu-2404-kube-v1.34.0",
    "ubuntu-2404-kube-v1.34.2",
    "flatcar-stable",
];

/// Creates the initial content.
pub(crate) fn fill(
    state: &mut State,
    settings: &Settings,
    images: &[String],
    passwords: &Passwords,
) {
    let admin = people(state, passwords);
    seed_catalog(state);
    for (id, name, vcpus, ram, disk) in [
        ("1", "m1.tiny", 1, 512, 1),
        ("2", "m1.small", 1, 2048, 20),
        ("3", "m1.medium", 2, 4096, 40),
        ("4", "m1.large", 4, 8192, 80),
        ("5", "m1.xlarge", 8, 16_384, 160),
    ] {
        state.put(Kind::Flavor, compute::flavor(id, name, vcpus, ram, disk));
    }
    // Clients look images up by name and expect one.
    let names: BTreeSet<&str> = IMAGES
        .into_iter()
        .chain(images.iter().map(String::as_str))
        .collect();
    for name in names {
        image::seed(state, name, &admin);
    }
    volume::seed(state);
    external_network(state, &settings.external_cidr, &admin);
}

/// Returns a clouds.yaml with the two clouds.
pub(crate) fn clouds_yaml(base: &str, passwords: &Passwords) -> String {
    let cloud = |name: &str, user: &str, password: &str| {
        format!(
            "  {name}:\n    auth:\n      auth_url: {base}/identity/v3\n      username: {user}\n      \
             password: {password}\n      project_name: {user}\n      user_domain_name: Default\n      \
             project_domain_name: Default\n    region_name: {REGION}\n    interface: public\n    \
             identity_api_version: 3\n"
        )
    };
    format!(
        "clouds:\n{}{}",
        cloud("simulated", "demo", &quoted(&passwords.demo)),
        cloud("simulated-admin", "admin", &quoted(&passwords.admin))
    )
}

/// Returns text as YAML, unquoted only if no other reading is possible.
fn quoted(text: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_".contains(letter);
    let begins = text.starts_with(|letter: char| letter.is_ascii_alphabetic());
    let is_word = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word));
    match begins && text.chars().all(is_plain) && !is_word {
        true => text.to_owned(),
        false => json!(text).to_string(),
    }
}

/// Adds domain, roles, projects and users; returns the project of administrators.
fn people(state: &mut State, passwords: &Passwords) -> String {
    state.put(
        Kind::Domain,
        document::doc(json!({"id": "default", "name": "Default", "enabled": true,
            "description": "The default domain", "tags": [], "options": {}})),
    );
    let mut roles = Vec::new();
    for name in ["admin", "member", "reader"] {
        let id = state.new_hex_id();
        state.put(Kind::Role, role_doc(&id, name, None, true));
        roles.push(id);
    }
    let mut admin = String::new();
    for (name, password) in [("admin", &passwords.admin), ("demo", &passwords.demo)] {
        let project = state.new_hex_id();
        let user = state.new_hex_id();
        state.put(Kind::Project, project_doc(&project, name, "default", ""));
        state.put(Kind::User, user_doc(&user, name, password, &project));
        let granted = if name == "admin" {
            &roles[..]
        } else {
            &roles[1..]
        };
        for role in granted {
            state.put(Kind::Assignment, assignment_doc(&user, &project, role));
        }
        network::ensure_default_group(state, &project);
        if name == "admin" {
            admin = project;
        }
    }
    admin
}

/// Adds `public`: floating addresses on which guests can really listen.
fn external_network(state: &mut State, cidr: &Ipv4Net, project: &str) {
    let id = state.new_id();
    let now = super::clock::zulu(state.now());
    let stamped = |value: serde_json::Value| {
        let mut doc = document::doc(value);
        doc.set("project_id", project);
        doc.set("created_at", now.clone());
        doc.set("updated_at", now.clone());
        doc.set("revision_number", 1);
        doc.set("tags", json!([]));
        doc
    };
    state.put(
        Kind::Network,
        stamped(
            json!({"id": id, "name": "public", "description": "", "admin_state_up": true,
            "status": "ACTIVE", "shared": false, "router:external": true, "is_default": true,
            "provider:network_type": "flat", "provider:physical_network": "physnet1",
            "provider:segmentation_id": null, "mtu": 1500, "port_security_enabled": true,
            "availability_zone_hints": [], "availability_zones": [],
            "ipv4_address_scope": null, "ipv6_address_scope": null, "qos_policy_id": null}),
        ),
    );
    let subnet = state.new_id();
    let first = u32::from(cidr.network());
    let last = u32::from(cidr.broadcast());
    let address = |number: u32| std::net::Ipv4Addr::from(number).to_string();
    // Addresses below .10 are reserved for the machine, as in a real provider network.
    let start = first.saturating_add(10).min(last.saturating_sub(1));
    state.put(
        Kind::Subnet,
        stamped(
            json!({"id": subnet, "name": "public-subnet", "description": "", "network_id": id,
            "ip_version": 4, "cidr": cidr.to_string(), "gateway_ip": address(first + 1),
            "allocation_pools": [{"start": address(start), "end": address(last.saturating_sub(1))}],
            "enable_dhcp": false, "dns_nameservers": [], "host_routes": [], "ipv6_ra_mode": null,
            "ipv6_address_mode": null, "service_types": [], "subnetpool_id": null}),
        ),
    );
}
