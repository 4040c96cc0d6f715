# The steps of tests/nodes/end-to-end that change a running cluster: machines that are killed, another version.

# server_of MACHINE: the id of its server.
server_of() { management get machine "$1" -o 'jsonpath={.spec.providerID}' | sed 's|.*/||'; }

# kill_machine MACHINE: kills the process group of its runner, as a power cut would.
kill_machine() {
	local server
	server=$(server_of "$1")
	[[ $server ]] || die "Machine $1 has no server"
	kill -KILL -- "-$(jq .pid "$state/data/machines/$server/runner.json")"
}

# says MACHINE WORDS: the Ready condition of its OpenStackMachine contains the words.
says() {
	management get openstackmachine "$1" -o 'jsonpath={.status.conditions[?(@.type=="Ready")].message}' | tee "$run/condition"
	grep -q "$2" "$run/condition"
}

node_is_lost() { "${kubectl[@]}" wait --for=condition=Ready=Unknown "node/$1" --timeout=1s; }

# replaced MACHINE: it is gone with its Node, and there are as many machines and ready Nodes as before.
replaced() {
	local left
	left=$(management get machine "$1" --ignore-not-found -o name) && [[ -z $left ]] || return 1
	left=$("${kubectl[@]}" get node "$1" --ignore-not-found -o name) && [[ -z $left ]] || return 1
	machines_are "$((control_plane + workers))" || return 1
	nodes_are_initialised "$((control_plane + workers))" || return 1
	nodes_ready "$((control_plane + workers))"
}

machine_with() { management get machines -l "$1" -o 'jsonpath={.items[0].metadata.name}'; }

