//! Selection of the objects that move, with reasons and order.
//!
//! Owner references form the graph. In addition to clusterctl, the selection follows references without which no
//! cluster works: the credentials of an identityRef, Secrets of the kubeadm configuration, the resources of a
//! ClusterResourceSet, and the pool of floating IPs with all users of pool addresses, since users left behind would
//! lose their addresses.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use api::names::{CLUSTER_NAME_LABEL, MOVE_HIERARCHY_LABEL, MOVE_LABEL, SECRET_TYPE};
use kube::ResourceExt;
use kube::api::{DynamicObject, TypeMeta};
use serde_json::Value;

use crate::kinds::Kind;

/// Name of the ConfigMap with the record of a move, which itself never moves.
pub(crate) const JOURNAL: &str = "ferrostack-move";

/// Suffixes of the names of Secrets that belong to a cluster without an owner, such as certificates of a user.
const SECRETS: [&str; 6] = [
    "ca",
    "etcd",
    "sa",
    "proxy",
    "kubeconfig",
    "apiserver-etcd-client",
];

/// Kind of pools of floating IPs.
const POOL: &str = "OpenStackFloatingIPPool";

/// Object and its [`Kind`].
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) kind: Arc<Kind>,
    pub(crate) object: DynamicObject,
}

impl Object {
    pub(crate) fn new(kind: &Kind, object: DynamicObject) -> Self {
        Self {
            kind: Arc::new(kind.clone()),
            object,
        }
    }

    /// Object with the kind and version in which it was read.
    pub(crate) fn read_in(kind: &Kind, version: &str, mut object: DynamicObject) -> Self {
        let resource = kind.resource(version);
        object.types = Some(TypeMeta {
            api_version: resource.api_version,
            kind: resource.kind,
        });
        Self::new(kind, object)
    }

    pub(crate) fn uid(&self) -> &str {
        self.object.metadata.uid.as_deref().unwrap_or_default()
    }

    pub(crate) fn name(&self) -> &str {
        self.object.metadata.name.as_deref().unwrap_or_default()
    }

    /// Namespace and name.
    pub(crate) fn key(&self) -> (&str, &str) {
        let namespace = self.object.metadata.namespace.as_deref();
        (namespace.unwrap_or_default(), self.name())
    }

    /// `Kind/name`.
    pub(crate) fn label(&self) -> String {
        format!("{}/{}", self.kind.name, self.name())
    }

    pub(crate) fn field(&self, pointer: &str) -> &Value {
        self.object.data.pointer(pointer).unwrap_or(&Value::Null)
    }

    pub(crate) fn text(&self, pointer: &str) -> &str {
        self.field(pointer).as_str().unwrap_or_default()
    }

    /// True if an owner reference has the uid.
    fn is_owned_by(&self, uid: &str) -> bool {
        self.object
            .owner_references()
            .iter()
            .any(|owner| owner.uid == uid)
    }

    /// Status of a condition, in the location of either version.
    pub(crate) fn condition(&self, type_: &str) -> Option<&str> {
        self.of_condition(type_)?["status"].as_str()
    }

    /// Reason of a condition.
    pub(crate) fn reason(&self, type_: &str) -> Option<&str> {
        self.of_condition(type_)?["reason"].as_str()
    }

    fn of_condition(&self, type_: &str) -> Option<&Value> {
        let lists = ["/status/conditions", "/status/v1beta2/conditions"];
        let lists = lists.iter().filter_map(|list| self.field(list).as_array());
        let mut conditions = lists.flatten();
        conditions.find(|one| one["type"] == type_)
    }
}

/// Object that moves.
#[derive(Clone, Debug)]
pub(crate) struct Moving {
    pub(crate) object: Object,
    /// Reason for the move, for users.
    pub(crate) why: String,
    /// One more than the highest level of the moving owners; 0 without an owner.
    pub(crate) level: usize,
}

/// Object of the namespace that stays.
#[derive(Clone, Debug)]
pub(crate) struct Staying {
    pub(crate) object: Object,
    /// Reason for staying, for users.
    pub(crate) why: String,
}

/// Fate of the objects of a namespace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selection {
    /// Objects of the move, in the order of creation.
    pub(crate) moves: Vec<Moving>,
    pub(crate) stays: Vec<Staying>,
}

