//! Machines, their ports and their templates.

use super::{all, conditions_down, conditions_up, one, provisioned, ready, two};

/// A macro, since the fields of both sides have the same names.
macro_rules! same {
    ($from:ident => $version:ident::$to:ident { $($same:ident),* $(,)? } $($field:ident : $value:expr),* $(,)?) => {
        $version::$to { $($same: $from.$same,)* $($field: $value,)* }
    };
}
pub(super) use same;

impl From<one::ResolvedPortFields> for two::ResolvedPortFields {
    fn from(old: one::ResolvedPortFields) -> Self {
        let security = old.disable_port_security.map(|disabled| !disabled);
        same!(old => two::ResolvedPortFields {
            admin_state_up, mac_address, allowed_address_pairs, host_id, vnic_type, profile,
            propagate_uplink_status, value_specs,
        } enable_port_security: security)
    }
}

impl From<two::ResolvedPortFields> for one::ResolvedPortFields {
    fn from(new: two::ResolvedPortFields) -> Self {
        let security = new.enable_port_security.map(|enabled| !enabled);
        same!(new => one::ResolvedPortFields {
            admin_state_up, mac_address, allowed_address_pairs, host_id, vnic_type, profile,
            propagate_uplink_status, value_specs,
        } disable_port_security: security)
    }
}

impl From<one::PortOpts> for two::PortOpts {
    fn from(old: one::PortOpts) -> Self {
        same!(old => two::PortOpts {
            network, description, name_suffix, fixed_ips, security_groups, tags, trunk,
        } fields: old.fields.into())
    }
}

impl From<two::PortOpts> for one::PortOpts {
    fn from(new: two::PortOpts) -> Self {
        same!(new => one::PortOpts {
            network, description, name_suffix, fixed_ips, security_groups, tags, trunk,
        } fields: new.fields.into())
    }
}

impl From<one::ResolvedPortSpec> for two::ResolvedPortSpec {
    fn from(old: one::ResolvedPortSpec) -> Self {
        same!(old => two::ResolvedPortSpec {
            name, description, network_id, tags, trunk, fixed_ips, security_groups,
        } fields: old.fields.into())
    }
}

impl From<two::ResolvedPortSpec> for one::ResolvedPortSpec {
    fn from(new: two::ResolvedPortSpec) -> Self {
        same!(new => one::ResolvedPortSpec {
            name, description, network_id, tags, trunk, fixed_ips, security_groups,
        } fields: new.fields.into())
    }
}

impl From<one::ResolvedMachine> for two::ResolvedMachine {
    fn from(old: one::ResolvedMachine) -> Self {
        same!(old => two::ResolvedMachine { server_group_id, image_id, flavor_id }
            ports: all(old.ports))
    }
}

impl From<two::ResolvedMachine> for one::ResolvedMachine {
    fn from(new: two::ResolvedMachine) -> Self {
        same!(new => one::ResolvedMachine { server_group_id, image_id, flavor_id }
            ports: all(new.ports))
    }
}

impl From<one::OpenStackMachineSpec> for two::OpenStackMachineSpec {
    fn from(old: one::OpenStackMachineSpec) -> Self {
        // The id wins; the name then lives on in the stash.
        let flavor = match (old.flavor_id, old.flavor) {
            (Some(id), _) => two::FlavorParam::Id(id),
            (None, name) => two::FlavorParam::Filter(two::FlavorFilter { name }),
        };
        same!(old => two::OpenStackMachineSpec {
            provider_id, image, ssh_key_name, security_groups, trunk, tags, server_metadata,
            config_drive, root_volume, additional_block_devices, server_group, identity_ref,
            floating_ip_pool_ref, scheduler_hint_additional_properties,
        } flavor: flavor, ports: all(old.ports))
    }
}

impl From<two::OpenStackMachineSpec> for one::OpenStackMachineSpec {
    fn from(new: two::OpenStackMachineSpec) -> Self {
        let (flavor, flavor_id) = match new.flavor {
            two::FlavorParam::Id(id) => (None, Some(id)),
            two::FlavorParam::Filter(filter) => (filter.name, None),
        };
        same!(new => one::OpenStackMachineSpec {
            provider_id, image, ssh_key_name, security_groups, trunk, tags, server_metadata,
            config_drive, root_volume, additional_block_devices, server_group, identity_ref,
            floating_ip_pool_ref, scheduler_hint_additional_properties,
        } flavor: flavor, flavor_id: flavor_id, ports: all(new.ports))
    }
}

impl From<one::OpenStackMachineStatus> for two::OpenStackMachineStatus {
    fn from(old: one::OpenStackMachineStatus) -> Self {
        same!(old => two::OpenStackMachineStatus {
            instance_id, addresses, instance_state, resources, failure_domain,
        }
            conditions: conditions_up(old.conditions),
            initialization: provisioned(old.initialization, old.ready),
            resolved: old.resolved.map(Into::into))
    }
}

impl From<two::OpenStackMachineStatus> for one::OpenStackMachineStatus {
    fn from(new: two::OpenStackMachineStatus) -> Self {
        let ready = ready(&new.conditions, new.initialization.as_ref());
        same!(new => one::OpenStackMachineStatus {
            instance_id, addresses, instance_state, resources, failure_domain, initialization,
        }
            conditions: conditions_down(new.conditions),
            ready: ready,
            resolved: new.resolved.map(Into::into),
            failure_reason: None,
            failure_message: None)
    }
}

impl From<one::OpenStackMachineTemplateSpec> for two::OpenStackMachineTemplateSpec {
    fn from(old: one::OpenStackMachineTemplateSpec) -> Self {
        let spec = old.template.spec.into();
        Self {
            template: two::OpenStackMachineTemplateResource { spec },
        }
    }
}

impl From<two::OpenStackMachineTemplateSpec> for one::OpenStackMachineTemplateSpec {
    fn from(new: two::OpenStackMachineTemplateSpec) -> Self {
        let spec = new.template.spec.into();
        Self {
            template: one::OpenStackMachineTemplateResource { spec },
        }
    }
}

impl From<one::OpenStackMachineTemplateStatus> for two::OpenStackMachineTemplateStatus {
    fn from(old: one::OpenStackMachineTemplateStatus) -> Self {
        same!(old => two::OpenStackMachineTemplateStatus { capacity, node_info }
            conditions: conditions_up(old.conditions))
    }
}

impl From<two::OpenStackMachineTemplateStatus> for one::OpenStackMachineTemplateStatus {
    fn from(new: two::OpenStackMachineTemplateStatus) -> Self {
        same!(new => one::OpenStackMachineTemplateStatus { capacity, node_info }
            conditions: conditions_down(new.conditions))
    }
}