# leader: the Machine of etcd's leader.
leader() {
	local directory pki=/etc/kubernetes/pki/etcd status
	for directory in "$state"/data/machines/*/disk; do
		[[ -s $directory/first && -e $directory/upper$pki/server.crt ]] || continue
		status=$(on "$directory" curl -sS --max-time 5 --cacert $pki/ca.crt --cert $pki/server.crt --key $pki/server.key -d '{}' \
			https://127.0.0.1:2379/v3/maintenance/status) || continue
		if jq -e '.leader == .header.member_id' <<<"$status" >/dev/null; then
			management get machines -o json | jq -r --arg server "$(basename "${directory%/disk}")" \
				'.items[] | select(.spec.providerID // "" | endswith($server)) | .metadata.name'
			return
		fi
	done
	return 1
}

# health_checks: replace machines whose server does not run or whose bootstrap failed, and those whose Node is lost.
health_checks() {
	jq -n --argjson kinds '{"control-plane": {"matchExpressions": [{"key": "cluster.x-k8s.io/control-plane", "operator": "Exists"}]},
		"workers": {"matchLabels": {"cluster.x-k8s.io/deployment-name": "real-md-0"}}}' '{apiVersion: "v1", kind: "List", items: [$kinds | to_entries[] | {
		apiVersion: "cluster.x-k8s.io/v1beta2", kind: "MachineHealthCheck", metadata: {name: .key, namespace: "default"}, spec: {
			clusterName: "real", selector: .value, checks: {nodeStartupTimeoutSeconds: 600,
			unhealthyMachineConditions: [{type: "InfrastructureReady", status: "False", timeoutSeconds: 60}],
			unhealthyNodeConditions: [{type: "Ready", status: "Unknown", timeoutSeconds: 60}]}}}]}' | management apply -f -
}

kill_and_replace() {
	local victim
	victim=$(machine_with 'cluster.x-k8s.io/deployment-name')
	kill_machine "$victim"
	step "a killed worker: its server is SHUTOFF" 60 says "$victim" 'is SHUTOFF'
	step "its Node is lost" 120 node_is_lost "$victim"
	step "the health check replaces it" 400 replaced "$victim"
	step "two replicas run" 120 "${kubectl[@]}" rollout status deployment/web --timeout=1s
	if ((control_plane < 3)); then
		say "no control plane machine is killed: of $control_plane none can be spared"
		return
	fi
	victim=$(leader) || die "etcd has no leader"
	kill_machine "$victim"
	step "a killed control plane machine, with etcd's leader: SHUTOFF" 60 says "$victim" 'is SHUTOFF'
	step "the API server answers without it" 60 "${kubectl[@]}" get --raw /readyz
	step "the health check replaces it" 600 replaced "$victim"
	step "etcd has $control_plane healthy voting members, none of them dead" 120 etcd_members "$control_plane"
}

# versions: the next patch version, and another tag of etcd.
versions() {
	local kubeadm=$root/target/tools/kubeadm release tag
	release=$("$kubeadm" version -o short)
	next=${release%.*}.$((${release##*.} + 1))
	tag=$("$kubeadm" config images list --kubernetes-version "$release" 2>/dev/null | sed -n 's|.*/etcd:||p')
	next_etcd=${tag%-*}-$((${tag##*-} + 1))
}

# another_version: the root file system of machines of the next version.
another_version() {
	versions
	"$here/image" --version "$next" --etcd "$next_etcd" >/dev/null
}

# writer: creates a ConfigMap each 200 ms through the floating IP, each with a new connection, and writes down when it
# was acknowledged. One whose creation fails is tried again; if it exists then, it was created.
writer() {
	local number=0 code body key server
	for key in certificate-authority-data client-certificate-data client-key-data; do
		sed -n "s/^ *$key: //p" "$run/kubeconfig" | tr -d '"' | base64 -d >"$run/writer-$key"
	done
	chmod 600 "$run/writer-client-key-data"
	server=$(sed -n 's/^ *server: //p' "$run/kubeconfig" | tr -d '"')
	: >"$run/written"
	while [[ ! -e $run/stop-writing ]]; do
		body="{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"write-$number\",\"labels\":{\"of\":\"writer\"}}}"
		code=$(curl -s -o /dev/null -w '%{http_code}' --max-time 3 --cacert "$run/writer-certificate-authority-data" --cert "$run/writer-client-certificate-data" \
			--key "$run/writer-client-key-data" -H 'Content-Type: application/json' -d "$body" "$server/api/v1/namespaces/default/configmaps") || true
		if [[ $code == 201 || $code == 409 ]]; then
			echo "$EPOCHREALTIME write-$number" >>"$run/written"
			number=$((number + 1))
		else
			echo "$EPOCHREALTIME write-$number: $code" >>"$run/refused"
		fi
		sleep 0.2
	done
}

# writes: no acknowledged write is lost, and there was none for at most ten seconds.
writes() {
	local lost
	"${kubectl[@]}" get configmaps -l of=writer -o name | sed 's|.*/||' | sort >"$run/kept"
	lost=$(cut -d' ' -f2 "$run/written" | sort | comm -23 - "$run/kept" | wc -l)
	awk -v lost="$lost" -v refused="$(wc -l <"$run/refused")" '
		NR > 1 && $1 - last > gap { gap = $1 - last; after = $2 }
		{ last = $1 }
		END {
			printf "%d writes, %d lost; %d attempts failed; the longest time without a write %.1f s, before %s\n", NR, lost, refused, gap, after
			exit !(NR > 10 && lost == 0 && gap <= 10)
		}' "$run/written"
}

# cloud_request USER SERVICE PATH ARGUMENTS…: a request to the simulated cloud as a user, whose project has the same name.
cloud_request() {
	local user=$1 service=$2 path=$3 clouds=$state/data/clouds.yaml url password token
	shift 3
	url=$(sed -n 's/^ *auth_url: //p' "$clouds" | head -n 1)
	password=$(sed -n "/username: $user\$/,/project_name/s/^ *password: //p" "$clouds" | head -n 1)
	jq -n --arg user "$user" --arg password "$password" '{auth: {
		identity: {methods: ["password"], password: {user: {name: $user, domain: {id: "default"}, password: $password}}},
		scope: {project: {name: $user, domain: {id: "default"}}}}}' |
		curl -sS -f -D "$run/token" -o "$run/catalog" -H 'Content-Type: application/json' -d @- "$url/auth/tokens" || return 1
	token=$(sed -n 's/^[Xx]-[Ss]ubject-[Tt]oken: *//p' "$run/token" | tr -d '\r\n')
	url=$(jq -er --arg type "$service" '.token.catalog[] | select(.type == $type) | .endpoints[] | select(.interface == "public") | .url' "$run/catalog") || return 1
	curl -sS -f -H "X-Auth-Token: $token" "$@" "$url$path"
}

# another_image NAME: a further image in the cloud's Glance. Its content is nothing: the runner has its own.
another_image() {
	local id
	id=$(cloud_request demo image /v2/images -H 'Content-Type: application/json' -d "{\"name\": \"$1\", \"disk_format\": \"qcow2\", \"container_format\": \"bare\"}" |
		jq -er .id) || return 1
	cloud_request demo image "/v2/images/$id/file" -X PUT -H 'Content-Type: application/octet-stream' --data-binary nothing
}

# roll_out: new templates with the other image, and the other version in both roll-outs. etcd gets another tag.
roll_out() {
	local image=ubuntu-2404-kube-$next name
	another_image "$image" || return 1
	for name in real-control-plane real-md-0; do
		management get openstackmachinetemplate "$name" -o json | jq --arg image "$image" '{apiVersion, kind, spec,
			metadata: {name: (.metadata.name + "-next"), namespace: .metadata.namespace}} | .spec.template.spec.image = {filter: {name: $image}}' |
			management apply -f - || return 1
	done
	management patch kubeadmcontrolplane real-control-plane --type=merge -p "{\"spec\": {\"version\": \"$next\",
		\"machineTemplate\": {\"spec\": {\"infrastructureRef\": {\"name\": \"real-control-plane-next\"}}},
		\"kubeadmConfigSpec\": {\"clusterConfiguration\": {\"etcd\": {\"local\": {\"imageTag\": \"$next_etcd\"}}}}}}" || return 1
	management patch machinedeployment real-md-0 --type=merge -p "{\"spec\": {\"template\": {\"spec\": {\"version\": \"$next\",
		\"infrastructureRef\": {\"name\": \"real-md-0-next\"}}}}}"
}

