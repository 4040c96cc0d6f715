# The steps of tests/nodes/end-to-end.

run=$state/run
kubectl=("$root/target/tools/kubectl" --kubeconfig "$run/kubeconfig" --request-timeout=10s)

say() { printf 'tests/nodes/end-to-end: %s\n' "$*"; }
die() {
	say "$*" >&2
	[[ ! -s ${run:-}/up.log ]] || tail -n 15 "$run/up.log" >&2
	exit 1
}

began=${EPOCHREALTIME/./}
last=$began
stage() {
	local now=${EPOCHREALTIME/./}
	printf '%-50s %7.1f s\n' "$1" "$(((now - last) / 1000))e-3"
	last=$now
	[[ -z ${FERROSTACK_IN_NAMESPACE:-} ]] || namespaces | LC_ALL=C comm -23 - "$run/namespaces-of-the-host" >>"$run/namespaces"
}

# namespaces: those that processes are in, of all processes that are seen from here.
namespaces() { lsns -n -r -o NS,TYPE | LC_ALL=C sort -u; }

# step WHAT SECONDS COMMAND…: waits until the command succeeds, and prints the time that it took. `set -e` has no effect
# in the condition of a loop, so functions have to return on failures explicitly.
step() {
	local what=$1 until=$((SECONDS + $2 * ${FERROSTACK_PATIENCE:-1}))
	shift 2
	until "$@" >"$run/step" 2>&1; do
		((SECONDS < until)) || {
			cat "$run/step" >&2
			{ consoles; pods; } >&2 || true
			die "$what: not within the time given"
		}
		sleep 0.5
	done
	stage "$what"
}

# consoles: the last lines on the consoles of the servers whose machines are no Nodes.
consoles() {
	local server
	management get machines -o json 2>/dev/null | jq -r '.items[] | select(.status.nodeRef == null) | .spec.providerID // empty | split("/") | last' | while read -r server; do
		echo "console of $server:"
		cloud_request demo compute "/servers/$server/action" -H 'Content-Type: application/json' -d '{"os-getConsoleOutput": {"length": 15}}' | jq -r .output
	done
}

# pods: those of the cluster that are not ready, and what the Job said.
pods() {
	"${kubectl[@]}" get pods -A -o wide --no-headers 2>/dev/null | awk '{ split($3, ready, "/") } ready[1] != ready[2]'
	"${kubectl[@]}" logs job/ask --all-containers --tail=20 2>/dev/null
}

# remains: the resources of machines on the host: cgroups, mounts, loop devices, bridges, namespaces.
remains() {
	find /sys/fs/cgroup -maxdepth 2 -type d \( -name 'machine-*' -o -path '/sys/fs/cgroup/unified/*' \) 2>/dev/null | sort
	grep -o " $state/[^ ]*" /proc/self/mountinfo | sort || true
	losetup -n -l -O NAME,BACK-FILE 2>/dev/null | grep "$state" || true
	ip -o link show type bridge 2>/dev/null || true
	namespaces | LC_ALL=C comm -12 - <(LC_ALL=C sort -u "$run/namespaces") | sed 's/^/namespace /'
}

before() {
	rm -rf "$run" "$state/data"
	mkdir -p "$run"
	namespaces >"$run/namespaces-of-the-host"
	: >"$run/namespaces"
	remains >"$run/before"
	watchers=$(</proc/sys/fs/inotify/max_user_instances)
	((watchers >= 1024)) || echo 1024 >/proc/sys/fs/inotify/max_user_instances
}

after() {
	local tries
	((watchers >= 1024)) || echo "$watchers" >/proc/sys/fs/inotify/max_user_instances
	for ((tries = 0; tries < 30; tries++)); do
		# Those of machines that were killed; other machines remove their cgroups.
		find /sys/fs/cgroup -depth -type d -path '*/machine-*' -newer "$run/before" -exec rmdir {} + 2>/dev/null || true
		remains >"$run/after"
		cmp -s "$run/before" "$run/after" && return
		sleep 0.5
	done
	diff "$run/before" "$run/after" >&2
	say "something was left on this machine" >&2
	status=1
}