impl Selection {
    pub(crate) fn of_kind<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Object> {
        let objects = self.moves.iter().map(|moving| &moving.object);
        objects.filter(move |object| object.kind.is(name))
    }
}

/// Divides the objects of a namespace into [`Moving`] and [`Staying`].
pub(crate) fn select(objects: Vec<Object>) -> Selection {
    let reasons = reached(&objects);
    let levels = levels(&objects, &reasons);
    let names: HashMap<String, String> = objects
        .iter()
        .map(|object| (object.uid().to_owned(), object.label()))
        .collect();
    let mut selection = Selection::default();
    for (index, object) in objects.into_iter().enumerate() {
        match reasons.get(&index) {
            Some(why) => selection.moves.push(Moving {
                why: why.clone(),
                level: levels.get(&index).copied().unwrap_or_default(),
                object,
            }),
            None if is_of_every_namespace(&object) => {}
            None => {
                let why = staying(&object, &names);
                selection.stays.push(Staying { object, why });
            }
        }
    }
    let order = |moving: &Moving| {
        let object = &moving.object;
        let last = !object.kind.is("Cluster");
        (
            moving.level,
            last,
            object.kind.name.clone(),
            object.name().to_owned(),
        )
    };
    selection.moves.sort_by_key(order);
    selection
        .stays
        .sort_by_key(|staying| staying.object.label());
    selection
}

/// True for objects that Kubernetes keeps in every namespace, and for the record of a move.
fn is_of_every_namespace(object: &Object) -> bool {
    let name = object.name();
    (object.kind.is("ConfigMap") && [JOURNAL, "kube-root-ca.crt"].contains(&name))
        || object.text("/type") == "kubernetes.io/service-account-token"
}

fn staying(object: &Object, names: &HashMap<String, String>) -> String {
    let owners = object.object.owner_references();
    let known = owners.iter().find(|owner| names.contains_key(&owner.uid));
    match (owners.first(), known) {
        (_, Some(owner)) => format!("its owner {}/{} does not move", owner.kind, owner.name),
        (Some(owner), None) => {
            format!(
                "its owner {}/{} does not exist in this namespace",
                owner.kind, owner.name
            )
        }
        (None, _) => format!("no cluster refers to it, and it has no label {MOVE_LABEL}"),
    }
}

/// Objects of the move, by index, each with the reason.
fn reached(objects: &[Object]) -> BTreeMap<usize, String> {
    let has_cluster = objects.iter().any(|object| object.kind.is("Cluster"));
    let mut reasons = BTreeMap::new();
    let mut queue = VecDeque::new();
    for (index, object) in objects.iter().enumerate() {
        let labels = object.object.labels();
        let why = match object.kind.name.as_str() {
            _ if is_of_every_namespace(object) => continue,
            "Cluster" | "ClusterClass" | "ClusterResourceSet" if !object.kind.group.is_empty() => {
                "it is moved with all that belongs to it".to_owned()
            }
            "MachineDrainRule" if has_cluster => "it may select machines that move".to_owned(),
            _ if labels.contains_key(MOVE_HIERARCHY_LABEL) => {
                format!("it has the label {MOVE_HIERARCHY_LABEL}")
            }
            _ if labels.contains_key(MOVE_LABEL) => format!("it has the label {MOVE_LABEL}"),
            _ if object.kind.hierarchy => format!("its kind has the label {MOVE_HIERARCHY_LABEL}"),
            _ if object.kind.moves => format!("its kind has the label {MOVE_LABEL}"),
            _ => continue,
        };
        reasons.insert(index, why);
        queue.push_back(index);
    }
    while let Some(index) = queue.pop_front() {
        let owner = &objects[index];
        for (other, object) in objects.iter().enumerate() {
            if reasons.contains_key(&other) || is_of_every_namespace(object) {
                continue;
            }
            let why = if !owner.uid().is_empty() && object.is_owned_by(owner.uid()) {
                format!("{} owns it", owner.label())
            } else if refers(owner, object) {
                format!("{} refers to it", owner.label())
            } else if refers_to_pool(object, owner) {
                format!("it has an address of {}", owner.label())
            } else if is_named_after(owner, object) {
                format!("it belongs to {} by its name", owner.label())
            } else {
                continue;
            };
            reasons.insert(other, why);
            queue.push_back(other);
        }
    }
    reasons
}

