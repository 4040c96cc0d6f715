# Neutron: ML2 with OVN. Its agents are replaced by northd and the simulated chassis (ovn.sh).

neutron_configure() {
    local dir
    dir=$(config_dir neutron)
    cat >"$dir/neutron.conf" <<X
[DEFAULT]
$(messaging neutron)
bind_host = $IP
bind_port = 9696
core_plugin = ml2
service_plugins = ovn-router,trunk,qos,port_forwarding
auth_strategy = keystone
api_workers = 2
rpc_workers = 1
rpc_state_report_workers = 0
notify_nova_on_port_status_changes = true
notify_nova_on_port_data_changes = true
send_events_interval = 1
# The chassis report only when northd asks; a starved machine must not make hosts dead, on which no port binds.
agent_down_time = 3600
global_physnet_mtu = 1500
max_allowed_address_pair = 100
max_routes = 100
api_paste_config = $PKG/usr/share/neutron-common/api-paste.ini
[database]
$(database neutron neutron)
[quotas]
quota_network = 1000
quota_subnet = 1000
quota_port = 10000
quota_router = 500
quota_floatingip = 2000
quota_security_group = 2000
quota_security_group_rule = 20000
quota_trunk = 500
$(credentials nova nova)
$(credentials placement neutron)
$(token_check neutron)
$(messaging_sections)
[ml2]
type_drivers = local,flat,vlan,geneve
tenant_network_types = geneve
mechanism_drivers = ovn
extension_drivers = port_security,qos
overlay_ip_version = 4
path_mtu = 1500
[ml2_type_geneve]
vni_ranges = 1:65535
max_header_size = 38
[ml2_type_flat]
flat_networks = public
[ml2_type_vlan]
network_vlan_ranges = physnet1:100:2999
[securitygroup]
enable_security_group = true
[ovn]
ovn_nb_connection = tcp:$IP:6641
ovn_sb_connection = tcp:$IP:6642
ovn_l3_scheduler = leastloaded
ovn_metadata_enabled = False
enable_distributed_floating_ip = False
neutron_sync_mode = log
X
}

neutron_schema() { manage "$BIN/neutron-db-manage" --config-file "$ETC/.neutron/neutron.conf" upgrade heads; }

neutron_start() { start neutron "$BIN/neutron-server" --config-file "$ETC/.neutron/neutron.conf"; }
neutron_ready() { await 240 neutron answers 9696; }
