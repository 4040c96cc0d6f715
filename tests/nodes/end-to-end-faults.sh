# The steps of tests/nodes/end-to-end with wrong input, and what the user sees of each.

# wrong_bootstrap_data: workers of wrong.yaml, and Machines with user data of their own.
wrong_bootstrap_data() {
	local version name
	version=$(management get kubeadmcontrolplane real-control-plane -o 'jsonpath={.spec.version}')
	sed "s/VERSION/$version/" "$here/wrong.yaml" | management apply -f - >/dev/null
	echo "no cloud-config: a secret" >"$run/prose"
	{ echo "#cloud-config"; head -c 66000 /dev/zero | tr '\0' '#'; } >"$run/over-64-kib"
	for name in prose over-64-kib; do
		stand_alone "$name" "$run/$name" >"$run/step" 2>&1 || { cat "$run/step" >&2; die "the Machine $name cannot be created"; }
	done
	step "a preflight error is in a condition" 120 condition preflight '\[ERROR FileAvailable--etc-kubernetes-kubelet.conf\]'
	step "an endpoint that cannot be reached is in one" 120 condition unreachable '203.0.113.250:6443'
	step "a wrong CA hash is in one" 120 condition hash 'none of the public keys'
	step "a missing kubeadm is in one" 120 condition bare 'kubeadm: not found'
	step "user data that are no cloud-config are in one" 120 machine_says prose 'Unhandled non-multipart (text/x-not-multipart) userdata'
	! grep secret "$run/condition" || die "the condition has the user data"
	step "user data over 64 KiB are in one" 60 machine_says over-64-kib 'bytes in base64, and Nova takes 65535'
	cloud_request demo compute /servers | jq -e 'all(.servers[]; .name != "over-64-kib")' >/dev/null || die "there is a server with over 64 KiB of user data"
	for name in preflight unreachable hash bare; do tell "$name" -l "cluster.x-k8s.io/deployment-name=$name"; done
	for name in prose over-64-kib; do tell "$name" "$name"; done
	management delete machinedeployment preflight unreachable hash bare --wait=false >/dev/null
	management delete machine prose over-64-kib --wait=false >/dev/null
	step "machines that never were nodes are gone" 60 machines_are "$((control_plane + workers))"
}

# stand_alone NAME FILE: a Machine of no deployment, like a worker, with this bootstrap data.
stand_alone() {
	local name=$1 worker
	worker=$(machine_with 'cluster.x-k8s.io/deployment-name=real-md-0')
	management create secret generic "$name" --type=cluster.x-k8s.io/secret --from-file="value=$2" || return 1
	management get "openstackmachine/$worker" "machine/$worker" -o json | jq --arg name "$name" '.items[] |= ({apiVersion, kind, spec,
		metadata: {name: $name, namespace: .metadata.namespace, labels: {"cluster.x-k8s.io/cluster-name": "real"}}}
		| del(.spec.providerID) | if .kind == "Machine" then .spec.bootstrap = {dataSecretName: $name} | .spec.infrastructureRef.name = $name else . end)' |
		management apply -f -
}

# tell WHAT NAME…|SELECTOR…: prints the reason and message of the Ready condition of an OpenStackMachine.
tell() {
	local what=$1
	shift
	management get openstackmachines "$@" -o json | jq -r --arg what "$what" '(.items // [.])[].status.conditions[]? | select(.type == "Ready") | "\($what): \(.reason): \(.message)"'
}

# machine_that_never_joins: a template of control plane machines that is wrong, and is corrected.
machine_that_never_joins() {
	if ((control_plane < 3)); then image_with_a_typo; else dead_member_beside_it; fi
}

# image_with_a_typo: no machine can be made of it. The machine that waits for it is no member of etcd, and holds nothing up.
image_with_a_typo() {
	local waiting
	another_image corrected >"$run/step" 2>&1 || { cat "$run/step" >&2; die "there is no further image"; }
	control_plane_of typo corrected-typo >"$run/step" 2>&1 || { cat "$run/step" >&2; die "the wrong template is refused"; }
	step "a machine waits for its image" 60 machine_says real-control-plane- 'corrected-typo'
	waiting=$(management get openstackmachines -o json | jq -r '.items[] | select(.spec.image.filter.name == "corrected-typo") | .metadata.name')
	control_plane_of corrected corrected >"$run/step" 2>&1 || { cat "$run/step" >&2; die "the template cannot be corrected"; }
	step "it goes once the template is corrected" 60 machine_is_gone "$waiting"
	step "the control plane has the corrected template" 400 scaled "$control_plane"
}

