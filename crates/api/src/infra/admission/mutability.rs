//! Mutable fields, and the rules for their changes.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use crate::change::FieldError;

/// Rule for the changes of a field.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// Any change is permitted.
    Freely,
    /// The function decides; its error is the reason against the change.
    If(fn(&Change<'_>) -> Result<(), String>),
    /// A list to which entries are added at the end, if this function accepts it; entries that exist have rows of their own.
    Grows(fn(&Change<'_>) -> Result<(), String>),
}

/// [`Change`] of one field: old and new value, and both objects.
pub(super) struct Change<'a> {
    old: Option<&'a Value>,
    new: Option<&'a Value>,
    old_object: &'a Value,
}

/// Rows of a mutability table: path of a field below the spec (`[]` stands for any index), and its [`Rule`].
type Table = &'static [(&'static str, Rule)];

/// Mutable fields of OpenStackMachine (identityRef.region is immutable by a CEL rule).
pub(super) const MACHINE: Table = &[
    ("providerID", Rule::Freely),
    ("identityRef", Rule::Freely),
    ("ports[].allowedAddressPairs", Rule::Freely),
];

/// Mutable fields of an OpenStackMachine under an update in place: its server is rebuilt.
pub(super) const MACHINE_IN_PLACE: Table = &[
    ("providerID", Rule::Freely),
    ("identityRef", Rule::Freely),
    ("ports[].allowedAddressPairs", Rule::Freely),
    ("image", Rule::Freely),
];

/// Mutable fields of OpenStackServer (identityRef.region is immutable by a CEL rule).
pub(super) const SERVER: Table = &[("identityRef", Rule::Freely)];

/// Mutable fields of OpenStackMachineTemplate.
pub(super) const MACHINE_TEMPLATE: Table = &[("ports[].allowedAddressPairs", Rule::Freely)];

/// Mutable fields of OpenStackCluster (identityRef.region is immutable by a CEL rule).
const CLUSTER: Table = &[
    ("managedSubnets", Rule::Grows(by_a_family)),
    ("managedSubnets[].dnsNameservers", Rule::Freely),
    ("subnets", Rule::Grows(to_existing_ones)),
    ("subnets[]", Rule::If(same_subnet)),
    ("primarySubnet", Rule::Freely),
    ("failureDomainSubnets", Rule::Freely),
    ("network", Rule::If(same_network)),
    ("apiServer.port", Rule::If(once_without_floating_ip)),
    ("apiServer.fixedIP", Rule::If(once_without_floating_ip)),
    ("apiServer.floatingIP", Rule::If(the_load_balancers_ip)),
    ("apiServer.managedLoadBalancer.allowedCIDRs", Rule::Freely),
    ("apiServer.managedLoadBalancer.monitor", Rule::Freely),
    (
        "apiServer.managedLoadBalancer.availabilityZoneSubnets",
        Rule::If(zones_with_their_subnets),
    ),
    (
        "apiServer.managedLoadBalancer.allowCrossAZLoadBalancerMembers",
        Rule::Freely,
    ),
    ("managedSecurityGroups", Rule::If(not_taken_away)),
    ("controlPlaneEndpoint", Rule::If(while_host_is_unset)),
    ("controlPlaneAvailabilityZones", Rule::Freely),
    ("controlPlaneOmitAvailabilityZone", Rule::Freely),
    ("bastion", Rule::If(disabled_before_removed)),
    ("identityRef", Rule::Freely),
];

/// Validates the changes of an OpenStackCluster.
pub(super) fn cluster(old: &Value, new: &Value, errors: &mut Vec<FieldError>) {
    nothing_but(old, new, "spec", CLUSTER, errors);
}

