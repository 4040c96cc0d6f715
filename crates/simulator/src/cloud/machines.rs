//! View of the cloud for the runners of its servers' machines.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Cloud;
use super::balancer;
use super::compute;
use super::document::{Doc, Fields};
use super::kind::Kind;
use super::network;
use super::state::State;
use crate::machine::{
    Address, Image, Key, Machine, Member, Port, Route, Servers, Volume, VolumeAnswer, is_everywhere,
};

impl Servers for Cloud {
    fn machine(&self, server: &str) -> Option<Machine> {
        let core = self.inner.core.lock();
        let doc = core.state.get(Kind::Server, server)?;
        (doc.text("status") != "DELETED").then(|| machine(&core.state, &doc))
    }

    fn ended(&self, server: &str, boot: u64) {
        self.change(|state| {
            if boots(state, server) == Some(boot) {
                compute::switched_off(state, server);
            }
        });
    }

    fn failed(&self, server: &str, boot: u64, fault: &str) {
        self.change(|state| {
            if boots(state, server) == Some(boot) {
                compute::fail(state, server, 500, fault);
            }
        });
    }

    fn volumes(&self, server: &str) -> Option<Vec<Volume>> {
        let core = self.inner.core.lock();
        let doc = core.state.get(Kind::Server, server)?;
        (doc.text("status") != "DELETED").then(|| volumes(&core.state, &doc))
    }

    fn answers_for_volumes(&self, server: &str, boot: u64) {
        self.change(|state| {
            if boots(state, server) == Some(boot) {
                compute::answers_for_volumes(state, server, boot);
            }
        });
    }

    fn volume_answered(&self, server: &str, volume: &str, answer: &VolumeAnswer) {
        self.change(|state| {
            compute::volume_answered(state, &self.inner.settings, server, volume, answer);
        });
    }

    fn answering(&self, members: &[Member]) {
        self.change(|state| {
            for member in members {
                balancer::answers(state, member);
            }
        });
    }
}

impl Cloud {
    /// Runs one transaction without a request.
    fn change(&self, change: impl FnOnce(&mut State)) {
        let mut core = self.inner.core.lock();
        core.state.begin(self.inner.clock.now());
        change(&mut core.state);
        let changed = core.commit().unwrap_or_else(|error| {
            tracing::error!(%error, "what a machine did was not stored");
            false
        });
        drop(core);
        self.inner.note(changed);
    }
}

/// Returns the number of boots of a server, as in its [`Instance`](crate::data_plane::Instance).
fn boots(state: &State, server: &str) -> Option<u64> {
    let doc = state.get(Kind::Server, server)?;
    Some(doc.number("_boot").unsigned_abs())
}

fn machine(state: &State, server: &Doc) -> Machine {
    let id = server.text("id");
    Machine {
        image: image(state, server),
        flavor: server.text("_flavor_name").to_owned(),
        ports: network::of_device(state, id)
            .iter()
            .map(|doc| port(state, doc))
            .collect(),
        volumes: volumes(state, server),
        config_drive: server.flag("_config_drive"),
        key: key(state, server),
    }
}

fn image(state: &State, server: &Doc) -> Image {
    let id = server.text("_image");
    let properties = state.get(Kind::Image, id).map(|doc| {
        let custom = doc.iter().filter(|(name, _)| is_property(name));
        custom
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect::<Map<String, Value>>()
    });
    Image {
        id: id.to_owned(),
        name: server.text("_image_name").to_owned(),
        properties: properties.unwrap_or_default(),
    }
}

fn is_property(field: &str) -> bool {
    !field.starts_with('_') && Image::is_property(field)
}

/// Returns the attached volumes of a server, and the ones on their way.
fn volumes(state: &State, server: &Doc) -> Vec<Volume> {
    let entries = server.list("_volumes").iter();
    entries
        .filter_map(Value::as_object)
        .filter(|entry| entry.flag("offered") || !entry.contains_key("attachment"))
        .map(|entry| volume(state, entry))
        .collect()
}

fn volume(state: &State, attached: &Doc) -> Volume {
    let id = attached.text("id");
    // The size before a growth, until Nova has heard of it.
    let size_of = |doc: &Doc| match doc.contains_key("_shown") {
        true => doc.number("_shown"),
        false => doc.number("size"),
    };
    let size = state.get(Kind::Volume, id).map(|doc| size_of(&doc));
    Volume {
        id: id.to_owned(),
        device: attached.text("device").to_owned(),
        size_gib: size.unwrap_or_default().unsigned_abs(),
    }
}

fn key(state: &State, server: &Doc) -> Option<Key> {
    let name = server.text("_key_name");
    let key = format!("{}/{name}", server.text("user_id"));
    let doc = state.get(Kind::Keypair, &key)?;
    Some(Key {
        name: name.to_owned(),
        public: doc.text("public_key").trim().to_owned(),
    })
}

fn port(state: &State, doc: &Doc) -> Port {
    let network = state.get(Kind::Network, doc.text("network_id"));
    let network = network.as_deref();
    let mtu = network.map_or(0, |network| network.number("mtu"));
    Port {
        id: doc.text("id").to_owned(),
        mac_address: doc.text("mac_address").to_owned(),
        network_id: doc.text("network_id").to_owned(),
        network_name: network.map_or_else(String::new, |it| it.text("name").to_owned()),
        mtu: u32::try_from(mtu)
            .ok()
            .filter(|mtu| *mtu > 0)
            .unwrap_or(1500),
        addresses: doc
            .list("fixed_ips")
            .iter()
            .filter_map(Value::as_object)
            .filter_map(|fixed| address(state, fixed))
            .collect(),
        open: open(state, doc),
    }
}

fn address(state: &State, fixed: &Doc) -> Option<Address> {
    let subnet: Arc<Doc> = state.get(Kind::Subnet, fixed.text("subnet_id"))?;
    Some(Address {
        address: fixed.text("ip_address").parse().ok()?,
        subnet_id: subnet.text("id").to_owned(),
        cidr: subnet.text("cidr").parse().ok()?,
        gateway: subnet.text("gateway_ip").parse::<IpAddr>().ok(),
        dns_nameservers: subnet.texts("dns_nameservers").map(str::to_owned).collect(),
        routes: subnet
            .list("host_routes")
            .iter()
            .filter_map(Value::as_object)
            .map(|route| Route {
                destination: route.text("destination").to_owned(),
                nexthop: route.text("nexthop").to_owned(),
            })
            .collect(),
        dhcp: subnet.flag("enable_dhcp"),
    })
}

/// Returns the TCP ports that may be reached from everywhere.
fn open(state: &State, port: &Doc) -> Vec<RangeInclusive<u16>> {
    let rules = port
        .texts("security_groups")
        .flat_map(|group| state.by(Kind::SecurityGroupRule, "security_group_id", group));
    rules
        .filter(|rule| {
            rule.text("direction") == "ingress"
                && matches!(rule.text("protocol"), "tcp" | "6")
                && !rule.given("remote_group_id")
                && !rule.given("remote_address_group_id")
                && is_everywhere(rule.text("remote_ip_prefix"))
        })
        .filter_map(|rule| {
            let number = |name: &str| u16::try_from(rule.number(name)).ok().filter(|it| *it > 0);
            Some(number("port_range_min")?..=number("port_range_max")?)
        })
        .collect()
}