# dead_member_beside_it: a machine that never joins, and a member that dies meanwhile: etcd takes no new member until the
# dead one is removed, and nothing is in the way of that.
dead_member_beside_it() {
	local before victim waiting commands=.spec.kubeadmConfigSpec.preKubeadmCommands
	before=$(management get kubeadmcontrolplane real-control-plane -o json | jq -c "$commands // []")
	victim=$(machine_with cluster.x-k8s.io/control-plane)
	pre_kubeadm_commands '["rm /usr/bin/kubeadm"]'
	step "a machine cannot join" 180 machine_says real-control-plane- 'kubeadm: not found'
	waiting=$(management get openstackmachines -o json |
		jq -r '.items[] | select(any(.status.conditions[]?; .message | contains("kubeadm: not found"))) | .metadata.name')
	kill_machine "$victim"
	step "a member dies: its server is SHUTOFF" 60 says "$victim" 'is SHUTOFF'
	pre_kubeadm_commands "$(jq -c '. + ["true"]' <<<"$before")"
	step "the machine that cannot join goes" 300 machine_is_gone "$waiting"
	step "the dead one goes" 600 machine_is_gone "$victim"
	step "the control plane has the corrected template" 900 scaled "$control_plane"
}

# pre_kubeadm_commands LIST: of the control plane.
pre_kubeadm_commands() {
	management patch kubeadmcontrolplane real-control-plane --type=merge -p "{\"spec\": {\"kubeadmConfigSpec\": {\"preKubeadmCommands\": $1}}}" >/dev/null
}

# control_plane_of NAME IMAGE: the control plane's template is another one, with this image.
control_plane_of() {
	local template
	template=$(management get kubeadmcontrolplane real-control-plane -o 'jsonpath={.spec.machineTemplate.spec.infrastructureRef.name}') || return 1
	management get openstackmachinetemplate "$template" -o json | jq --arg name "$1" --arg image "$2" '{apiVersion, kind, spec,
		metadata: {name: $name, namespace: .metadata.namespace}} | .spec.template.spec.image = {filter: {name: $image}}' | management apply -f - || return 1
	management patch kubeadmcontrolplane real-control-plane --type=merge \
		-p "{\"spec\": {\"machineTemplate\": {\"spec\": {\"infrastructureRef\": {\"name\": \"$1\"}}}}}"
}

machine_is_gone() {
	local left
	left=$(management get machine "$1" --ignore-not-found -o name) && [[ -z $left ]]
}

# bad_input: what no machine can be made of. Nothing is left of it.
bad_input() {
	local memory
	memory=$(($(awk '/^MemTotal:/ {print int($2 / 1024)}' /proc/meminfo) + 1024))
	too_large "$memory" >"$run/step" 2>&1 || { cat "$run/step" >&2; die "the large flavor cannot be created"; }
	step "too much memory is in a condition" 120 condition large "has $memory MiB of memory, and this machine has"
	step "and the fault of its server, and on its console" 30 server_says large- "has $memory MiB of memory, and this machine has"
	management delete machinedeployment large --wait=false >/dev/null
	step "the machine without memory is gone" 60 machines_are "$((control_plane + workers))"
	few_watchers
	rm -f "$run/stop-asking"
	asker &
	local asker=$!
	overlapping >"$run/step" 2>&1 || { cat "$run/step" >&2; die "the cluster with the same subnet cannot be created"; }
	step "a subnet that overlaps is in a condition" 180 machine_says other-control-plane- 'overlaps one of another network'
	step "and the fault of its server, and on its console" 30 server_says other-control-plane- 'overlaps one of another network'
	step "both load balancers have the same fixed address" 10 same_address
	management delete cluster other --wait=false >/dev/null
	step "the cluster with the same subnet is gone" 120 nothing_of_other
	touch "$run/stop-asking"
	wait "$asker"
	answered
	second_up
	stage "a second up in the same namespace is refused"
	step "the first cluster is as it was" 60 cluster_ready
}

# few_watchers: the host allows hardly more inotify instances than the machines have. The limit is as before after the fault.
few_watchers() {
	local limit fault=0
	limit=$(</proc/sys/fs/inotify/max_user_instances)
	echo "#cloud-config" >"$run/few"
	echo "$(($({ find /proc/[0-9]*/fd -lname 'anon_inode:inotify' 2>/dev/null || true; } | wc -l) + 10))" >/proc/sys/fs/inotify/max_user_instances
	stand_alone few "$run/few" >"$run/step" 2>&1 || fault=1
	((fault)) || (step "too few inotify instances are in a condition" 60 machine_says few 'fs.inotify.max_user_instances=1024') || fault=1
	echo "$limit" >/proc/sys/fs/inotify/max_user_instances
	((fault == 0)) || { cat "$run/step" >&2; die "a machine without inotify instances does not say so"; }
	step "and the fault of its server, and on its console" 30 server_says few 'fs.inotify.max_user_instances=1024'
	management delete machine few --wait=false >/dev/null
	step "the machine without inotify instances is gone" 60 machines_are "$((control_plane + workers))"
}

