#!/bin/bash
# Plays about 120 commands of the `openstack` client against the cloud OS_CLOUD of OS_CLIENT_CONFIG_FILE and prints those
# that fail. Works on the simulated cloud (examples/serve.rs) as on a real one with an external network `public`, the
# flavor m1.small and the image ubuntu-24.04. Needs python3-openstackclient and python3-octaviaclient.
set -u
export PATH=/usr/bin:/bin
unset PYTHONPATH
: "${OS_CLIENT_CONFIG_FILE:?the clouds.yaml}" "${OS_CLOUD:=simulated}" "${ADMIN_CLOUD:=simulated-admin}"
export OS_CLIENT_CONFIG_FILE OS_CLOUD
commands=0
failures=0

# Runs a command; shows it only if it fails.
o() {
    local out status
    commands=$((commands + 1))
    out=$(openstack "$@" 2>&1)
    status=$?
    if [ $status -ne 0 ]; then
        failures=$((failures + 1))
        echo "exit $status: openstack $*"
        tail -4 <<<"$out"
    fi
}

# Runs a command for its output.
v() { openstack "$@" -f value 2>/dev/null; }

o token issue
o catalog list; OS_CLOUD=$ADMIN_CLOUD o project list; OS_CLOUD=$ADMIN_CLOUD o user list
o application credential create ac1
o application credential list
o application credential show ac1
o application credential delete ac1
o image list
o image show ubuntu-24.04
o flavor list
o flavor show m1.small
o keypair create k0
o keypair list
o keypair show k0
o network create net1
o network list
o network show net1
o network set --description d net1 --tag a
o subnet create sub1 --network net1 --subnet-range 10.1.0.0/24 --dns-nameserver 1.1.1.1 --allocation-pool start=10.1.0.10,end=10.1.0.100
o subnet list
o subnet show sub1
o subnet set --tag b sub1
o router create r1
o router set r1 --external-gateway public
o router add subnet r1 sub1
o router show r1
o router list
o router set r1 --route destination=10.9.0.0/24,gateway=10.1.0.5
o router unset r1 --route destination=10.9.0.0/24,gateway=10.1.0.5
o security group create sg1 --description x
o security group rule create sg1 --protocol tcp --dst-port 22
o security group rule list sg1
o security group list
o security group show sg1
o security group rule create sg1 --protocol icmp
o security group rule create sg1 --remote-group sg1 --ingress
o port create p1 --network net1 --security-group sg1 --fixed-ip subnet=sub1,ip-address=10.1.0.50 --tag x
o port list
o port show p1
o port set p1 --description y --allowed-address ip-address=10.1.0.200
o network trunk create t1 --parent-port p1
o port create p2 --network net1
o network trunk set t1 --subport port=p2,segmentation-type=vlan,segmentation-id=5
o network subport list --trunk t1
o network trunk unset t1 --subport p2
o network trunk list
o network trunk delete t1
o floating ip create public --description f1
fip=$(v floating ip list -c "Floating IP Address" | head -1)
o server group create g1 --policy anti-affinity
o server group list
gid=$(v server group list -c ID | head -1)
o server create s1 --image ubuntu-24.04 --flavor m1.small --nic port-id=p1 --key-name k0 --hint group=$gid --property a=b --config-drive True --availability-zone az1 --wait
o server create s2 --image ubuntu-24.04 --flavor m1.small --network net1 --security-group sg1 --wait
o --os-compute-api-version 2.60 server create s3 --image ubuntu-24.04 --flavor m1.small --network net1 --boot-from-volume 10 --tag tt --wait
o --os-compute-api-version 2.60 server list --tags tt
o server list
o server list --long --name s1
o server show s1
o server show s3
o server add floating ip s1 $fip
o server remove floating ip s1 $fip
o server set s1 --property c=d
o server unset s1 --property c
o volume create v1 --size 1
o volume create v2 --size 1 --type ssd
o volume list
o volume show v1
o volume set v1 --size 2
o server add volume s1 v1
o server remove volume s1 v1
o server add network s2 net1
o server add fixed ip s2 net1
o server add port s2 p2
o server remove port s2 p2
o server stop s2
o server start s2
o server reboot s2
o console log show s2
o volume snapshot create sn1 --volume v1
o volume snapshot list
o volume snapshot delete sn1
o volume type list
o loadbalancer create --name lb1 --vip-subnet-id sub1 --wait
o loadbalancer list
o loadbalancer show lb1
o loadbalancer listener create --name l1 --protocol TCP --protocol-port 80 lb1 --wait --allowed-cidr 10.0.0.0/8
o loadbalancer listener list
o loadbalancer listener show l1
o loadbalancer pool create --name po1 --listener l1 --protocol TCP --lb-algorithm ROUND_ROBIN --wait
o loadbalancer pool list
o loadbalancer member create --name m1 --address 10.1.0.50 --protocol-port 80 --subnet-id sub1 po1 --wait
o loadbalancer member list po1
o loadbalancer healthmonitor create --name h1 --type TCP --delay 5 --timeout 3 --max-retries 2 po1 --wait
o loadbalancer healthmonitor list
o loadbalancer status show lb1
o loadbalancer set lb1 --description z --wait
o loadbalancer stats show lb1
o loadbalancer provider list
o loadbalancer quota defaults show
o loadbalancer availabilityzone list
o loadbalancer flavor list
o quota show
o limits show --absolute
o availability zone list
o extension list
o loadbalancer delete lb1 --cascade --wait
o server delete s1 s2 s3 --wait
o floating ip delete $fip
o volume delete v1 v2
for x in $(v volume list -c ID); do o volume delete $x; done
o port delete p1 p2
o router remove subnet r1 sub1
o router unset --external-gateway r1
o router delete r1
o network delete net1
o security group delete sg1
o server group delete $gid
o keypair delete k0
o token revoke $(v token issue -c id)
echo "$commands commands, $failures failed"
[ "$failures" -eq 0 ]