# control_plane_upgraded: all control plane machines have the new version and the new etcd; none is left of the old ones.
control_plane_upgraded() {
	[[ $(management get kubeadmcontrolplane real-control-plane -o 'jsonpath={.status.version} {.status.replicas} {.status.upToDateReplicas} {.status.readyReplicas}') == "$next $control_plane $control_plane $control_plane" ]] || return 1
	[[ $("${kubectl[@]}" -n kube-system get pods -l component=etcd -o 'jsonpath={range .items[*]}{.spec.containers[0].image}{"\n"}{end}' | sort | uniq -c | xargs) == "$control_plane registry.k8s.io/etcd:$next_etcd" ]] || return 1
	etcd_members "$control_plane"
}

# budget_in_the_way: a Machine that is being drained names the budget.
budget_in_the_way() {
	management get machines -o 'jsonpath={range .items[*]}{.status.conditions[?(@.type=="Deleting")].message}{"\n"}{end}' | grep 'disruption budget'
}

# upgraded: every Node, static pod and kube-proxy has the new version.
upgraded() {
	machines_are "$((control_plane + workers))" || return 1
	nodes_ready "$((control_plane + workers))" || return 1
	[[ $("${kubectl[@]}" get nodes -o 'jsonpath={range .items[*]}{.status.nodeInfo.kubeletVersion}{"\n"}{end}' | sort | uniq -c | xargs) == "$((control_plane + workers)) $next" ]] || return 1
	"${kubectl[@]}" -n kube-system get pods -o 'jsonpath={range .items[*]}{.spec.containers[0].image}{" "}{.status.phase}{"\n"}{end}' |
		grep -E '/kube-[a-z-]+:' | sort | uniq -c | tee "$run/images"
	[[ $(awk '{ print $2, $3 }' "$run/images" | grep -c ":$next Running$") == 4 && $(wc -l <"$run/images") == 4 ]] || return 1
	"${kubectl[@]}" -n kube-system rollout status daemonset/kube-proxy --timeout=1s
}

upgrade() {
	: >"$run/refused"
	rm -f "$run/stop-writing"
	writer 2>"$run/writer.log" &
	local writer=$!
	# It forbids every eviction at first.
	"${kubectl[@]}" create poddisruptionbudget web --selector=app=web --min-available=2 >/dev/null
	roll_out >"$run/step" 2>&1 || { cat "$run/step" >&2; die "the roll-out cannot be asked for"; }
	step "the control plane and etcd have $next" 900 control_plane_upgraded
	step "a worker's drain is refused by the budget" 300 budget_in_the_way
	"${kubectl[@]}" patch poddisruptionbudget web --type=merge -p '{"spec": {"minAvailable": 1}}' >/dev/null
	step "Nodes, static pods and kube-proxy have $next" 400 upgraded
	step "two replicas run" 120 "${kubectl[@]}" rollout status deployment/web --timeout=1s
	: >"$run/stop-writing"
	wait "$writer" || true
	writes >"$run/writes" || { cat "$run/writes" "$run/refused" >&2; die "writes were lost, or could not be made for too long"; }
	cat "$run/writes"
	"${kubectl[@]}" delete poddisruptionbudget web >/dev/null
}
