//! Content of the cloud with its indexes, changed by one transaction at a time.
//!
//! A request (or a due transition) runs between [`State::begin`] and [`State::commit`] or [`State::roll_back`]. Every
//! [`Change`] records the previous document, so a request that fails halfway has no effect, and the store gets exactly
//! the changes.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::addresses::AddressBook;
use super::document::{Doc, Fields};
use super::kind::Kind;
use super::newest::Newest;
use super::rendered::Rendered;

/// Change of a transaction for the store: the new document, or `None` for a deletion.
pub(crate) struct Change {
    pub(crate) kind: Kind,
    pub(crate) key: Arc<str>,
    pub(crate) doc: Option<Arc<Doc>>,
}

/// All resources of the cloud.
#[derive(Clone)]
pub(crate) struct State {
    tables: Vec<Table>,
    touched: BTreeMap<(Kind, Arc<str>), Option<Arc<Doc>>>,
    /// Allocated addresses of each subnet.
    pub(crate) addresses: AddressBook,
    /// Servers, newest first.
    pub(crate) newest: Newest,
    /// Cache of serialised servers.
    pub(crate) rendered: Rendered,
    usage: HashMap<String, Usage>,
    seed: u64,
    counter: u64,
    now: Timestamp,
    /// Former states, each with the time until which it was the present one, for lists that lag behind.
    past: VecDeque<(Timestamp, Arc<State>)>,
}

/// Sums for checks of quotas, updated incrementally.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) cores: i64,
    pub(crate) ram: i64,
    pub(crate) gigabytes: i64,
}

