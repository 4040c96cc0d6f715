# Guests on a real node: what tests/deployer/guest does with them.

PROVIDER=203.0.113
INSIDE=10.9.0

# on_node COMMAND…: on the node, in its namespaces.
on_node() { "$node" run 1 "$@"; }

# console SERVER: the lines of the guest.
console() { outside console log show "$1" 2>/dev/null | tr -d '\r' | sed -n 's/.*\(GUEST .*\)/\1/p'; }

# await_line SERVER SECONDS PATTERN: the guest has said it; prints the line.
await_line() {
	local patience=$((SECONDS + $2)) line
	until line=$(console "$1" | grep -E "$3" | tail -n 1) && [[ $line ]]; do
		((SECONDS < patience)) || die "the guest $1 has not said '$3' within $2 s, but: $(console "$1" | tail -n 5 | paste -sd ';')"
		sleep 2
	done
	echo "$line"
}

# await_status SERVER STATUS
await_status() {
	local patience=$((SECONDS + PATIENCE)) status
	until status=$(outside server show "$1" -f value -c status) && [[ $status == "$2" ]]; do
		[[ $status != ERROR ]] || die "server $1 is in ERROR: $(outside server show "$1" -f value -c fault)"
		((SECONDS < patience)) || die "server $1 is ${status:-not there}, and not $2"
		sleep 1
	done
}

# is_there KIND NAME
is_there() { outside "$1" show "$2" >/dev/null 2>&1; }

# prepared: image, flavor, networks and a security group with one open port.
prepared() {
	local kernel ramdisk there='' patience=$((SECONDS + PATIENCE))
	# A client takes seconds on a busy machine: each thing is asked for only after a run that has made some.
	missing() { [[ $there == nothing ]] || { [[ $there != everything ]] && ! is_there "$@"; }; }
	is_there image guest-kernel || there=nothing
	[[ $there ]] || ! is_there 'security group' guests || there=everything
	on_node ip link set br-public up
	on_node ip address replace "$PROVIDER.1/24" dev br-public
	! missing image guest-kernel || outside image create --disk-format aki --container-format aki --file "$guest/kernel" guest-kernel >/dev/null
	! missing image guest-ramdisk || outside image create --disk-format ari --container-format ari --file "$guest/ramdisk" guest-ramdisk >/dev/null
	kernel=$(outside image show guest-kernel -f value -c id)
	ramdisk=$(outside image show guest-ramdisk -f value -c id)
	truncate -s 1M "$work/disk"
	! missing image guest || outside image create --disk-format raw --container-format bare --file "$work/disk" --property "kernel_id=$kernel" \
		--property "ramdisk_id=$ramdisk" --property os_command_line="console=ttyS0 quiet panic=-1" --property os_shutdown_timeout=5 guest >/dev/null
	! missing flavor guest || outside flavor create --ram 192 --disk 1 --vcpus 1 guest >/dev/null
	! missing network public || outside network create --external --provider-network-type flat --provider-physical-network public public >/dev/null
	! missing subnet public || outside subnet create --network public --subnet-range "$PROVIDER.0/24" --gateway "$PROVIDER.1" --no-dhcp \
		--allocation-pool "start=$PROVIDER.100,end=$PROVIDER.200" public >/dev/null
	! missing network guests || outside network create guests >/dev/null
	! missing subnet guests || outside subnet create --network guests --subnet-range "$INSIDE.0/24" guests >/dev/null
	if missing router guests; then
		outside router create guests >/dev/null
		outside router set --external-gateway public guests
		outside router add subnet guests guests
	fi
	if missing 'security group' guests; then
		outside security group create guests >/dev/null
		outside security group rule create --protocol icmp guests >/dev/null
		outside security group rule create --protocol tcp --dst-port 7 guests >/dev/null
	fi
	# The scheduler maps new hosts every half minute.
	until [[ -n $(outside hypervisor list -f value -c ID) ]]; do
		((SECONDS < patience)) || die "no hypervisor is in the list: $(outside compute service list -f value)"
		sleep 2
	done
	say "the hypervisor is $(outside hypervisor list -f value | paste -sd ' '); guests run on $(kubectl exec daemonset/libvirt -- cat /run/libvirt/ferrostack-kind), packets in $(kubectl exec daemonset/openvswitch -- ovs-vsctl get Open_vSwitch . external_ids:ovn-bridge-datapath-type)"
	stage "image, flavor, networks"
}