/// Rejects changes below `spec` to fields outside the [`Table`].
pub(super) fn nothing_but(
    old: &Value,
    new: &Value,
    spec: &str,
    table: Table,
    errors: &mut Vec<FieldError>,
) {
    let pointer = format!("/{}", spec.replace('.', "/"));
    let part = |object: &Value| {
        let mut fields = object.pointer(&pointer).cloned().unwrap_or_default();
        add_defaults(&mut fields, "");
        settled(&fields, "")
    };
    let (mut old_spec, mut new_spec) = (part(old), part(new));
    inherit_trunk(&mut old_spec);
    inherit_trunk(&mut new_spec);
    let mut walk = Walk {
        table,
        spec,
        old_object: old,
        errors,
    };
    walk.compare(Some(&old_spec), Some(&new_spec), "");
}

struct Walk<'a> {
    table: Table,
    spec: &'a str,
    old_object: &'a Value,
    errors: &'a mut Vec<FieldError>,
}

impl Walk<'_> {
    fn compare(&mut self, old: Option<&Value>, new: Option<&Value>, path: &str) {
        if old == new {
            return;
        }
        if let Some((_, rule)) = self.table.iter().find(|(row, _)| matches(row, path)) {
            let change = Change {
                old,
                new,
                old_object: self.old_object,
            };
            match rule {
                Rule::Freely => {}
                Rule::If(allowed) => self.judge(allowed(&change), path),
                Rule::Grows(allowed) => self.grows(*allowed, &change, path),
            }
            return;
        }
        match (old, new) {
            (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() => {
                self.entries(a, b, path);
            }
            (Some(Value::Array(_)), _) | (_, Some(Value::Array(_))) => {
                self.refuse(path, "entries cannot be added or removed after creation");
            }
            (Some(Value::Object(_)), _) | (_, Some(Value::Object(_))) => {
                self.members(
                    old.and_then(Value::as_object),
                    new.and_then(Value::as_object),
                    path,
                );
            }
            _ => self.refuse(path, "cannot be changed after creation"),
        }
    }

    fn entries(&mut self, old: &[Value], new: &[Value], path: &str) {
        for (index, (old, new)) in old.iter().zip(new).enumerate() {
            self.compare(Some(old), Some(new), &format!("{path}[{index}]"));
        }
    }

    /// Compares a list that may become longer.
    fn grows(
        &mut self,
        allowed: fn(&Change<'_>) -> Result<(), String>,
        change: &Change<'_>,
        path: &str,
    ) {
        let list =
            |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
        let (old, new) = (list(change.old), list(change.new));
        match old.len().cmp(&new.len()) {
            Ordering::Less => self.judge(allowed(change), path),
            Ordering::Equal => {}
            Ordering::Greater => self.refuse(path, "entries cannot be removed after creation"),
        }
        if old.len() <= new.len() {
            self.entries(&old, &new, path);
        }
    }

    fn judge(&mut self, verdict: Result<(), String>, path: &str) {
        if let Err(why) = verdict {
            self.refuse(path, &why);
        }
    }

    /// Compares a missing object as an empty one: errors get the paths of the members.
    fn members(
        &mut self,
        old: Option<&Map<String, Value>>,
        new: Option<&Map<String, Value>>,
        path: &str,
    ) {
        let empty = Map::new();
        let (old, new) = (old.unwrap_or(&empty), new.unwrap_or(&empty));
        let added = new.keys().filter(|name| !old.contains_key(*name));
        for name in old.keys().chain(added) {
            self.compare(old.get(name), new.get(name), &below(path, name));
        }
    }

    fn refuse(&mut self, path: &str, why: &str) {
        self.errors
            .push(FieldError::new(format!("{}.{path}", self.spec), why));
    }
}

/// True if `path` matches a table row: `ports[2].tags` matches `ports[].tags`.
fn matches(row: &str, path: &str) -> bool {
    let mut plain = String::with_capacity(path.len());
    let mut inside = false;
    for letter in path.chars() {
        match letter {
            '[' => inside = true,
            ']' => inside = false,
            _ if inside => continue,
            _ => {}
        }
        plain.push(letter);
    }
    row == plain
}

/// Fields with a value equivalent to absence.
const SAME_AS_ABSENT: &[(&str, bool)] = &[
    ("enableExternalNetwork", true),
    ("apiServer.enableFloatingIP", true),
    ("configDrive", false),
    ("trunk", false),
    ("ports[].adminStateUp", true),
    ("ports[].profile.ovsHWOffload", false),
    ("ports[].profile.trustedVF", false),
];

/// Default of a field in the schemas.
#[derive(Clone, Copy)]
enum Given {
    Text(&'static str),
    Flag(bool),
}

/// Defaults in the schemas of the spec: path of an object, its field and the default. A bastion has those of machines, too.
const DEFAULTS: &[(&str, &str, Given)] = &[
    ("identityRef", "type", Given::Text("Secret")),
    ("rootVolume.availabilityZone", "from", Given::Text("Name")),
    (
        "additionalBlockDevices[].storage.volume.availabilityZone",
        "from",
        Given::Text("Name"),
    ),
    (
        "apiServer.managedLoadBalancer",
        "enabled",
        Given::Flag(true),
    ),
    ("bastion", "enabled", Given::Flag(true)),
    (
        "managedSecurityGroups",
        "allowAllInClusterTraffic",
        Given::Flag(false),
    ),
];

/// Adds the defaults of the schemas: a kube-apiserver adds none to an object that it converts on its way out of etcd.
fn add_defaults(value: &mut Value, path: &str) {
    let row = path.strip_prefix("bastion.spec.").unwrap_or(path);
    match value {
        Value::Object(members) => {
            for (_, field, default) in DEFAULTS.iter().filter(|(of, ..)| *of == row) {
                let default = match *default {
                    Given::Text(text) => Value::from(text),
                    Given::Flag(flag) => Value::from(flag),
                };
                members.entry(*field).or_insert(default);
            }
            for (name, value) in members {
                add_defaults(value, &below(path, name));
            }
        }
        Value::Array(items) => {
            let path = format!("{path}[]");
            for item in items {
                add_defaults(item, &path);
            }
        }
        _ => {}
    }
}

/// Value without equivalents of absence: nulls, empty strings, lists and objects, 0, and fields of [`SAME_AS_ABSENT`].
/// The types of the Go provider do not distinguish these either.
fn settled(value: &Value, path: &str) -> Value {
    let nothing = |value: &Value, path: &str| match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(value) => SAME_AS_ABSENT.contains(&(path, *value)),
    };
    match value {
        Value::Object(members) => {
            let mut kept = Map::new();
            for (name, value) in members {
                let path = below(path, name);
                let value = settled(value, &path);
                if !nothing(&value, &path) {
                    kept.insert(name.clone(), value);
                }
            }
            kept.into()
        }
        Value::Array(items) => {
            let path = format!("{path}[]");
            items.iter().map(|item| settled(item, &path)).collect()
        }
        plain => plain.clone(),
    }
}

/// Removes `trunk` of every port with the value of the machine, the default for ports.
fn inherit_trunk(spec: &mut Value) {
    let trunk = spec.get("trunk") == Some(&Value::Bool(true));
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        if port.get("trunk") == Some(&Value::Bool(trunk)) {
            port.remove("trunk");
        }
    }
}

