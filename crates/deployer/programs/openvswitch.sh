# Open vSwitch on a node: what OVN has to know of it, its physical networks, then ovs-vswitchd.
#   openvswitch.sh DATAPATH SOUTHBOUND [NETWORK=INTERFACE]…
# DATAPATH: Auto, System or Userspace. Without an interface only the node itself reaches the network. NODE and ADDRESS are
# those of the node.
set -eu
wanted=$1 southbound=$2
shift 2
refuse() {
	echo "$*" >&2
	exit 1
}
# Those of Pods and guests are none to choose.
interfaces() { ls /sys/class/net | grep -Ev '^(lo$|veth|tap|ovs-)' | paste -sd ' '; }
# The kernel loads the module when it is asked for the family of the datapath.
datapath=netdev
if [ "$wanted" != Userspace ] && ovs-dpctl show >/dev/null 2>&1; then datapath=system; fi
[ "$wanted $datapath" != "System netdev" ] ||
	refuse "network.datapath: System: the kernel of $NODE has no module openvswitch; Userspace needs none"
for pair; do
	network=${pair%%=*} interface=${pair#*=}
	[ -n "$interface" ] || continue
	ip link show dev "$interface" >/dev/null 2>&1 ||
		refuse "network.physical $network: $NODE has no interface $interface; it has $(interfaces)"
	[ -z "$(ip -o address show dev "$interface" scope global)" ] ||
		refuse "network.physical $network: $interface of $NODE carries an address of the node, which would be cut off: give it another interface"
done
vsctl() { ovs-vsctl --timeout=60 --retry --no-wait "$@"; }
vsctl init
# The name of the chassis is made once: agents want it to be a uuid.
chassis=$(vsctl --if-exists get Open_vSwitch . external_ids:system-id | tr -d '"')
[ -n "$chassis" ] || chassis=$(cat /proc/sys/kernel/random/uuid)
userspace=false
[ "$datapath" = system ] || userspace=true
mappings=''
for pair; do mappings=$mappings${mappings:+,}${pair%%=*}:br-${pair%%=*}; done
# Guests leave checksums to the next hop; without TSO the datapath of vswitchd would lose what they send to each other by TCP.
vsctl set Open_vSwitch . external_ids:system-id="$chassis" external_ids:hostname="$NODE" external_ids:ovn-remote="\"$southbound\"" \
	external_ids:ovn-encap-type=geneve external_ids:ovn-encap-ip="$ADDRESS" external_ids:ovn-bridge-datapath-type="$datapath" \
	external_ids:ovn-bridge-mappings="\"$mappings\"" other_config:userspace-tso-enable="$userspace"
# Neutron places gateways of routers, with their floating IPs, on chassis that offer it, and nowhere if none does.
if [ -n "$mappings" ]; then
	vsctl set Open_vSwitch . external_ids:ovn-cms-options=enable-chassis-as-gw
else
	vsctl remove Open_vSwitch . external_ids ovn-cms-options
fi
for bridge in $(vsctl list-br); do
	[ "$(vsctl br-get-external-id "$bridge" ferrostack)" = physical ] || continue
	case ",$mappings," in
	*":$bridge,"*) ;;
	*) vsctl --if-exists del-br "$bridge" ;;
	esac
done
for pair; do
	bridge=br-${pair%%=*} interface=${pair#*=}
	vsctl --may-exist add-br "$bridge" -- br-set-external-id "$bridge" ferrostack physical -- set Bridge "$bridge" datapath_type="$datapath"
	for port in $(vsctl list-ports "$bridge"); do
		case $port in
		patch-* | "$interface") ;;
		*) vsctl del-port "$bridge" "$port" ;;
		esac
	done
	[ -z "$interface" ] || vsctl --may-exist add-port "$bridge" "$interface"
done
exec ovs-vswitchd unix:/run/openvswitch/db.sock --unixctl=/run/openvswitch/vswitchd.ctl -vconsole:warn
