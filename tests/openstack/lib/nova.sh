# Nova: all services are real except the hypervisors, which use nova's fake driver.

nova_configure() {
    local dir i
    dir=$(config_dir nova)
    cat >"$dir/nova.conf" <<X
[DEFAULT]
$(messaging nova)
my_ip = $IP
compute_driver = fake.FakeDriver
# Only this one, and no metadata_workers = 0, which nova 26 refuses: the API runs in uwsgi anyhow.
enabled_apis = osapi_compute
# The stand-in chassis plugs ports after a moment; a server need not wait for it.
vif_plugging_is_fatal = False
vif_plugging_timeout = 0
# The fake driver forgets its guests at a restart, which this would take for a power failure.
sync_power_state_interval = -1
service_down_time = 120
report_interval = 20
[api_database]
$(database nova nova_api)
[database]
$(database nova nova)
[api]
auth_strategy = keystone
[vnc]
enabled = False
[conductor]
workers = 1
[scheduler]
workers = 1
[quota]
instances = 1000
cores = 4000
ram = 8000000
key_pairs = 500
server_groups = 500
server_group_members = 100
[glance]
api_servers = http://$IP:9292
[cinder]
catalog_info = volumev3::publicURL
os_region_name = RegionOne
$(credentials neutron nova)
$(credentials placement nova)
$(service_user nova)
$(token_check nova)
$(messaging_sections)
X
    cp -f "$PKG/usr/share/nova-common/api-paste.ini" "$dir/"
    for ((i = 1; i <= HOSTS; i++)); do
        mkdir -p "$DATA/nova/$(host_name "$i")"
        printf '[DEFAULT]\nhost = %s\nstate_path = %s\n' "$(host_name "$i")" "$DATA/nova/$(host_name "$i")" >"$dir/$(host_name "$i").conf"
    done
}

nova_manage() { manage "$BIN/nova-manage" "$@"; }

nova_schema() {
    nova_manage api_db sync &&
        nova_manage cell_v2 map_cell0 --database_connection "$(database_url nova nova_cell0)" &&
        nova_manage cell_v2 create_cell --name cell1 &&
        nova_manage db sync
}

nova_api_start() { start_wsgi nova-api 8774 3 1 "$BIN/nova-api-wsgi" "OS_NOVA_CONFIG_DIR=$ETC/.nova"; }

nova_start() {
    local i hosts=()
    for ((i = 1; i <= HOSTS; i++)); do hosts+=("$(host_name "$i")"); done
    start nova-conductor "$BIN/nova-conductor"
    start nova-compute /usr/bin/python3 "$HERE/python/computes.py" "$ETC/.nova" "$LOG" "${hosts[@]}"
    start nova-scheduler "$BIN/nova-scheduler"
}

# Hosts accept servers once they have reported and are mapped to the cell, which nova does not do automatically.
nova_ready() {
    await 120 placement answers 8778
    await 120 nova-api answers 8774
    seed hypervisors
    [[ -e $DATA/nova/.mapped-$HOSTS ]] && return 0
    nova_manage cell_v2 discover_hosts >>"$LOG/nova-discover-hosts.log" 2>&1 || die "mapping the hosts failed: see $LOG/nova-discover-hosts.log"
    touch "$DATA/nova/.mapped-$HOSTS"
}
