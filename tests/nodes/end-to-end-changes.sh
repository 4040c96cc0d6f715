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

# removals: every removal of a member that the logs of etcd's members tell: when, the member's id and URL, which member led
# then, which one had led before, and since when it no longer did. A member that joins repeats earlier removals, later.
removals() {
	local directory
	for directory in "$state"/data/machines/*/disk; do
		[[ -s $directory/first ]] || continue
		{ cat "$directory"/pods/kube-system_etcd-*/etcd/*.log 2>/dev/null || true; } | jq -nrR '
			def leads: (.msg // "") | capture("(elected leader|changed leader from [0-9a-f]+ to) (?<id>[0-9a-f]+) at term").id;
			reduce (inputs | sub("^[^{]*"; "") | fromjson?) as $line ({removed: [], urls: {}};
				if $line["added-peer-id"] then .urls[$line["added-peer-id"]] = $line["added-peer-peer-urls"][0]
				elif $line["recovered-remote-peer-id"] then .urls[$line["recovered-remote-peer-id"]] = $line["recovered-remote-peer-urls"][0]
				elif $line.msg == "removed member" then
					.removed += [{at: $line.ts, id: $line["removed-remote-peer-id"], url: $line["removed-remote-peer-urls"][0], leader, before, since}]
				elif ($line.msg // "") | test("^raft.node: .* lost leader") then .leader = null
				else [$line | leads][0] as $new
					| if $new == null or $new == .leader then . elif $new == .last then .leader = $new
					else .before = .last | .leader = $new | .last = $new | .since = $line.ts end
				end)
			| .urls as $urls | .removed[]
			| [.at, .id, .url, .leader // "none", $urls[.leader // ""] // .leader // "-", .before // "-", .since // "-"] | @tsv'
	done | LC_ALL=C sort | awk -F'\t' '!seen[$2]++'
}

# leadership_was_moved N: at least N members were removed since the last call, and none of them led when it was.
leadership_was_moved() {
	local at id url leader of_leader before since count=0
	touch "$run/removals"
	while IFS=$'\t' read -r at id url leader of_leader before since; do
		! grep -q "^$id " "$run/removals" || continue
		echo "$id $at" >>"$run/removals"
		[[ $leader != none && $leader != "$id" ]] || die "etcd's member $url was removed while it led, or none did"
		if [[ $before == "$id" ]]; then
			say "etcd's member $url was removed at $at; it led until $since, and $of_leader since then"
		else
			say "etcd's member $url was removed at $at; $of_leader led"
		fi
		count=$((count + 1))
	done < <(removals)
	((count >= $1)) || die "$1 members of etcd should have been removed, and their logs tell of $count"
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
	leadership_was_moved 1
}

# versions: the next patch version, and other tags of etcd and of CoreDNS.
versions() {
	local kubeadm=$root/target/tools/kubeadm release tag
	release=$("$kubeadm" version -o short)
	next=${release%.*}.$((${release##*.} + 1))
	tag=$("$kubeadm" config images list --kubernetes-version "$release" 2>/dev/null | sed -n 's|.*/etcd:||p')
	next_etcd=${tag%-*}-$((${tag##*-} + 1))
	next_coredns=$(<"$state/image/next-coredns")
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

# resolver: asks for the API server's name each second, on each machine and through the Service of CoreDNS, and writes down
# when there was an answer on one of them at least.
resolver() {
	local dns
	dns=$("${kubectl[@]}" -n kube-system get service kube-dns -o 'jsonpath={.spec.clusterIP}')
	: >"$run/resolved"
	while [[ ! -e $run/stop-writing ]]; do
		if dns_answers "$dns"; then echo "$EPOCHREALTIME answered"; else echo "$EPOCHREALTIME refused"; fi >>"$run/resolved"
		sleep 1
	done
}

# dns_answers ADDRESS: on one machine at least, within two seconds.
dns_answers() {
	local directory asking=() one answered=1
	for directory in "$state"/data/machines/*/disk; do
		[[ -s $directory/first ]] || continue
		timeout 2 nsenter -t "$(<"$directory/first")" -n busybox nslookup -type=a kubernetes.default.svc.cluster.local "$1" >/dev/null 2>&1 &
		asking+=($!)
	done
	for one in ${asking[@]+"${asking[@]}"}; do ! wait "$one" || answered=0; done
	return "$answered"
}

# resolves: DNS answered at the end, and was not silent for more than ten seconds while CoreDNS changed. Drains may interrupt
# it, because kubeadm makes no budget for CoreDNS.
resolves() {
	awk '
		function silence(now) { if (last && now - last > gap) gap = now - last; if (changing && now - last > of_change) of_change = now - last }
		$2 == "changing" { changing = 1; next }
		$2 == "changed" { silence($1); changing = 0; next }
		{ asked++; end = $2; silence($1) }
		$2 == "answered" { last = $1; good++ }
		END {
			printf "DNS was asked %d times and answered %d times; the longest time without an answer %.1f s, while CoreDNS changed %.1f s\n", asked, good, gap, of_change
			exit !(good > 10 && end == "answered" && of_change <= 10)
		}' "$run/resolved"
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
	local user=$1
	shift
	cloud_token "$user" && cloud_send "$@"
}

# cloud_token USER: authenticates; the token and the catalog are kept for cloud_send.
cloud_token() {
	local user=$1 clouds=$state/data/clouds.yaml url password
	url=$(sed -n 's/^ *auth_url: //p' "$clouds" | head -n 1)
	password=$(sed -n "/username: $user\$/,/project_name/s/^ *password: //p" "$clouds" | head -n 1)
	jq -n --arg user "$user" --arg password "$password" '{auth: {
		identity: {methods: ["password"], password: {user: {name: $user, domain: {id: "default"}, password: $password}}},
		scope: {project: {name: $user, domain: {id: "default"}}}}}' |
		curl -sS -f -D "$run/token" -o "$run/catalog" -H 'Content-Type: application/json' -d @- "$url/auth/tokens"
}

# cloud_send SERVICE PATH ARGUMENTS…: a request with the last token.
cloud_send() {
	local service=$1 path=$2 url token
	shift 2
	token=$(sed -n 's/^[Xx]-[Ss]ubject-[Tt]oken: *//p' "$run/token" | tr -d '\r\n')
	url=$(jq -er --arg type "$service" '.token.catalog[] | select(.type == $type) | .endpoints[] | select(.interface == "public") | .url' "$run/catalog") || return 1
	curl -sS -f -H "X-Auth-Token: $token" "$@" "$url$path"
}

# another_image NAME: a further image in the cloud's Glance. Its content is nothing: the runner has its own.
another_image() {
	local id
	id=$(cloud_request demo image /v2/images -H 'Content-Type: application/json' -d "{\"name\": \"$1\", \"disk_format\": \"qcow2\", \"container_format\": \"bare\"}" |
		jq -er .id) || return 1
	echo "$id" >>"$run/own-images"
	cloud_request demo image "/v2/images/$id/file" -X PUT -H 'Content-Type: application/octet-stream' --data-binary nothing
}

# roll_out: new templates with the other image, that of the workers with a config drive, and the other version in both
# roll-outs. etcd and CoreDNS get another tag.
roll_out() {
	local image=ubuntu-2404-kube-$next name
	another_image "$image" || return 1
	for name in real-control-plane real-md-0; do
		management get openstackmachinetemplate "$name" -o json | jq --arg image "$image" '{apiVersion, kind, spec,
			metadata: {name: (.metadata.name + "-next"), namespace: .metadata.namespace}} | .spec.template.spec.image = {filter: {name: $image}}
			| if .metadata.name == "real-md-0-next" then .spec.template.spec.configDrive = true else . end' |
			management apply -f - || return 1
	done
	management patch kubeadmcontrolplane real-control-plane --type=merge -p "{\"spec\": {\"version\": \"$next\",
		\"machineTemplate\": {\"spec\": {\"infrastructureRef\": {\"name\": \"real-control-plane-next\"}}},
		\"kubeadmConfigSpec\": {\"clusterConfiguration\": {\"dns\": {\"imageTag\": \"${next_coredns##*:}\"},
			\"etcd\": {\"local\": {\"imageTag\": \"$next_etcd\"}}}}}}" || return 1
	management patch machinedeployment real-md-0 --type=merge -p "{\"spec\": {\"template\": {\"spec\": {\"version\": \"$next\",
		\"infrastructureRef\": {\"name\": \"real-md-0-next\"}}}}}"
}

# control_plane_upgraded: all control plane machines have the new version and the new etcd; none is left of the old ones.
control_plane_upgraded() {
	[[ $(management get kubeadmcontrolplane real-control-plane -o 'jsonpath={.status.version} {.status.replicas} {.status.upToDateReplicas} {.status.readyReplicas}') == "$next $control_plane $control_plane $control_plane" ]] || return 1
	[[ $("${kubectl[@]}" -n kube-system get pods -l component=etcd -o 'jsonpath={range .items[*]}{.spec.containers[0].image}{"\n"}{end}' | sort | uniq -c | xargs) == "$control_plane registry.k8s.io/etcd:$next_etcd" ]] || return 1
	etcd_members "$control_plane"
}

# coredns_upgraded: its Deployment has the new image, and so have two Pods, which are ready; kubeadm's configuration has the tag.
coredns_upgraded() {
	[[ $("${kubectl[@]}" -n kube-system get deployment coredns -o 'jsonpath={.spec.template.spec.containers[0].image}') == "$next_coredns" ]] || return 1
	"${kubectl[@]}" -n kube-system rollout status deployment/coredns --timeout=1s || return 1
	[[ $("${kubectl[@]}" -n kube-system get pods -l k8s-app=kube-dns -o json | jq -c '[.items[] | select(any(.status.conditions[]?; .type == "Ready" and .status == "True"))
		| .spec.containers[0].image] | unique + [length]') == "[\"$next_coredns\",2]" ]] || return 1
	"${kubectl[@]}" -n kube-system get configmap kubeadm-config -o 'jsonpath={.data.ClusterConfiguration}' | grep -q "imageTag: ${next_coredns##*:}"
}

# config_drives_are_read: each worker's cloud-init had its data from the config drive, and no control plane machine's.
config_drives_are_read() {
	local name id source
	cloud_request demo compute /servers/detail | jq -r '.servers[] | select(.name | startswith("real-")) | "\(.name) \(.id)"' >"$run/servers" || return 1
	while read -r name id; do
		source=$(console "$id" | grep -o 'Datasource DataSource[A-Za-z]*' | tail -n 1)
		echo "$name: $source"
		case $name in
		real-md-0-*) [[ $source == *DataSourceConfigDrive ]] || return 1 ;;
		*) [[ $source == *DataSourceOpenStack* ]] || return 1 ;;
		esac
	done <"$run/servers"
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
	local writer=$! resolver
	resolver 2>>"$run/writer.log" &
	resolver=$!
	# It forbids every eviction at first.
	"${kubectl[@]}" create poddisruptionbudget web --selector=app=web --min-available=2 >/dev/null
	roll_out >"$run/step" 2>&1 || { cat "$run/step" >&2; die "the roll-out cannot be asked for"; }
	step "the control plane and etcd have $next" 900 control_plane_upgraded
	leadership_was_moved "$control_plane"
	echo "$EPOCHREALTIME changing" >>"$run/resolved"
	step "CoreDNS has ${next_coredns##*:}" 120 coredns_upgraded
	echo "$EPOCHREALTIME changed" >>"$run/resolved"
	step "a worker's drain is refused by the budget" 300 budget_in_the_way
	"${kubectl[@]}" patch poddisruptionbudget web --type=merge -p '{"spec": {"minAvailable": 1}}' >/dev/null
	step "Nodes, static pods and kube-proxy have $next" 400 upgraded
	step "CoreDNS still has ${next_coredns##*:}" 120 coredns_upgraded
	step "the workers have read their config drives" 60 config_drives_are_read
	step "two replicas run" 120 "${kubectl[@]}" rollout status deployment/web --timeout=1s
	: >"$run/stop-writing"
	wait "$writer" "$resolver" || true
	writes >"$run/writes" || { cat "$run/writes" "$run/refused" >&2; die "writes were lost, or could not be made for too long"; }
	cat "$run/writes"
	resolves >"$run/resolves" || { cat "$run/resolves" >&2; grep -n refused "$run/resolved" >&2; die "DNS did not answer for too long"; }
	cat "$run/resolves"
	"${kubectl[@]}" delete poddisruptionbudget web >/dev/null
}