# network: the network of the cloud's hosts: the metadata service's address, and the external network.
network() {
	ip link set lo up
	ip address add 169.254.169.254/32 dev lo
	ip route add local 203.0.113.0/24 dev lo
	# The name server of the template: here it refuses connections, so resolvers do not wait for a timeout.
	ip address add 9.9.9.9/32 dev lo
	echo 1 >/proc/sys/net/ipv4/ip_forward
}

cloud() {
	start_up --cluster-name real --control-plane-machine-count "$control_plane" --worker-machine-count "$workers" ${template:+--from "$template"}
}

# start_up OPTION…: `ferrostack up` with a cloud whose servers are machines.
start_up() {
	"$ferrostack" --log "${FERROSTACK_LOG:-warn}" up --data-dir "$state/data" --guest-runner "$here/machine" \
		--metadata-address 169.254.169.254:80 --external-network 203.0.113.0/24 --bootstrap-timeout 20s "$@" >"$run/up.log" 2>&1 &
	up=$!
}

# cloud_before: lists what the cloud holds while there is no cluster, which `up` creates later with the same data.
cloud_before() {
	local tries
	echo '{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "before"}}' >"$run/no-cluster.yaml"
	start_up --filename "$run/no-cluster.yaml"
	for ((tries = 0; ; tries++)); do
		! inventory >"$run/cloud-before" 2>"$run/step" || break
		((tries < 60 * ${FERROSTACK_PATIENCE:-1})) || { cat "$run/step" >&2; die "the cloud cannot be listed"; }
		sleep 0.5
	done
	stop_cloud
	last=${EPOCHREALTIME/./}
}

# inventory: what a project has in the cloud, one a line.
inventory() {
	local kind service path
	cloud_token demo || return 1
	while read -r kind service path; do
		cloud_send "$service" "$path" >"$run/listed" || return 1
		jq -er --arg kind "$kind" '(.[$kind] // error("no " + $kind))[] | .keypair // . | "\($kind) \(.id // .name) \(.name // .floating_ip_address // "")"' \
			"$run/listed" || [[ $(jq -c ".$kind" "$run/listed") == '[]' ]] || return 1
	done <<-KINDS | LC_ALL=C sort
		servers compute /servers
		server_groups compute /os-server-groups
		keypairs compute /os-keypairs
		volumes volumev3 /volumes
		snapshots volumev3 /snapshots
		networks network /v2.0/networks
		subnets network /v2.0/subnets
		ports network /v2.0/ports
		routers network /v2.0/routers
		trunks network /v2.0/trunks
		floatingips network /v2.0/floatingips
		security_groups network /v2.0/security-groups
		loadbalancers load-balancer /v2.0/lbaas/loadbalancers
		listeners load-balancer /v2.0/lbaas/listeners
		pools load-balancer /v2.0/lbaas/pools
		healthmonitors load-balancer /v2.0/lbaas/healthmonitors
		images image /v2/images
	KINDS
}

# cloud_as_before: the cloud holds what it held before the cluster, but for images that a roll-out uploaded.
cloud_as_before() {
	local id
	for id in $(cat "$run/own-images" 2>/dev/null); do
		cloud_request demo image "/v2/images/$id" -X DELETE || return 1
		sed -i "/$id/d" "$run/own-images"
	done
	inventory >"$run/cloud-after" || return 1
	diff "$run/cloud-before" "$run/cloud-after"
}

kubeconfig_works() {
	kill -0 "$up" || die "ferrostack ended"
	"$ferrostack" get kubeconfig real --data-dir "$state/data" >"$run/kubeconfig.new" || return 1
	mv "$run/kubeconfig.new" "$run/kubeconfig"
	"${kubectl[@]}" get --raw /readyz
}

nodes_are() { (($("${kubectl[@]}" get nodes -o name | wc -l) == $1)); }

nodes_ready() {
	nodes_are "$1" || return 1
	"${kubectl[@]}" wait --for=condition=Ready nodes --all --timeout=1s
}

