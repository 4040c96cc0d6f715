//! Allocation of cluster IPs and node ports. Each value belongs to one Service at a time.
//!
//! A request reserves its chosen values while it holds the lock of the [`Allocator`], and keeps the reservation until
//! the Service is stored or the request ends. Concurrent requests cannot choose the same value.
//!
//! Source of the ranges and messages: `pkg/registry/core/service` of kube-apiserver. As there, the lower part of each
//! range is reserved for static allocation as long as the upper part has free values.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use apimachinery::schema::FieldError;
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};

use crate::error::ApiError;
use crate::store::Store;

mod dependent;
mod rules;

pub(crate) use dependent::{carry_addresses, drop_dependent, restore_sent};
use dependent::{has_health_check, health_check_port};
pub(crate) use rules::problems;

/// 10.96.0.0/12 without the first and last address.
const ADDRESSES: RangeInclusive<u32> = 0x0a60_0001..=0x0a6f_fffe;
/// Number of addresses at the start of the range that are allocated last.
const STATIC_ADDRESSES: u32 = 256;
const PORTS: RangeInclusive<u32> = 30_000..=32_767;
/// Number of ports at the start of the range that are allocated last.
const STATIC_PORTS: u32 = 86;

/// Value with one Service as owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Claim {
    Address(IpAddr),
    Port(u32),
}

/// Values reserved by running requests, and the ids of the requests.
#[derive(Debug, Default)]
pub(crate) struct Allocator {
    reserved: Mutex<HashMap<Claim, u64>>,
    requests: AtomicU64,
}

impl Allocator {
    /// [`Reservations`] of a request.
    pub(crate) fn reservations(self: &Arc<Self>) -> Reservations {
        Reservations {
            request: self.requests.fetch_add(1, Ordering::Relaxed),
            allocator: Arc::clone(self),
        }
    }
}

/// Reservations of one request, until the Service is stored or the request fails.
#[derive(Debug)]
pub(crate) struct Reservations {
    allocator: Arc<Allocator>,
    request: u64,
}

impl Drop for Reservations {
    fn drop(&mut self) {
        let mut reserved = self.allocator.reserved.lock();
        reserved.retain(|_, request| *request != self.request);
    }
}

impl Reservations {
    /// Free values at this moment. Other requests wait while the [`Choice`] lives.
    fn choice(&self, store: &Store) -> Choice<'_> {
        let reserved = self.allocator.reserved.lock();
        Choice {
            reserved,
            stored: stored(store),
            request: self.request,
        }
    }
}

struct Choice<'a> {
    reserved: MutexGuard<'a, HashMap<Claim, u64>>,
    stored: HashSet<Claim>,
    request: u64,
}

/// Range of values.
struct Range {
    numbers: RangeInclusive<u32>,
    /// Number of values at the start that are allocated last.
    last: u32,
    claim: fn(u32) -> Claim,
}

impl Range {
    fn addresses() -> Self {
        Self {
            numbers: ADDRESSES,
            last: STATIC_ADDRESSES,
            claim: |number| Claim::Address(IpAddr::V4(Ipv4Addr::from(number))),
        }
    }

    fn ports() -> Self {
        Self {
            numbers: PORTS,
            last: STATIC_PORTS,
            claim: Claim::Port,
        }
    }

    /// Values in the order of allocation.
    fn claims(&self) -> impl Iterator<Item = Claim> {
        let split = self.numbers.start() + self.last;
        let numbers = (split..=*self.numbers.end()).chain(*self.numbers.start()..split);
        numbers.map(self.claim)
    }

    fn contains(&self, claim: Claim) -> bool {
        let number = match claim {
            Claim::Address(IpAddr::V4(address)) => u32::from(address),
            Claim::Address(IpAddr::V6(_)) => return false,
            Claim::Port(port) => port,
        };
        self.numbers.contains(&number) && (self.claim)(number) == claim
    }
}

