//! Admin state and port security of ports, restored after changes by hand.

use api::infra::v1beta2::{OpenStackMachineSpec, ResolvedMachine};
use openstack::network::{Port, PortUpdate};

use super::desired::port_name;
use super::facts::ports;
use super::observed::Observed;

/// The desired state of a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortState {
    /// The name of the port.
    pub port: String,
    /// The admin state.
    pub admin_state_up: bool,
    /// Port security; `None` for the network's setting, which anybody may change.
    pub port_security: Option<bool>,
    /// Ids of the port's initial security groups. A port created without port security has none.
    pub groups: Vec<String>,
}

/// A change of a port back to its desired state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// The name of the port.
    pub port: String,
    /// Id.
    pub id: String,
    /// Differing fields.
    pub change: PortUpdate,
}

impl Repair {
    /// The differing fields, in words.
    pub fn words(&self) -> String {
        let words = [
            (self.change.admin_state_up.is_some(), "the admin state"),
            (self.change.port_security_enabled.is_some(), "port security"),
        ];
        let words = words.into_iter().filter(|(differs, _)| *differs);
        words
            .map(|(_, word)| word)
            .collect::<Vec<_>>()
            .join(" and ")
    }
}

/// [`PortState`]s of the ports of the server `name`. `resolved` has the security groups of its ports.
pub fn of(
    name: &str,
    spec: &OpenStackMachineSpec,
    resolved: Option<&ResolvedMachine>,
) -> Vec<PortState> {
    let recorded = resolved.map_or(&[][..], |resolved| resolved.ports.as_slice());
    let all = ports(spec);
    let states = all.iter().enumerate().map(|(index, opts)| {
        let port = port_name(name, index, opts);
        let entry = recorded.iter().find(|entry| entry.name == port);
        PortState {
            admin_state_up: opts.fields.admin_state_up != Some(false),
            port_security: opts.fields.enable_port_security,
            groups: entry.map_or_else(Vec::new, |entry| entry.security_groups.clone()),
            port,
        }
    });
    states.collect()
}

/// [`Repair`]s of ports that differ.
pub fn repairs(all: &[PortState], observed: &Observed) -> Vec<Repair> {
    let repairs = all.iter().filter_map(|state| {
        let port = observed.port(&state.port)?;
        let change = change(state, port);
        (change != PortUpdate::default()).then(|| Repair {
            port: port.name.clone(),
            id: port.id.clone(),
            change,
        })
    });
    repairs.collect()
}

fn change(state: &PortState, port: &Port) -> PortUpdate {
    let mut change = PortUpdate::default();
    let is_up = port.admin_state_up.unwrap_or(state.admin_state_up);
    change.admin_state_up = (is_up != state.admin_state_up).then_some(state.admin_state_up);
    let security = state.port_security.zip(port.port_security_enabled);
    let Some((wanted, _)) = security.filter(|(wanted, known)| wanted != known) else {
        return change;
    };
    change.port_security_enabled = Some(wanted);
    // Neutron refuses groups and pairs without port security, so that a port whose port security was off has none. Pairs
    // follow when port security is on.
    match wanted {
        true => change.security_groups = Some(state.groups.clone()).filter(|it| !it.is_empty()),
        false => {
            change.security_groups = Some(Vec::new());
            let has_pairs = !port.allowed_address_pairs.is_empty();
            change.allowed_address_pairs = has_pairs.then(Vec::new);
        }
    }
    change
}