/// Path of a member of the object at `path`.
fn below(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn same_network(change: &Change<'_>) -> Result<(), String> {
    let known = change.old_object.pointer("/status/network/id");
    let id = change.new.and_then(|network| network.get("id"));
    match (id, known) {
        (Some(id), Some(known)) if id == known => Ok(()),
        (_, Some(known)) => Err(format!(
            "can only be changed to the id of the network in use, {known}"
        )),
        _ => Err("cannot be changed after creation".to_owned()),
    }
}

/// Accepts a second subnet to create: one for each family is left to the validation of formats.
fn by_a_family(change: &Change<'_>) -> Result<(), String> {
    let exists = change.old.and_then(Value::as_array);
    if exists.is_some_and(|all| !all.is_empty()) {
        return Ok(());
    }
    Err(
        "cannot be given after creation: the cluster has no network that was created for it"
            .to_owned(),
    )
}

fn to_existing_ones(change: &Change<'_>) -> Result<(), String> {
    let exists = change.old.and_then(Value::as_array);
    if exists.is_some_and(|all| !all.is_empty()) {
        return Ok(());
    }
    Err(
        "cannot be given after creation: all subnets of the network are those of the cluster"
            .to_owned(),
    )
}

fn same_subnet(change: &Change<'_>) -> Result<(), String> {
    let name = change.old.and_then(|subnet| subnet.pointer("/filter/name"));
    let id = change.new.and_then(|subnet| subnet.get("id"));
    let known = change
        .old_object
        .pointer("/status/network/subnets")
        .and_then(Value::as_array);
    let same = name.is_some()
        && id.is_some()
        && known.is_some_and(|all| {
            all.iter()
                .any(|s| s.get("name") == name && s.get("id") == id)
        });
    if same {
        return Ok(());
    }
    Err("can only be changed from a filter by name to the id of the subnet found by it".to_owned())
}

fn without_floating_ip(change: &Change<'_>) -> bool {
    let enabled = change
        .old_object
        .pointer("/spec/apiServer/enableFloatingIP");
    enabled.and_then(Value::as_bool) == Some(false)
}

fn once_without_floating_ip(change: &Change<'_>) -> Result<(), String> {
    if change.old.is_none() && without_floating_ip(change) {
        return Ok(());
    }
    Err("can only be set once, and only where apiServer.enableFloatingIP is false".to_owned())
}

fn the_load_balancers_ip(change: &Change<'_>) -> Result<(), String> {
    let known = change
        .old_object
        .pointer("/status/apiServerManagedLoadBalancer/ip");
    if change.new.is_some() && change.new == known {
        return Ok(());
    }
    Err("can only be changed to the load balancer's address in \
         status.apiServerManagedLoadBalancer.ip"
        .to_owned())
}

/// Accepts zones that come and go, while one of several stays, with the subnet that it has.
fn zones_with_their_subnets(change: &Change<'_>) -> Result<(), String> {
    let list = |value: Option<&Value>| value.and_then(Value::as_array).cloned().unwrap_or_default();
    let (old, new) = (list(change.old), list(change.new));
    if new.is_empty() {
        let why = "the last zone cannot be removed: the endpoint leads to its load balancer";
        return Err(why.to_owned());
    }
    let zone = |entry: &Value| entry.get("availabilityZone").cloned();
    for entry in &new {
        let same = old.iter().find(|known| zone(known) == zone(entry));
        if same.is_some_and(|known| known.get("subnet") != entry.get("subnet")) {
            let name = zone(entry).unwrap_or_default();
            let name = name.as_str().unwrap_or_default();
            return Err(format!(
                "the subnet of zone {name} cannot be changed: remove the zone, and add it again when its load balancer is \
                 gone"
            ));
        }
    }
    Ok(())
}

fn not_taken_away(change: &Change<'_>) -> Result<(), String> {
    if change.new.is_some() {
        return Ok(());
    }
    Err("cannot be removed: nodes use these security groups".to_owned())
}

fn while_host_is_unset(change: &Change<'_>) -> Result<(), String> {
    match change
        .old
        .and_then(|endpoint| endpoint.get("host"))
        .and_then(Value::as_str)
    {
        None | Some("") => Ok(()),
        Some(host) => Err(format!(
            "cannot be changed, since its host is set to {host}"
        )),
    }
}

fn disabled_before_removed(change: &Change<'_>) -> Result<(), String> {
    let enabled = change
        .old
        .and_then(|bastion| bastion.get("enabled"))
        .and_then(Value::as_bool);
    if change.new.is_some() || enabled == Some(false) {
        return Ok(());
    }
    Err("cannot be removed while it is enabled: set bastion.enabled to false first".to_owned())
}

#[cfg(test)]
mod tests;