/// True if `from` cannot work without `to`: a Secret, a ConfigMap or a pool.
fn refers(from: &Object, to: &Object) -> bool {
    if refers_to_pool(from, to) {
        return true;
    }
    if !to.kind.group.is_empty() {
        return false;
    }
    if from.kind.is("ClusterResourceSet") {
        let resources = from.field("/spec/resources").as_array();
        return resources.into_iter().flatten().any(|resource| {
            resource["kind"] == to.kind.name.as_str() && resource["name"] == to.name()
        });
    }
    let mut secrets = BTreeSet::new();
    secrets_in(from.field("/spec"), &mut secrets);
    to.kind.is("Secret") && secrets.contains(to.name())
}

/// True if an object refers to the pool of floating IPs, as claims and users of addresses do.
fn refers_to_pool(from: &Object, to: &Object) -> bool {
    to.kind.is(POOL) && names_pool(from.field("/spec"), to.name())
}

fn names_pool(value: &Value, pool: &str) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(field, value)| match field.as_str() {
            "floatingIPPoolRef" | "poolRef" => value["kind"] == POOL && value["name"] == pool,
            _ => names_pool(value, pool),
        }),
        Value::Array(items) => items.iter().any(|item| names_pool(item, pool)),
        _ => false,
    }
}

/// Names of Secrets in a spec: of identityRef, and of files and passwords of the kubeadm configuration.
fn secrets_in<'a>(value: &'a Value, into: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(fields) => {
            for (field, value) in fields {
                let name = match field.as_str() {
                    "identityRef" => {
                        let kind = value["type"].as_str().or(value["kind"].as_str());
                        matches!(kind, None | Some("Secret")).then_some(&value["name"])
                    }
                    "contentFrom" | "passwdFrom" => Some(&value["secret"]["name"]),
                    _ => None,
                };
                into.extend(name.and_then(Value::as_str));
                secrets_in(value, into);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| secrets_in(item, into)),
        _ => {}
    }
}

/// True if a Secret without owners belongs to a Cluster by name, or by type and label.
fn is_named_after(cluster: &Object, object: &Object) -> bool {
    if !cluster.kind.is("Cluster") || !object.kind.is("Secret") {
        return false;
    }
    if !object.object.owner_references().is_empty() {
        return false;
    }
    let end = object.name().strip_prefix(cluster.name());
    let end = end.and_then(|end| end.strip_prefix('-'));
    let labelled = object.object.labels().get(CLUSTER_NAME_LABEL);
    end.is_some_and(|end| SECRETS.contains(&end))
        || (object.text("/type") == SECRET_TYPE
            && labelled.is_some_and(|name| name == cluster.name()))
}

/// Objects in layers: owners are in earlier layers than dependents.
pub(crate) fn layers(objects: Vec<Object>) -> Vec<Vec<Object>> {
    let all = (0..objects.len())
        .map(|index| (index, String::new()))
        .collect();
    let levels = levels(&objects, &all);
    let mut layers: BTreeMap<usize, Vec<Object>> = BTreeMap::new();
    for (index, object) in objects.into_iter().enumerate() {
        let level = levels.get(&index).copied().unwrap_or_default();
        layers.entry(level).or_default().push(object);
    }
    layers.into_values().collect()
}

/// Level of each [`Moving`] object.
fn levels(objects: &[Object], reasons: &BTreeMap<usize, String>) -> HashMap<usize, usize> {
    let by_uid: HashMap<&str, usize> = reasons
        .keys()
        .map(|index| (objects[*index].uid(), *index))
        .collect();
    let mut levels: HashMap<usize, usize> = reasons.keys().map(|index| (*index, 0)).collect();
    // Cycles of owners would never end: no level is higher than the number of objects.
    for _ in 0..reasons.len() {
        let mut changed = false;
        for index in reasons.keys() {
            let owners = objects[*index].object.owner_references().iter();
            let owners = owners.filter_map(|owner| by_uid.get(owner.uid.as_str()));
            let level = owners
                .filter(|owner| *owner != index)
                .map(|owner| levels[owner] + 1)
                .max()
                .unwrap_or_default();
            let level = level.min(reasons.len());
            changed |= levels.insert(*index, level) != Some(level);
        }
        if !changed {
            break;
        }
    }
    levels
}

#[cfg(test)]
pub(crate) mod tests;