# cloud_controller_manager: runs ours with the cloud's user on the workload cluster. Like a DaemonSet, it restarts the
# program when it exits, which it does when it loses its Lease, while members join etcd.
cloud_controller_manager() {
	OS_CLIENT_CONFIG_FILE=$state/data/clouds.yaml "$ferrostack" cloud-conf generate --cloud simulated >"$run/cloud.conf" || die "there is no cloud.conf"
	"$ferrostack" cloud-conf check "$run/cloud.conf" >"$run/ccm.log" 2>&1 || die "cloud.conf is wrong: $(<"$run/ccm.log")"
	while :; do
		"$ferrostack" cloud-controller-manager --cloud-config "$run/cloud.conf" --kubeconfig "$run/kubeconfig" &
		trap 'kill $!; wait; exit' TERM
		wait
		sleep 1
	done >>"$run/ccm.log" 2>&1 &
	ccm=$!
}

# nodes_are_initialised N: N nodes have the addresses and the id of their server, and not the taint of uninitialized
# nodes.
nodes_are_initialised() {
	"${kubectl[@]}" get nodes -o json >"$run/nodes" || return 1
	jq -e --argjson wanted "$1" '[.items[]
		| select(.spec.providerID | startswith("openstack:///"))
		| select(all(.spec.taints[]?; .key != "node.cloudprovider.kubernetes.io/uninitialized"))
		| select(any(.status.addresses[]?; .type == "InternalIP"))] | length == $wanted' "$run/nodes"
}

# load_balanced: the Service of type LoadBalancer responds at its address, through the cloud's load balancer and node
# ports.
load_balanced() {
	local address
	address=$("${kubectl[@]}" get service front -o 'jsonpath={.status.loadBalancer.ingress[0].ip}')
	[[ $address ]] && curl -sS --max-time 5 "http://$address/" | grep '^web-'
}

# load_balancer_gone: the Service is deleted, after its finalizer was removed with the load balancer.
load_balancer_gone() {
	local left
	left=$("${kubectl[@]}" get service front --ignore-not-found -o name) && [[ -z $left ]]
}

management() { "$root/target/tools/kubectl" --kubeconfig "$state/data/kubeconfig" "$@"; }

machines_are() { (($(management get machines -o name | wc -l) == $1)); }

# scaled N: there are N control plane machines, all of them ready nodes, and as many etcd members.
scaled() {
	[[ $(management get kubeadmcontrolplane real-control-plane -o 'jsonpath={.status.replicas} {.status.readyReplicas} {.status.upToDateReplicas}') == "$1 $1 $1" ]] || return 1
	nodes_are_initialised "$(($1 + workers))" || return 1
	nodes_ready "$(($1 + workers))" || return 1
	etcd_members "$1"
}

# condition NAME WORDS: the Ready condition of the OpenStackMachine of that MachineDeployment contains the words.
condition() {
	management get openstackmachines -l "cluster.x-k8s.io/deployment-name=$1" -o 'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].message}' | tee "$run/condition"
	grep -q "$2" "$run/condition"
}

cluster_ready() {
	management wait --for=condition=Available cluster/real --timeout=1s || return 1
	[[ $(management get machines -o 'jsonpath={range .items[*]}{.status.phase}{"\n"}{end}' | sort | uniq -c | xargs) == "$((control_plane + workers)) Running" ]]
}

# workload: a cluster does what it is for.
workload() {
	"${kubectl[@]}" apply -f "$here/workload.yaml" >/dev/null
	step "two replicas run" 90 "${kubectl[@]}" rollout status deployment/web --timeout=1s
	step "a Job resolves and reaches the Service" 90 "${kubectl[@]}" wait --for=condition=Complete job/ask --timeout=1s
	step "logs of pods through the floating IP" 10 logs
	step "a Service of type LoadBalancer answers" 60 load_balanced
	"${kubectl[@]}" delete service front --wait=false >/dev/null
	step "its load balancer is gone" 30 load_balancer_gone
}

logs() {
	[[ $("${kubectl[@]}" logs -l app=web --tail=1 | grep -c '^serving as web-') == 2 ]] || return 1
	"${kubectl[@]}" logs job/ask | grep -q '^answered$'
}

# on DIRECTORY COMMAND…: runs a command in a machine.
on() {
	local directory=$1
	shift
	nsenter -t "$(<"$directory/first")" -m -n -p -u -i "$@"
}