# create NAME IMAGE USER-DATA
create() {
	is_there server "$1" && return
	printf '%s\n' "$3" >"$work/user"
	outside server create --flavor guest --image "$2" --network guests --security-group guests --user-data "$work/user" "$1" >/dev/null
}

inner() { outside server show "$1" -f json | jq -r '[.addresses.guests[] | select(startswith("'"$INSIDE"'"))][0]'; }

# A server becomes ACTIVE, and its guest has an address, metadata and user data.
check_boot() {
	local line uuid began=${EPOCHREALTIME/./}
	create one guest "hello from the user"
	await_status one ACTIVE
	stage "a server is ACTIVE"
	line=$(await_line one "$PATIENCE" '^GUEST address ')
	say "the guest says: $line; $(since "$began") s after the request"
	uuid=$(outside server show one -f value -c id)
	line=$(await_line one 120 '^GUEST metadata ')
	[[ $line == *"$uuid"* ]] || die "the metadata are not those of $uuid: $line"
	line=$(await_line one 60 '^GUEST user ')
	[[ $line == 'GUEST user hello from the user' ]] || die "the user data are: $line"
	await_line one 60 '^GUEST done' >/dev/null
	stage "address, metadata and user data"
}

# Two guests talk TCP on the open port, and on no other.
check_peers() {
	local address
	address=$(inner one)
	create two guest "peer $address"
	await_status two ACTIVE
	await_line two "$PATIENCE" '^GUEST done' >/dev/null
	console two >"$work/two"
	grep -q "^GUEST peer $address port 7 answers" "$work/two" || die "the open port does not answer: $(<"$work/two")"
	grep -q "^GUEST peer $address port 8 is closed" "$work/two" || die "the closed port is open: $(<"$work/two")"
	grep -q "^GUEST peer $address returned 512 KiB" "$work/two" || die "data are lost between guests: $(<"$work/two")"
	stage "two guests, one port open, one closed"
}

# echoes ADDRESS PORT: whether the guest sends back what the node sends.
echoes() { [[ $(on_node sh -c "echo hello | busybox nc -w 5 $1 $2" 2>/dev/null) == hello ]]; }

# A floating IP answers from the node.
check_floating() {
	local patience=$((SECONDS + 60))
	floating=$(outside floating ip list -f value -c 'Floating IP Address' | head -n 1)
	if [[ ! $floating ]]; then
		floating=$(outside floating ip create public -f value -c floating_ip_address)
		outside server add floating ip one "$floating"
	fi
	until on_node ping -c 1 -W 2 "$floating" >/dev/null 2>&1; do
		((SECONDS < patience)) || die "the floating IP $floating does not answer"
		sleep 1
	done
	echoes "$floating" 7 || die "the open port does not answer at the floating IP"
	! echoes "$floating" 8 || die "the closed port answers at the floating IP"
	stage "a floating IP answers"
}

# Stopped and started, it has its disk and its address.
check_stop() {
	outside server stop one
	await_status one SHUTOFF
	outside server start one
	await_status one ACTIVE
	await_line one "$PATIENCE" '^GUEST boots [2-9]' >/dev/null
	answers "after its start"
	stage "stopped, started"
}

# The console of a guest is reached by the edge: the proxy passes on what QEMU says first.
check_console() {
	local url
	url=$(outside console url show --novnc one -f value -c url)
	[[ $url == "https://$public:6080/"*path=* ]] || die "the console is at $url"
	outside_socket "${url##*%3D}" >"$work/console" 2>/dev/null || true
	grep -aq '^HTTP/1.1 101 ' "$work/console" && grep -aq 'RFB 003\.' "$work/console" || die "the console answers $(head -c 300 "$work/console" | tr -c '[:print:]\n' .)"
	outside_socket "no-token-of-a-console" >"$work/console" 2>/dev/null || true
	! grep -aq 'RFB 003\.' "$work/console" || die "there is a console without a token"
	stage "a console"
}

