# Octavia: real servers, ports and security groups for its amphorae, but no agents inside them; and the driver of OVN.

octavia_configure() {
    local dir data=$DATA/octavia owner=none network=none group=none
    dir=$(config_dir octavia)
    if [[ ! -s $data/client.pem ]]; then
        openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=amphorae -keyout "$data/ca.key" -out "$data/ca.pem" 2>/dev/null &&
            cat "$data/ca.pem" "$data/ca.key" >"$data/client.pem"
    fi
    # Default keystone roles instead of the load-balancer_* ones: `demo` is a member and may create load balancers.
    cp -f "$HERE/config/octavia-policy.yaml" "$dir/policy.yaml"
    # Set by `seed resources`.
    if [[ -s $data/ids ]]; then read -r owner network group <"$data/ids"; fi
    cat >"$dir/octavia.conf" <<X
[DEFAULT]
transport_url = rabbit://guest:guest@$IP:5672/
use_stderr = True
[api_settings]
bind_host = $IP
bind_port = 9876
auth_strategy = keystone
enabled_provider_drivers = amphora: amphorae without an agent, octavia: the same by its old name, ovn: OVN
default_provider_driver = amphora
[database]
$(database octavia octavia)
[oslo_policy]
policy_file = $dir/policy.yaml
enforce_scope = False
enforce_new_defaults = False
[health_manager]
bind_ip = $IP
bind_port = 5555
controller_ip_port_list = $IP:5555
heartbeat_key = $PW
# The driver of OVN tells the state of its load balancers through these.
[driver_agent]
status_socket_path = $RUN/octavia-status.sock
stats_socket_path = $RUN/octavia-stats.sock
get_socket_path = $RUN/octavia-get.sock
enabled_provider_agents = ovn
[ovn]
ovn_nb_connection = tcp:$IP:6641
ovn_sb_connection = tcp:$IP:6642
[certificates]
cert_generator = local_cert_generator
cert_manager = local_cert_manager
ca_certificate = $data/ca.pem
ca_private_key = $data/ca.key
[haproxy_amphora]
client_cert = $data/client.pem
server_ca = $data/ca.pem
[controller_worker]
workers = 1
amphora_driver = amphora_noop_driver
# Not the no-op drivers here: with compute_noop_driver a load balancer ends in ERROR (its interface has no addresses),
# and with network_noop_driver it has no port, so no address, no security group and nothing that could leak.
compute_driver = compute_nova_driver
network_driver = allowed_address_pairs_driver
image_driver = image_glance_driver
volume_driver = volume_noop_driver
client_ca = $data/ca.pem
amp_image_tag = amphora
amp_image_owner_id = $owner
amp_flavor_id = amphora
amp_boot_network_list = $network
amp_secgroup_list = $group
amp_active_retries = 60
amp_active_wait_sec = 1
loadbalancer_topology = SINGLE
[compute]
max_retries = 15
retry_interval = 1
retry_backoff = 0
[networking]
max_retries = 30
retry_interval = 1
retry_backoff = 0
port_detach_timeout = 60
[neutron]
region_name = RegionOne
[nova]
region_name = RegionOne
[glance]
region_name = RegionOne
[oslo_messaging]
topic = octavia_prov
$(credentials service_auth octavia)
$(token_check octavia)
X
}

octavia_schema() { manage octavia-db-manage --config-file "$ETC/.octavia/octavia.conf" upgrade head; }

octavia_start() {
    octavia_configure
    sql octavia <"$HERE/config/octavia-online.sql" || die "creating the stand-in for heartbeats failed"
    start octavia-driver-agent "FERROSTACK_OCTAVIA_SOCKETS=$RUN" /usr/bin/python3 "$HERE/python/octavia_ovn.py" --config-file "$ETC/.octavia/octavia.conf"
    start_wsgi octavia-api 9876 2 1 "$HERE/python/octavia_ovn.py" "FERROSTACK_OCTAVIA_SOCKETS=$RUN"
    local worker=(/usr/bin/python3 "$HERE/python/octavia_worker.py")
    [[ $OCTAVIA != debian ]] || worker=(octavia-worker)
    start octavia-worker "${worker[@]}" --config-file "$ETC/.octavia/octavia.conf"
    await 120 octavia-api answers 9876
}