# etcd_members N: etcd lists N members, all started, none of them a learner, and all healthy.
etcd_members() {
	local directory pki=/etc/kubernetes/pki/etcd list
	for directory in "$state"/data/machines/*/disk; do
		[[ -e $directory/upper$pki/ca.key || -e $directory/upper$pki/server.crt ]] || continue
		[[ -s $directory/first ]] || continue
		list=$(on "$directory" curl -sS --max-time 5 --cacert $pki/ca.crt --cert $pki/server.crt --key $pki/server.key -d '{}' \
			https://127.0.0.1:2379/v3/cluster/member/list) || return 1
		jq -e --argjson wanted "$1" '(.members | length) == $wanted and all(.members[]; .name and (.isLearner | not))' <<<"$list" || return 1
		on "$directory" curl -sS --max-time 5 --cacert $pki/ca.crt --cert $pki/server.crt --key $pki/server.key https://127.0.0.1:2379/health | grep true || return 1
	done
	[[ -n ${list:-} ]]
}

# console SERVER: what the server has printed.
console() { cloud_request demo compute "/servers/$1/action" -H 'Content-Type: application/json' -d '{"os-getConsoleOutput": {}}' | jq -r .output; }

# first_line: how soon a machine prints cloud-init's first line after its server was asked for: one more server like a
# worker's, which only boots. Lines have the kernel's time since its boot; Nova gives the time of creation in whole seconds.
first_line() {
	local like network body began server line=
	like=$(cloud_request demo compute /servers/detail | jq -c '[.servers[] | select(.name | startswith("real-md-0-"))][0]') || return 1
	network=$(cloud_request demo compute "/servers/$(jq -r .id <<<"$like")/os-interface" | jq -r '.interfaceAttachments[0].net_id') || return 1
	body=$(jq --arg network "$network" '{server: {name: "first-line", imageRef: .image.id, flavorRef: .flavor.id,
		networks: [{uuid: $network}], user_data: ("#cloud-config\n{}\n" | @base64)}}' <<<"$like") || return 1
	began=$(($(awk '{print int($1 * 1000)}' /proc/uptime)))
	server=$(cloud_request demo compute /servers -H 'Content-Type: application/json' -d "$body" | jq -er .server.id) || return 1
	for ((tries = 0; tries < 60 && ${#line} == 0; tries++)); do
		sleep 0.5
		line=$(console "$server" | sed -n 's/^\[ *\([0-9.]*\)\] cloud-init.*/\1/p' | head -n 1) || true
	done
	cloud_request demo compute "/servers/$server" -X DELETE || return 1
	for ((tries = 0; tries < 60; tries++)); do
		cloud_request demo compute "/servers/$server" >/dev/null 2>&1 || break
		sleep 0.5
	done
	[[ $line ]] && awk -v line="$line" -v began="$began" 'BEGIN { printf "cloud-init'"'"'s first line %.1f s\n", line - began / 1000 }'
}

# figures: the memory of the machines, from the statistics of their cgroups, and how soon a machine speaks.
figures() {
	local at name
	for at in /sys/fs/cgroup/memory/machine-*; do
		[[ -e $at ]] || continue
		name=${at##*/machine-}
		awk -v name="$name" '/^total_rss / { printf "memory of %s (resident, without caches) %d MB\n", name, $2 / 1048576 }' "$at/memory.stat"
	done
	first_line || die "a server did not print cloud-init's first line"
}

delete_cluster() { "$ferrostack" delete cluster real --wait --timeout 150s --data-dir "$state/data"; }

nothing_in_the_cloud() { [[ -z $(ls -A "$state/data/machines" | grep -v '^lock$') ]]; }

stop_cloud() {
	kill "$up"
	wait "$up" || die "ferrostack ended with $?"
}

nothing_in_the_namespace() {
	local left
	left=$(ip -o link show | awk -F': ' '$2 != "lo" { print $2 }')
	[[ -z $left ]] || die "links were left: $left"
	left=$(ps -e -o pid=,comm= | awk -v own=$$ '$1 != own && $2 !~ /^(ps|awk|bash|end-to-end)$/')
	[[ -z $left ]] || die "processes were left: $left"
}