# outside_socket TOKEN: what the proxy of consoles answers to a WebSocket with this token, within ten seconds.
outside_socket() {
	curl -sS --include --no-buffer --http1.1 --max-time 10 --cacert "$authority" -H 'Connection: Upgrade' -H 'Upgrade: websocket' \
		-H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' -H "Origin: https://$public:6080" \
		"https://$public:6080/?token=$1"
}

# Of another flavor, it has its disk and more memory.
check_resize() {
	local before domain
	before=$(boots one)
	is_there flavor larger || outside flavor create --ram 224 --disk 1 --vcpus 1 larger >/dev/null
	outside server resize --flavor larger one
	await_status one VERIFY_RESIZE
	outside server resize confirm one
	await_status one ACTIVE
	await_line one "$PATIENCE" "^GUEST boots $((before + 1))\$" >/dev/null
	domain=$(outside server show one -f value -c OS-EXT-SRV-ATTR:instance_name)
	[[ $(kubectl exec daemonset/libvirt -- virsh dominfo "$domain" | awk '/^Max memory/ {print $3}') == 229376 ]] || die "$domain has no more memory"
	answers "after it was resized"
	stage "resized"
}

# Built again, its disk is that of the image, and its address the same.
check_rebuild() {
	outside server rebuild --image guest one >/dev/null
	await_status one ACTIVE
	await_line one "$PATIENCE" '^GUEST boots 1$' >/dev/null
	answers "after it was built again"
	stage "built again"
}

# boots SERVER: how often its disk was booted.
boots() { console "$1" | sed -n 's/^GUEST boots //p' | tail -n 1; }

# answers WHEN: the guest answers at its floating IP.
answers() {
	local patience=$((SECONDS + PATIENCE))
	until echoes "$floating" 7; do
		((SECONDS < patience)) || die "$1 the floating IP does not answer"
		sleep 1
	done
}

# A server from a snapshot begins with the disk of the first.
check_snapshot() {
	local before
	before=$(boots one)
	is_there image taken || outside server image create --name taken --wait one >/dev/null
	create three taken "from a snapshot"
	await_status three ACTIVE
	await_line three "$PATIENCE" "^GUEST boots $((before + 1))\$" >/dev/null
	stage "a server from a snapshot"
}

qemus() { on_node pgrep -f '^/usr/bin/qemu-system-x86_64 -name' | sort | paste -sd ' '; }