impl Choice<'_> {
    /// Reserves a requested value unless another Service has it. `current`: values that the Service has already; no
    /// reservation is needed, because several requests may change one Service at the same time.
    fn claim(&mut self, claim: Claim, current: &HashSet<Claim>) -> bool {
        if current.contains(&claim) {
            return true;
        }
        let reserved = self.reserved.get(&claim);
        let by_other = reserved.is_some_and(|request| *request != self.request);
        let free = !by_other && !self.stored.contains(&claim);
        if free {
            self.reserved.insert(claim, self.request);
        }
        free
    }

    /// Reserves a free value outside of `used`; `None` if the [`Range`] is exhausted. Earlier reservations of this
    /// request come first, since an object may be completed several times before it is stored.
    fn any(&mut self, range: &Range, used: &HashSet<Claim>) -> Option<Claim> {
        let usable = |claim: &Claim| !self.stored.contains(claim) && !used.contains(claim);
        let mut mine: Vec<Claim> = self
            .reserved
            .iter()
            .filter(|(claim, request)| **request == self.request && range.contains(**claim))
            .map(|(claim, _)| *claim)
            .collect();
        mine.sort_unstable();
        let again = mine.into_iter().find(usable);
        let free = |claim: &Claim| !self.reserved.contains_key(claim) && usable(claim);
        let chosen = again.or_else(|| range.claims().find(free))?;
        self.reserved.insert(chosen, self.request);
        Some(chosen)
    }
}

/// Values of all stored Services.
fn stored(store: &Store) -> HashSet<Claim> {
    let state = store.read();
    let all = state.range("/services", "", None);
    all.flat_map(|service| claims(&service.value())).collect()
}

/// Values of a Service.
fn claims(service: &Value) -> Vec<Claim> {
    let spec = &service["spec"];
    let listed = spec["clusterIPs"].as_array().into_iter().flatten();
    let addresses = listed.chain([&spec["clusterIP"]]);
    let addresses = addresses.filter_map(|address| address.as_str()?.parse().ok());
    let ports = spec["ports"].as_array().into_iter().flatten();
    let ports = ports.map(|port| &port["nodePort"]);
    let ports = ports.chain([&spec["healthCheckNodePort"]]);
    let ports = ports.filter_map(|port| u32::try_from(port.as_u64()?).ok());
    addresses
        .map(Claim::Address)
        .chain(ports.map(Claim::Port))
        .collect()
}

/// Allocates a free cluster IP.
pub(crate) fn choose_address(
    reservations: &Reservations,
    store: &Store,
) -> Result<String, ApiError> {
    let mut choice = reservations.choice(store);
    match choice.any(&Range::addresses(), &HashSet::new()) {
        Some(Claim::Address(address)) => Ok(address.to_string()),
        _ => Err(full("serviceIP")),
    }
}

/// Reserves the cluster IP requested by a new Service.
pub(crate) fn claim_address(
    reservations: &Reservations,
    store: &Store,
    service: &Value,
) -> Result<(), ApiError> {
    let text = service["spec"]["clusterIP"].as_str().unwrap_or_default();
    let Ok(address) = text.parse() else {
        return Ok(());
    };
    let mut choice = reservations.choice(store);
    if choice.claim(Claim::Address(address), &HashSet::new()) {
        return Ok(());
    }
    let why = format!("failed to allocate IP {text}: provided IP is already allocated");
    let error = FieldError::invalid("spec.clusterIPs", &json!([text]), why);
    let name = service["metadata"]["name"].as_str().unwrap_or_default();
    Err(ApiError::invalid("", "Service", name, &[error]))
}

/// Allocates the node ports of a Service: requested ones are validated, missing ones chosen.
pub(crate) fn node_ports(
    reservations: &Reservations,
    store: &Store,
    new: &mut Value,
    live: Option<&Value>,
) -> Result<(), ApiError> {
    let spec = &mut new["spec"];
    if !matches!(spec["type"].as_str(), Some("NodePort" | "LoadBalancer")) {
        return Ok(());
    }
    if spec["externalTrafficPolicy"].is_null() {
        spec["externalTrafficPolicy"] = Value::from("Cluster");
    }
    let balanced = spec["type"] == "LoadBalancer";
    if balanced && spec["allocateLoadBalancerNodePorts"].is_null() {
        spec["allocateLoadBalancerNodePorts"] = Value::from(true);
    }
    let wanted = !balanced || spec["allocateLoadBalancerNodePorts"] != false;
    let mut service = Ports {
        choice: reservations.choice(store),
        name: new["metadata"]["name"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        current: live.map(claims).unwrap_or_default().into_iter().collect(),
        live: live.map(|live| live["spec"]["ports"].clone()),
        used: HashSet::new(),
    };
    let ports = new["spec"].get_mut("ports").and_then(Value::as_array_mut);
    let Some(ports) = ports else { return Ok(()) };
    // Requested ports come first, so that none of them is chosen for another port.
    let mut open = Vec::new();
    let mut shared = HashMap::new();
    for (index, port) in ports.iter_mut().enumerate() {
        match service.requested(index, port)? {
            Some(number) => {
                shared.entry(port["port"].as_i64()).or_insert(number);
                port["nodePort"] = Value::from(number);
            }
            None => open.push(port),
        }
    }
    for port in open.into_iter().filter(|_| wanted) {
        // In a new Service, two protocols of one port share a node port.
        let number = match shared.get(&port["port"].as_i64()) {
            Some(number) if live.is_none() => *number,
            _ => service.any()?,
        };
        shared.insert(port["port"].as_i64(), number);
        port["nodePort"] = Value::from(number);
    }
    service.health_check(&mut new["spec"], live.map(|live| &live["spec"]))
}

/// Service during the allocation of node ports.
struct Ports<'a> {
    choice: Choice<'a>,
    name: String,
    /// Values that the Service has already.
    current: HashSet<Claim>,
    live: Option<Value>,
    /// Values of the ports so far.
    used: HashSet<Claim>,
}