# asker: asks the API server through its floating IP each 200 ms, with a new connection each time, and writes down whether
# it answered.
asker() {
	local server code
	server=$(sed -n 's/^ *server: //p' "$run/kubeconfig" | tr -d '"')
	: >"$run/asked"
	while [[ ! -e $run/stop-asking ]]; do
		code=$(curl -sk -o /dev/null -w '%{http_code}' --max-time 10 "$server/readyz") || true
		echo "$EPOCHREALTIME $code" >>"$run/asked"
		sleep 0.2
	done
}

# answered: it always did.
answered() {
	local all good
	all=$(wc -l <"$run/asked")
	good=$(grep -c ' 200$' "$run/asked") || true
	((all > 20 && all == good)) || die "the first cluster answered only $good of $all times while a second one had the same addresses: $(grep -v ' 200$' "$run/asked" | head -n 3 | xargs)"
	say "the first cluster answered all of $all times while a second one had the same addresses"
}

# same_address: the first cluster's load balancer and the second's have one fixed address, and two floating IPs.
same_address() {
	cloud_request demo load-balancer /v2.0/lbaas/loadbalancers | jq -e '[.loadbalancers[].vip_address] | length == 2 and (unique | length) == 1'
}

# too_large MIB: a worker of a flavor with so much memory.
too_large() {
	local project version
	cloud_request admin compute /flavors -H 'Content-Type: application/json' \
		-d "{\"flavor\": {\"name\": \"large\", \"ram\": $1, \"vcpus\": 1, \"disk\": 20}}" || return 1
	project=$(cloud_request demo compute /limits -o /dev/null && jq -er .token.project.id "$run/catalog") || return 1
	cloud_request admin compute "/os-quota-sets/$project" -X PUT -H 'Content-Type: application/json' -d '{"quota_set": {"ram": -1}}' || return 1
	version=$(management get kubeadmcontrolplane real-control-plane -o 'jsonpath={.spec.version}')
	management get openstackmachinetemplate real-md-0 -o json | jq '{apiVersion, kind, spec, metadata: {name: "large", namespace: .metadata.namespace}}
		| .spec.template.spec.flavor = {filter: {name: "large"}}' | management apply -f - || return 1
	management get machinedeployment real-md-0 -o json | jq --arg version "$version" '{apiVersion, kind, metadata: {name: "large", namespace: .metadata.namespace},
		spec: (.spec | del(.selector) | .replicas = 1)} | del(.spec.template.metadata) | .spec.template.spec.infrastructureRef.name = "large"' | management apply -f -
}

# overlapping: a second cluster, like the first and so with the same subnet, of one control plane machine.
overlapping() {
	local kind template
	template=$(management get kubeadmcontrolplane real-control-plane -o 'jsonpath={.spec.machineTemplate.spec.infrastructureRef.name}') || return 1
	for kind in secret/real-cloud-config openstackcluster/real "openstackmachinetemplate/$template" kubeadmcontrolplane/real-control-plane cluster/real; do
		management get "$kind" -o json | jq 'del(.status, .spec.controlPlaneEndpoint, .spec.paused) | .metadata |= {name, namespace}' |
			sed 's/"real\b/"other/g' | jq 'if .kind == "KubeadmControlPlane" then .spec.replicas = 1 else . end' | management apply -f - || return 1
	done
}

# machine_says PREFIX WORDS: the Ready condition of an OpenStackMachine with such a name contains the words.
machine_says() {
	management get openstackmachines -o json | jq -r --arg prefix "$1" \
		'.items[] | select(.metadata.name | startswith($prefix)) | .status.conditions[]? | select(.type == "Ready") | .message' | tee "$run/condition"
	grep -q "$2" "$run/condition"
}

# server_says PREFIX WORDS: the server is in ERROR; its fault and its console contain the words.
server_says() {
	local server
	cloud_request demo compute /servers/detail | jq -e --arg prefix "$1" '.servers[] | select(.name | startswith($prefix))' >"$run/server" || return 1
	jq -e 'select(.status == "ERROR") | .fault.message' "$run/server" | grep -q "$2" || return 1
	server=$(jq -r .id "$run/server")
	cloud_request demo compute "/servers/$server/action" -H 'Content-Type: application/json' -d '{"os-getConsoleOutput": {}}' | grep -q "$2"
}

nothing_of_other() {
	local left
	left=$(management get clusters,machines,openstackclusters,openstackmachines -o name | grep other) || true
	[[ -z $left ]]
}

# second_up: another cloud in this namespace, whose metadata service would have the same address.
second_up() {
	if timeout 60 "$ferrostack" up --data-dir "$state/data-2" --cluster-name second --guest-runner "$here/machine" --metadata-address 169.254.169.254:80 \
		--external-network 203.0.113.0/24 >"$run/second" 2>&1; then die "a second up in the same namespace runs"; fi
	grep -q '169.254.169.254:80' "$run/second" || die "a second up fails with: $(<"$run/second")"
	if timeout 60 "$ferrostack" up --data-dir "$state/data" --cluster-name real >"$run/second" 2>&1; then die "a second up on the same data runs"; fi
	rm -rf "$state/data-2"
	head -n 3 "$run/second"
}