#[derive(Clone, Default)]
struct Table {
    docs: BTreeMap<Arc<str>, Arc<Doc>>,
    index: HashMap<(&'static str, String), BTreeSet<Arc<str>>>,
}

impl State {
    /// Creates an empty cloud with ids derived from `seed`.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            tables: Kind::ALL.iter().map(|_| Table::default()).collect(),
            touched: BTreeMap::new(),
            addresses: AddressBook::default(),
            newest: Newest::default(),
            rendered: Rendered::default(),
            usage: HashMap::new(),
            seed,
            counter: 0,
            now: Timestamp::UNIX_EPOCH,
            past: VecDeque::new(),
        }
    }

    /// Remembers the present state as that of the time until `now`, and forgets those that ended before `since`.
    pub(crate) fn remember(&mut self, now: Timestamp, since: Timestamp) {
        while self.past.front().is_some_and(|(until, _)| *until <= since) {
            self.past.pop_front();
        }
        let past = std::mem::take(&mut self.past);
        let present = Arc::new(self.clone());
        self.past = past;
        self.past.push_back((now, present));
    }

    /// Returns the state at a former time; `None` if it is still the present one.
    pub(crate) fn at(&self, time: Timestamp) -> Option<Self> {
        let found = self.past.iter().find(|(until, _)| *until > time);
        found.map(|(_, state)| Self::clone(state))
    }

    /// Starts a transaction at `now`.
    pub(crate) fn begin(&mut self, now: Timestamp) {
        self.now = now;
        self.touched.clear();
    }

    /// Returns the time of the running transaction.
    pub(crate) fn now(&self) -> Timestamp {
        self.now
    }

    /// Returns the changes of the running transaction so far.
    pub(crate) fn changes(&self) -> Vec<Change> {
        self.touched
            .keys()
            .map(|(kind, key)| Change {
                kind: *kind,
                key: key.clone(),
                doc: self.tables[*kind as usize].docs.get(key).cloned(),
            })
            .collect()
    }

    /// Ends the transaction and keeps the changes.
    pub(crate) fn commit(&mut self) {
        self.touched.clear();
    }

    /// Ends the transaction and reverts the changes. Ids are not reused.
    pub(crate) fn roll_back(&mut self) {
        for ((kind, key), doc) in std::mem::take(&mut self.touched) {
            self.swap(kind, &key, doc);
        }
    }

    /// Returns the number of generated ids.
    pub(crate) fn counter(&self) -> u64 {
        self.counter
    }

    /// Continues the sequence of ids after a restart.
    pub(crate) fn set_counter(&mut self, counter: u64) {
        self.counter = counter;
    }

    /// Returns the [`Doc`] of a resource by key.
    pub(crate) fn get(&self, kind: Kind, key: &str) -> Option<Arc<Doc>> {
        self.tables[kind as usize].docs.get(key).cloned()
    }

    /// Adds or replaces a resource. The key is the `id`, or `_key` where ids are not unique.
    pub(crate) fn put(&mut self, kind: Kind, doc: Doc) {
        let key = match doc.text("_key") {
            "" => doc.text("id"),
            key => key,
        };
        let key: Arc<str> = key.into();
        let old = self.swap(kind, &key, Some(Arc::new(doc)));
        self.touched.entry((kind, key)).or_insert(old);
    }

    /// Changes a resource in place; returns false for an unknown one.
    pub(crate) fn edit(&mut self, kind: Kind, key: &str, change: impl FnOnce(&mut Doc)) -> bool {
        let Some(old) = self.get(kind, key) else {
            return false;
        };
        let mut doc = (*old).clone();
        change(&mut doc);
        self.put(kind, doc);
        true
    }

    /// Removes a resource, and returns its [`Doc`].
    pub(crate) fn remove(&mut self, kind: Kind, key: &str) -> Option<Arc<Doc>> {
        let key: Arc<str> = key.into();
        let old = self.swap(kind, &key, None)?;
        self.touched
            .entry((kind, key))
            .or_insert_with(|| Some(old.clone()));
        Some(old)
    }

    /// Returns all resources of a [`Kind`], in the order of their keys.
    pub(crate) fn all(&self, kind: Kind) -> impl Iterator<Item = &Arc<Doc>> {
        self.tables[kind as usize].docs.values()
    }

    /// Returns the first resource of a [`Kind`] in the order of keys.
    pub(crate) fn first(&self, kind: Kind) -> Option<(Arc<str>, Arc<Doc>)> {
        self.tables[kind as usize]
            .docs
            .first_key_value()
            .map(|(k, d)| (k.clone(), d.clone()))
    }

    /// Returns the number of resources of a [`Kind`].
    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.tables[kind as usize].docs.len()
    }

    /// Returns the resources of a [`Kind`] whose `field` (one of [`Kind::indexed`]) has this value.
    pub(crate) fn by(&self, kind: Kind, field: &'static str, value: &str) -> Vec<Arc<Doc>> {
        let table = &self.tables[kind as usize];
        let Some(keys) = table.index.get(&(field, value.to_owned())) else {
            return Vec::new();
        };
        // A scan of the table is faster than looking up most of it by key; both yield the same order.
        if keys.len() * 4 > table.docs.len() {
            let mut wanted = keys.iter().peekable();
            let found = table
                .docs
                .iter()
                .filter(|(key, _)| wanted.next_if_eq(key).is_some());
            return found.map(|(_, doc)| doc.clone()).collect();
        }
        keys.iter()
            .filter_map(|key| table.docs.get(key).cloned())
            .collect()
    }

    /// As [`State::by`], but only how many.
    pub(crate) fn count_by(&self, kind: Kind, field: &'static str, value: &str) -> usize {
        let table = &self.tables[kind as usize];
        table
            .index
            .get(&(field, value.to_owned()))
            .map_or(0, BTreeSet::len)
    }

    /// Returns the sums of a project.
    pub(crate) fn usage(&self, project: &str) -> Usage {
        self.usage.get(project).copied().unwrap_or_default()
    }

    /// Returns a new UUID, derived from the seed and the number of earlier ids.
    pub(crate) fn new_id(&mut self) -> String {
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&self.draw()[..16]);
        uuid::Builder::from_random_bytes(bytes)
            .into_uuid()
            .to_string()
    }

    /// Returns a new id in Keystone's form: 32 hexadecimal digits without dashes.
    pub(crate) fn new_hex_id(&mut self) -> String {
        self.new_id().replace('-', "")
    }

    /// Returns a new hardware address with Neutron's default prefix.
    pub(crate) fn new_mac(&mut self) -> String {
        let draw = self.draw();
        format!("fa:16:3e:{:02x}:{:02x}:{:02x}", draw[0], draw[1], draw[2])
    }

    /// Schedules `action` on the resource after `delay`. A restart keeps the schedule.
    pub(crate) fn schedule(&mut self, delay: Duration, action: &str, kind: Kind, key: &str) {
        self.counter += 1;
        let at =
            self.now.as_millisecond() + i64::try_from(delay.as_millis()).unwrap_or(i64::MAX / 2);
        let mut doc = Doc::new();
        doc.set("id", format!("{at:016}-{:012}", self.counter));
        doc.set("at", at);
        doc.set("action", action);
        doc.set("kind", kind.name());
        doc.set("key", key);
        self.put(Kind::Pending, doc);
    }

    /// Loads a resource from the store, outside of any transaction.
    pub(crate) fn load(&mut self, kind: Kind, key: &str, doc: Doc) {
        self.swap(kind, &key.into(), Some(Arc::new(doc)));
    }

    fn draw(&mut self) -> [u8; 32] {
        self.counter += 1;
        let mut hash = Sha256::new();
        hash.update(self.seed.to_be_bytes());
        hash.update(self.counter.to_be_bytes());
        hash.finalize().into()
    }

    fn swap(&mut self, kind: Kind, key: &Arc<str>, new: Option<Arc<Doc>>) -> Option<Arc<Doc>> {
        let table = &mut self.tables[kind as usize];
        let old = match &new {
            Some(doc) => table.docs.insert(key.clone(), doc.clone()),
            None => table.docs.remove(key),
        };
        let before = old
            .as_deref()
            .map(|doc| index_keys(kind, doc))
            .unwrap_or_default();
        let after = new
            .as_deref()
            .map(|doc| index_keys(kind, doc))
            .unwrap_or_default();
        if before != after {
            for entry in before {
                if let Some(keys) = table.index.get_mut(&entry) {
                    keys.remove(key);
                    if keys.is_empty() {
                        table.index.remove(&entry);
                    }
                }
            }
            for entry in after {
                table.index.entry(entry).or_default().insert(key.clone());
            }
        }
        self.outdate(kind, key, old.as_deref(), new.as_deref());
        if kind == Kind::Server {
            self.newest.replace(old.as_deref(), new.as_ref());
        }
        self.aggregate(kind, old.as_deref(), new.as_deref());
        old
    }

    /// Removes the cached texts of servers that contain the changed resource: the server itself, its ports, their
    /// floating IPs, and the names of networks and security groups.
    fn outdate(&mut self, kind: Kind, key: &str, old: Option<&Doc>, new: Option<&Doc>) {
        let both = || old.into_iter().chain(new);
        match kind {
            Kind::Server => self.rendered.forget(key),
            Kind::Port => {
                for port in both() {
                    self.rendered.forget(port.text("device_id"));
                }
            }
            Kind::FloatingIp => {
                for floating in both() {
                    if let Some(port) = self.get(Kind::Port, floating.text("port_id")) {
                        self.rendered.forget(port.text("device_id"));
                    }
                }
            }
            Kind::Network | Kind::SecurityGroup => {
                let field = match kind {
                    Kind::Network => "network_id",
                    _ => "security_group_id",
                };
                let name = |doc: Option<&Doc>| doc.map(|doc| doc.text("name").to_owned());
                if name(old) != name(new) && self.count_by(Kind::Port, field, key) > 0 {
                    self.rendered.clear();
                }
            }
            _ => {}
        }
    }

    fn aggregate(&mut self, kind: Kind, old: Option<&Doc>, new: Option<&Doc>) {
        match kind {
            Kind::Port => self.addresses.replace(old, new),
            Kind::Server | Kind::Volume | Kind::Snapshot => {
                for (doc, sign) in old.map(|d| (d, -1)).into_iter().chain(new.map(|d| (d, 1))) {
                    let usage = self
                        .usage
                        .entry(doc.text("project_id").to_owned())
                        .or_default();
                    usage.cores += sign * doc.number("_vcpus");
                    usage.ram += sign * doc.number("_ram");
                    // A growing volume has the new size already.
                    usage.gigabytes += sign * (doc.number("size") + doc.number("_grows"));
                }
            }
            _ => {}
        }
    }
}

fn index_keys(kind: Kind, doc: &Doc) -> Vec<(&'static str, String)> {
    let mut keys: Vec<(&'static str, String)> = kind
        .indexed()
        .iter()
        .filter_map(|field| match doc.get(*field) {
            Some(Value::String(text)) if !text.is_empty() => Some((*field, text.clone())),
            _ => None,
        })
        .collect();
    if kind == Kind::Port {
        for fixed in doc.list("fixed_ips").iter().filter_map(Value::as_object) {
            keys.push(("subnet_id", fixed.text("subnet_id").to_owned()));
            keys.push(("ip_address", fixed.text("ip_address").to_owned()));
        }
        keys.extend(
            doc.texts("security_groups")
                .map(|id| ("security_group_id", id.to_owned())),
        );
    }
    if kind == Kind::Router {
        let gateway = doc.get("external_gateway_info").and_then(Value::as_object);
        if let Some(network) = gateway.map(|info| info.text("network_id")) {
            keys.push(("gateway_network_id", network.to_owned()));
        }
    }
    keys
}