# check_ends: each Pod beside the guests ends, under a ping of ten a second. No guest ends with it.
check_ends() {
	local program before pod gap lost end
	before=$(qemus)
	[[ $before ]] || die "no QEMU runs"
	for program in libvirt nova-compute neutron-ovn-agent ovn-controller openvswitch-db openvswitch; do
		on_node sh -c 'echo $$ >/run/ferrostack-ping && exec ping -D -n -i 0.1 -W 1 "$0"' "$floating" >"$work/ping" 2>&1 &
		pod=$(kubectl get pods -l "app.kubernetes.io/name=$program" -o 'jsonpath={.items[0].metadata.name}')
		sleep 2
		kubectl delete pod "$pod" --wait=true >/dev/null
		kubectl rollout status "daemonset/$program" --timeout="${PATIENCE}s" >/dev/null 2>&1 ||
			kubectl wait pod -l "app.kubernetes.io/name=$program" --for=condition=Ready --timeout="${PATIENCE}s" >/dev/null
		sleep 5
		end=$EPOCHREALTIME
		on_node sh -c 'kill -INT "$(cat /run/ferrostack-ping)" && rm /run/ferrostack-ping'
		wait %% 2>/dev/null || true
		gap=$(awk -v end="$end" 'function silent(at) { if (last && at - last > gap) gap = at - last }
			/bytes from/ { at = substr($1, 2) + 0; silent(at); last = at } END { silent(end); printf "%.1f", gap }' "$work/ping")
		lost=$(sed -n 's/.* \([0-9.]*% packet loss\).*/\1/p' "$work/ping")
		printf '  %-32s longest silence %5s s, %s\n' "$program" "$gap" "$lost"
		[[ $(qemus) == "$before" ]] || die "the guests were $before, and are $(qemus) after the end of $program"
	done
	echoes "$floating" 7 || die "the guest does not answer after the ends of Pods"
	# The new libvirtd and nova-compute have the guests.
	[[ $(kubectl exec daemonset/libvirt -- virsh -q list --state-running --name | grep -c .) == $(wc -w <<<"$before") ]] || die "libvirt does not know its guests"
	outside server reboot --hard one
	await_status one ACTIVE
	stage "Pods ended in turn"
}

# Deleted, nothing is left on the node.
check_nothing_left() {
	local name left patience=$((SECONDS + 60))
	for name in one two three; do
		! is_there server "$name" || outside server delete --wait "$name"
	done
	outside floating ip delete "$floating"
	until left=$(qemus; kubectl exec daemonset/openvswitch -- ovs-vsctl list-ports br-int | grep '^tap' || true
		kubectl exec daemonset/nova-compute -- sh -c 'ls /var/lib/nova/instances | grep -E "^[0-9a-f]{8}-" || true'
		kubectl exec daemonset/libvirt -- virsh -q list --all --name) && [[ -z ${left//[[:space:]]/} ]]; do
		((SECONDS < patience)) || die "after the servers there are: ${left//$'\n'/ }"
		sleep 2
	done
	stage "deleted, nothing left"
}

# refused PROGRAM CHANGE WORDS: with this change (a filter of jq) to the cloud, the next Pod of the program ends with these
# words, and `why` has them with the name of the node. Not before: Pods beside guests are replaced when they are deleted.
refused() {
	local before template pod said patience=$((SECONDS + PATIENCE))
	template="jsonpath={.spec.template}"
	before=$(kubectl get daemonset "$1" -o "$template")
	jq "$2" "$work/cloud.yaml" >"$work/refused.yaml"
	(cd "$root" && exec "$binary" openstack up -f "$work/refused.yaml" --on this-machine >"$work/refused" 2>&1) &
	until [[ $(kubectl get daemonset "$1" -o "$template") != "$before" ]]; do
		((SECONDS < patience)) || die "$2 has not changed $1: $(tail -n 3 "$work/refused")"
		sleep 1
	done
	pod=$(kubectl get pods -l "app.kubernetes.io/name=$1" -o 'jsonpath={.items[0].metadata.name}')
	kubectl delete pod "$pod" --wait=true >/dev/null
	until said=$("$binary" openstack why --kubeconfig "$KUBECONFIG" 2>&1 || true) && [[ $said == *"$3"* ]]; do
		((SECONDS < patience)) || die "'$3' is not in: $said"
		sleep 2
	done
	kill %% && wait %% || true
	[[ $said == *node-1* ]] || die "no node is named in: $said"
	say "refused: $(grep -oE "(network|compute)\.[a-z].*" <<<"$said" | head -n 1)"
}

# What a node cannot is refused by its Pods, in words. As the cloud was, they are ready again.
check_refusals() {
	refused openvswitch '.network.physical[0].interface = "none0"' 'network.physical public: node-1 has no interface none0; it has '
	refused openvswitch '.network.physical[0].interface = "eth0"' 'network.physical public: eth0 of node-1 carries an address of the node'
	refused openvswitch '.network.datapath = "System"' 'network.datapath: System: the kernel of node-1 has no module openvswitch'
	mended openvswitch
	refused nova-compute '.compute.libvirt.cpuMode = "HostPassthrough"' 'compute.libvirt.cpuMode: HostPassthrough needs KVM'
	mended nova-compute
	stage "what a node cannot is refused"
}

# mended PROGRAM: the cloud as it was, in which the Pod of the program is ready after its deletion.
mended() {
	local before template="jsonpath={.spec.template}" patience=$((SECONDS + PATIENCE))
	before=$(kubectl get daemonset "$1" -o "$template")
	(cd "$root" && exec "$binary" openstack up -f "$work/cloud.yaml" --on this-machine --exit-when-ready --timeout "${PATIENCE}s" >"$work/mended" 2>&1) &
	until [[ $(kubectl get daemonset "$1" -o "$template") != "$before" ]]; do
		((SECONDS < patience)) || die "$1 has not changed: $(tail -n 3 "$work/mended")"
		sleep 1
	done
	kubectl delete pod -l "app.kubernetes.io/name=$1" --wait=true >/dev/null
	wait %% || die "openstack up failed: $(tail -n 3 "$work/mended")"
}
