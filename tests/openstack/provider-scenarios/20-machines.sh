# shellcheck shell=bash disable=SC2154
# Scenarios of machines.

# A network of the cluster, and a machine with all that a port and a server can have.
scenario_ports() {
    local group policy
    policy=$(on admin network qos policy create "$NAME" --project "$PROJECT" -f value -c id)
    on demo network create "$NAME" >/dev/null
    on demo subnet create "$NAME" --network "$NAME" --subnet-range 10.71.0.0/24 >/dev/null
    on demo security group create "$NAME" >/dev/null
    group=$(on demo server group create "$NAME" --policy soft-anti-affinity -f value -c id)
    make_simple_cluster ports <<X
managedSubnets: [{cidr: 10.6.0.0/24}]
managedSecurityGroups: {}
tags: [of-cluster]
X
    ready openstackcluster ports
    make_machine ports worker <<X
trunk: true
tags: [of-machine]
serverMetadata: [{key: team, value: a}]
serverGroup: {filter: {name: $NAME}}
configDrive: true
additionalBlockDevices:
- {name: etcd, sizeGiB: 1, storage: {type: Volume, volume: {type: fast}}}
- {name: data, sizeGiB: 2, storage: {type: Volume, volume: {type: standard, availabilityZone: {from: Name, name: nova}}}}
ports:
- tags: [of-port]
  allowedAddressPairs: [{ipAddress: 10.6.0.200}]
  valueSpecs: [{name: limits, key: qos_policy_id, value: $policy}]
- nameSuffix: second
  description: second network
  trunk: false
  network: {filter: {name: $NAME}}
  fixedIPs: [{subnet: {filter: {name: $NAME}}, ipAddress: 10.71.0.50}]
  securityGroups: [{filter: {name: $NAME}}]
- nameSuffix: open
  trunk: false
  network: {filter: {name: $NAME}}
  enablePortSecurity: false
  vnicType: normal
X
    ready openstackmachine worker
    holds "three ports in two networks, with their own address, group, pairs and attributes" --arg name "$NAME" --arg policy "$policy" '
        (.network[] | select(.name == $name) | .id) as $other
        | (.["security group"][] | select(.name == $name) | .id) as $group
        | (.port | map({key: .name, value: .}) | from_entries) as $ports
        | $ports["worker-second"].network_id == $other and $ports["worker-second"].fixed_ips[0].ip_address == "10.71.0.50"
        and $ports["worker-second"].security_group_ids == [$group]
        and $ports["worker-open"].is_port_security_enabled == false and $ports["worker-open"].network_id == $other
        and $ports["worker-0"].allowed_address_pairs[0].ip_address == "10.6.0.200"
        and $ports["worker-0"].qos_policy_id == $policy
        and ($ports["worker-0"].tags | contains(["of-cluster", "of-machine", "of-port"]))
        and ([$ports["worker-0", "worker-second", "worker-open"].device_id] | unique) == [.server[0].id]'
    holds "a trunk with tags at the first port alone" '(.trunk | length) == 1 and (.trunk[0].name == "worker-0")
        and (.trunk[0].tags | contains(["of-cluster", "of-machine", "of-port"]))'
    holds "two volumes of their types are attached" '(.volume | map("\(.volume_type) \(.size) \(.status)") | sort) == ["fast 1 in-use", "standard 2 in-use"]'
    holds "the server has its metadata and tags, and is in the group" --arg group "$group" '(.server[0] | .metadata.team == "a" and (.tags | contains(["of-cluster", "of-machine"])))
        and ([.["server group"][] | select(.id == $group) | .member_ids[]] == [.server[0].id])'
    subport
    mine delete machine worker --wait=false >/dev/null
    gone openstackmachine worker
    holds "subport, trunk, ports and volumes are gone with the machine" '(.trunk + .volume + .server | length) == 0
        and (.port | map(select(.name | startswith("worker") or startswith("sub"))) | length == 0)'
    mine delete cluster ports --wait=false >/dev/null
    gone openstackcluster ports
    on demo server group delete "$group"
    on demo network delete "$NAME"
    on demo security group delete "$NAME"
    on admin network qos policy delete "$policy"
}
# A port of a user becomes a subport of the trunk.
subport() {
    local trunk network
    trunk=$(cloud '.trunk[0].id')
    network=$(cloud --arg name "$NAME" '.network[] | select(.name == $name) | .id')
    on demo port create sub --network "$network" >/dev/null
    on demo network trunk set "$trunk" --subport port=sub,segmentation-type=vlan,segmentation-id=7
    holds "a user added a subport" '(.trunk[0].sub_ports | length) == 1'
}