impl Ports<'_> {
    /// Node port requested by a port, or its current one.
    fn requested(&mut self, index: usize, port: &Value) -> Result<Option<u32>, ApiError> {
        let asked = port["nodePort"].as_i64().filter(|number| *number > 0);
        let Some(number) = asked else {
            let kept = self.kept(port);
            self.used.extend(kept.map(Claim::Port));
            return Ok(kept);
        };
        let rejected = |why: &str| {
            let path = format!("spec.ports[{index}].nodePort");
            let error = FieldError::invalid(path, &Value::from(number), why);
            ApiError::invalid("", "Service", &self.name, &[error])
        };
        let valid = u32::try_from(number)
            .ok()
            .filter(|number| PORTS.contains(number));
        let Some(number) = valid else {
            return Err(rejected(
                "provided port is not in the valid range. The range of valid ports is 30000-32767",
            ));
        };
        if !self.choice.claim(Claim::Port(number), &self.current) {
            return Err(rejected("provided port is already allocated"));
        }
        self.used.insert(Claim::Port(number));
        Ok(Some(number))
    }

    /// Current node port of a port without a request.
    fn kept(&self, port: &Value) -> Option<u32> {
        let protocol = port["protocol"].as_str().unwrap_or("TCP");
        let old = self.live.as_ref()?.as_array()?.iter().find(|old| {
            old["port"] == port["port"] && old["protocol"].as_str().unwrap_or("TCP") == protocol
        })?;
        u32::try_from(old["nodePort"].as_u64()?).ok()
    }

    /// Allocates the port of the health check, if the Service has one: the requested one, the current one, or any.
    fn health_check(&mut self, spec: &mut Value, live: Option<&Value>) -> Result<(), ApiError> {
        if !has_health_check(spec) {
            return Ok(());
        }
        let current = live.filter(|live| has_health_check(live));
        let current = current.and_then(health_check_port);
        let asked = health_check_port(spec);
        spec["healthCheckNodePort"] = match (asked, current) {
            // A change of the port is rejected with the other rules.
            (Some(_), Some(_)) => return Ok(()),
            (None, Some(current)) => Value::from(current),
            (Some(asked), None) => self.health_check_asked(asked)?,
            (None, None) => Value::from(self.any()?),
        };
        Ok(())
    }

    fn health_check_asked(&mut self, asked: i64) -> Result<Value, ApiError> {
        let rejected = |why: &str| {
            let why = format!("failed to allocate requested HealthCheck NodePort {asked}: {why}");
            ApiError::internal(why)
        };
        let number = u32::try_from(asked).ok();
        let Some(number) = number.filter(|number| PORTS.contains(number)) else {
            return Err(rejected(
                "provided port is not in the valid range. The range of valid ports is 30000-32767",
            ));
        };
        let claim = Claim::Port(number);
        if self.used.contains(&claim) || !self.choice.claim(claim, &self.current) {
            return Err(rejected("provided port is already allocated"));
        }
        self.used.insert(claim);
        Ok(Value::from(number))
    }

    fn any(&mut self) -> Result<u32, ApiError> {
        match self.choice.any(&Range::ports(), &self.used) {
            Some(Claim::Port(number)) => {
                self.used.insert(Claim::Port(number));
                Ok(number)
            }
            _ => Err(full("nodePort")),
        }
    }
}

/// 500, as from a kube-apiserver with an exhausted range.
fn full(what: &str) -> ApiError {
    ApiError::internal(format!("failed to allocate a {what}: range is full"))
}

#[cfg(test)]
mod tests;
