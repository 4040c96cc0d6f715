# shellcheck shell=bash disable=SC2154
# Scenarios of networks.

scenario_dual_stack() {
    make_simple_cluster dual <<X
managedSubnets:
- {cidr: 10.6.0.0/24, dnsNameservers: [9.9.9.9]}
- {cidr: "fd00:6::/64"}
managedSecurityGroups: {allowAllInClusterTraffic: true}
X
    ready openstackcluster dual
    make_machine dual worker <<<''
    ready openstackmachine worker
    holds "both subnets are at the router, and the port has an address of each family" '
        (.subnet | map(.ip_version) | sort) == [4, 6]
        and (.subnet[] | select(.ip_version == 6) | .ipv6_address_mode == "dhcpv6-stateful")
        and (.port | map(select(.device_owner | startswith("compute:"))) | length == 1 and (.[0].fixed_ips | length == 2))
        and (.port | map(select(.device_owner == "network:router_interface")) | length == 2)'
    holds "rules are of both families" '
        .["security group"] | map(select(.name != "default")) | length == 2 and all(.security_group_rules | map(.ethertype) | unique == ["IPv4", "IPv6"])'
}

scenario_ipv6() {
    make_simple_cluster six <<X
managedSubnets: [{cidr: "fd00:7::/64", ipv6RAMode: slaac, ipv6AddressMode: slaac}]
managedSecurityGroups: {}
X
    ready openstackcluster six
    make_machine six worker <<<''
    ready openstackmachine worker
    holds "all is of IPv6" '(.subnet | map(.ip_version)) == [6]
        and (.port | map(select(.device_owner | startswith("compute:"))) | .[0].fixed_ips | length == 1 and (.[0].ip_address | startswith("fd00:7:")))'
}

scenario_second_family() {
    make_simple_cluster second <<X
managedSubnets: [{cidr: 10.6.0.0/24}]
managedSecurityGroups: {}
X
    ready openstackcluster second
    mine patch openstackcluster second --type json -p '[{"op":"add","path":"/spec/managedSubnets/-","value":{"cidr":"fd00:8::/64"}}]' >/dev/null
    holds "a subnet of IPv6 is added, at the router" '(.subnet | map(.ip_version) | sort) == [4, 6]
        and (.port | map(select(.device_owner == "network:router_interface")) | length == 2)'
    ready openstackcluster second
}

scenario_subnet_pools() {
    on demo subnet pool create "$NAME-four" --pool-prefix 10.40.0.0/16 --default-prefix-length 24 >/dev/null
    on demo subnet pool create "$NAME-six" --pool-prefix fd00:40::/48 --default-prefix-length 64 >/dev/null
    make_simple_cluster pools <<X
managedSubnets:
- {subnetPool: {filter: {name: $NAME-four}}, prefixLength: 26}
- {subnetPool: {filter: {name: $NAME-six}}, ipVersion: 6}
X
    ready openstackcluster pools
    holds "Neutron chose a range of each pool" '.subnet | sort_by(.ip_version) | length == 2
        and (.[0].cidr | startswith("10.40.") and endswith("/26")) and (.[1].cidr | startswith("fd00:40:") and endswith("/64"))'
    mine delete cluster pools --wait=false >/dev/null
    gone openstackcluster pools
    make_simple_cluster none <<X
managedSubnets: [{subnetPool: {filter: {name: no-such-pool}}}]
X
    says openstackcluster none NetworkReady False no-such-pool
    mine delete cluster none --wait=false >/dev/null
    gone openstackcluster none
    make_simple_cluster long <<X
managedSubnets: [{subnetPool: {filter: {name: $NAME-four}}, prefixLength: 12}]
X
    says openstackcluster long NetworkReady False prefixLength
    mine delete cluster long --wait=false >/dev/null
    gone openstackcluster long
    on demo subnet pool delete "$NAME-four" "$NAME-six"
}

scenario_zone_subnets() {
    local zone subnet
    on demo network create "$NAME" >/dev/null
    for zone in shared:10.70.0.0/24 az1:10.70.1.0/24 az2:10.70.2.0/24; do
        on demo subnet create "$NAME-${zone%%:*}" --network "$NAME" --subnet-range "${zone#*:}" >/dev/null
    done
    make_simple_cluster zones <<X
network: {filter: {name: $NAME}}
subnets: [{filter: {name: $NAME-shared}}]
failureDomainSubnets:
- {failureDomain: az1, subnets: [{filter: {name: $NAME-az1}}]}
- {failureDomain: az2, subnets: [{filter: {name: $NAME-az2}}]}
enableExternalNetwork: false
X
    ready openstackcluster zones
    ZONE=az1 make_machine zones one <<<''
    ZONE=az2 make_machine zones two <<<''
    make_machine zones other <<<''
    ready openstackmachine one two other
    for subnet in one:10.70.1. two:10.70.2. other:10.70.0.; do
        holds "the machine ${subnet%%:*} is on ${subnet#*:}0/24" --arg name "${subnet%%:*}" --arg range "${subnet#*:}" '
            (.server[] | select(.name == $name) | .id) as $id | .port | map(select(.device_id == $id))
            | length == 1 and (.[0].fixed_ips[0].ip_address | startswith($range))'
    done
    holds "the servers are in their zones" '.server | map(select(.name != "other") | .name + " " + .availability_zone) | sort == ["one az1", "two az2"]'
    mine delete cluster zones --wait=false >/dev/null
    gone openstackcluster zones
    on demo network delete "$NAME"
}