# Servers that Nova fails for want of room go to the next place of the list.
scenario_no_room() {
    on admin flavor create "$NAME-huge" --vcpus 1 --ram 64 --disk 9000000 >/dev/null
    make_simple_cluster room <<X
managedSubnets: [{cidr: 10.6.0.0/24}]
X
    ready openstackcluster room
    FLAVOR=$NAME-huge ANNOTATIONS='ferrostack.dev/retry-flavors: m1.tiny' make_machine room worker <<<''
    says openstackmachine worker InstanceReady False 'No valid host'
    say "no-room: $(field openstackmachine worker '.status.conditions[?(@.type=="InstanceReady")].message' | cut -c1-200)"
    ready openstackmachine worker
    holds "the server is of the next flavor, and alone" '[.server[].flavor.original_name] == ["m1.tiny"]'
    on admin flavor delete "$NAME-huge"
}

# Nova refuses a server, and takes it when the quota is raised.
scenario_quota() {
    on admin quota set --instances 1 "$PROJECT"
    make_simple_cluster quota <<X
managedSubnets: [{cidr: 10.6.0.0/24}]
X
    ready openstackcluster quota
    make_machine quota one <<<''
    ready openstackmachine one
    make_machine quota two <<<''
    says openstackmachine two InstanceReady False Quota
    say "quota: $(field openstackmachine two '.status.conditions[?(@.type=="InstanceReady")].message' | cut -c1-200)"
    holds "one server" '.server | length == 1'
    on admin quota set --instances 10 "$PROJECT"
    ready openstackmachine two
    holds "two servers after the quota was raised" '.server | length == 2'
}

scenario_deleted_by_hand() {
    local server
    make_simple_cluster hand <<X
managedSubnets: [{cidr: 10.6.0.0/24}]
X
    ready openstackcluster hand
    make_machine hand worker <<<''
    ready openstackmachine worker
    server=$(cloud '.server[0].id')
    on demo server delete --wait "$server"
    says openstackmachine worker InstanceReady False "$server"
    say "deleted-by-hand: $(field openstackmachine worker '.status.conditions[?(@.type=="InstanceReady")].message' | cut -c1-200)"
    holds "no other server takes its place" '.server == []'
}

# What somebody changes by hand is put back; descriptions and tags are known by their ids, and nothing is made twice.
scenario_edits() {
    local server port network router
    make_simple_cluster edits <<X
managedSubnets: [{cidr: 10.6.0.0/24}]
managedNetwork: {mtu: 1300}
managedSecurityGroups: {}
tags: [of-cluster]
X
    ready openstackcluster edits
    make_machine edits worker <<<'tags: [of-machine]'
    ready openstackmachine worker
    read -r server network router port <<<"$(cloud '[.server[0].id, .network[0].id, .router[0].id, (.port[] | select(.device_owner | startswith("compute:")) | .id)] | join(" ")')"
    cloud '[.server, .network, .router, .port, .["security group"] | map({id, name})[]]' >"$WORK/ids"
    on demo network set "$network" --mtu 1280 --disable
    on demo router set "$router" --disable
    on demo port set "$port" --disable
    on demo security group rule delete "$(cloud '[.["security group"][] | select(.name | contains("worker")) | .security_group_rules[] | select(.direction == "ingress")][0].id')"
    look_again
    holds "MTU, admin states and the rule are put back" --argjson rules "$(cloud '[.["security group"][].security_group_rules[]] | length')" '
        .network[0].mtu == 1300 and .network[0].is_admin_state_up and .router[0].is_admin_state_up and all(.port[]; .is_admin_state_up)'
    ready openstackcluster edits
    ready openstackmachine worker
    # Marks and tags.
    on demo network set "$network" --description changed
    on demo network unset "$network" --tag of-cluster
    on demo router set "$router" --description changed
    on demo port set "$port" --description changed
    on demo port unset "$port" --tag of-machine
    on demo --os-compute-api-version 2.26 server unset "$server" --tag of-machine
    look_again
    sleep 10
    complaints edits
    say "edits: $(cloud -c '{tags: .server[0].tags, port: (.port[] | select(.device_owner | startswith("compute:")) | {tags, description}), network: (.network[0] | {tags, description})}')"
    ready openstackcluster edits
    ready openstackmachine worker
    [[ $(cloud '[.server, .network, .router, .port, .["security group"] | map({id, name})[]]') == "$(cat "$WORK/ids")" ]] || die "edits: something was made twice or is gone"
}
