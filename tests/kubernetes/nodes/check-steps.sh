# The steps of `check`, which run in the order of their names.

in_check() { kubectl -n check "$@"; }
equal() { [[ $1 == "$2" ]] || die "expected '$2', but it is '$1'"; }
contains() { [[ $1 == *"$2"* ]] || die "expected something with '$2', but it is '$1'"; }
# in_tool COMMAND…: runs a command in the pod `tool`.
in_tool() { in_check exec tool -- "$@"; }

step_01_Deployment_with_probes() {
	kubectl create namespace check >/dev/null
	kubectl -n check apply --server-side -f "$PARTS/check.yaml" >/dev/null
	in_check rollout status deployment/web --timeout=60s >/dev/null
	in_check wait --for=condition=Ready pod/tool --timeout=60s >/dev/null
}

# kube-proxy and CoreDNS follow the pods of a Service with a delay.
step_02_Service_by_name_and_by_address() {
	local host
	for host in "$(service web)" web web.check.svc.cluster.local; do
		until_true 15 "the Service answers as $host" "" served_in_tool "http://$host/index.html"
	done
}

served_in_tool() { [[ $(in_tool get "$1" 2>/dev/null) == *"served by web-"* ]]; }
service() { in_check get service "$1" -o 'jsonpath={.spec.clusterIP}'; }

step_03_node_port() {
	local port node
	port=$(in_check get service web-port -o 'jsonpath={.spec.ports[0].nodePort}')
	for node in $(machines); do
		((node == 0)) || until_true 15 "node port $port of node-$node answers" "" served "http://$(address "$node"):$port/index.html"
	done
}

served() { [[ $(on 0 curl -sf --max-time 5 "$1") == *"served by web-"* ]]; }

step_04_logs_exec_and_copy() {
	equal "$(in_check logs tool)" "tool is up"
	equal "$(echo from the client | in_check exec -i tool -- cat)" "from the client"
	contains "$(in_check exec tool -- sh -c 'exit 3' 2>&1 || true)" "exit code 3"
	contains "$(kubectl get --raw "/api/v1/nodes/node-1/proxy/stats/summary" | head -c 200)" node-1
}

step_05_forwarded_port() {
	local log=$STATE/log/check-forward.log pid port tries
	: >"$log"
	# The program itself, not a function in a subshell, so that $! is its process.
	"$TOOLS/kubectl" --kubeconfig "$STATE/kubeconfig" -n check port-forward service/web :80 --address 127.0.0.1 >"$log" 2>&1 3>&- &
	pid=$!
	for ((tries = 0; tries < 50; tries++)); do
		port=$(sed -n 's/^Forwarding from 127.0.0.1:\([0-9]*\).*/\1/p' "$log" | head -n 1)
		[[ -z $port ]] || break
		sleep 0.1
	done
	contains "$(curl -sf --max-time 5 "http://127.0.0.1:$port/index.html" || true)" "served by web-"
	kill "$pid"
	wait "$pid" 2>/dev/null || true
}

step_06_API_from_a_pod() {
	contains "$(in_tool get -account https://kubernetes.default.svc/version)" '"gitVersion"'
	contains "$(in_tool get -account https://kubernetes.default.svc/api/v1/namespaces/check/secrets)" \
		'User \"system:serviceaccount:check:default\" cannot list resource \"secrets\"'
}

step_07_volumes_of_a_StatefulSet() {
	in_check rollout status statefulset/db --timeout=60s >/dev/null
	in_check exec db-0 -- sh -c 'echo kept >/keep/mark'
	in_check delete pod db-0 --timeout=60s >/dev/null
	in_check rollout status statefulset/db --timeout=60s >/dev/null
	equal "$(in_check exec db-0 -- cat /keep/mark)" kept
	until_true 15 "the name of a pod of the StatefulSet answers" "" kept_in_db
}

kept_in_db() { [[ $(in_tool get http://db-0.db.check.svc.cluster.local:8080/mark 2>/dev/null) == kept* ]]; }

step_08_Job() {
	in_check wait --for=condition=Complete job/task --timeout=60s >/dev/null
	equal "$(in_check logs job/task)" done
}

step_09_rolling_update() {
	in_check set env deployment/web VERSION=2 >/dev/null
	in_check rollout status deployment/web --timeout=60s >/dev/null
	until_true 30 "the pods of the first version are gone" "" only_version 2
}

only_version() {
	local versions
	versions=$(in_check get pods -l app=web -o 'jsonpath={.items[*].spec.containers[0].env[?(@.name=="VERSION")].value}')
	[[ $(tr ' ' '\n' <<<"$versions" | sort -u) == "$1" ]]
}

step_10_CSI_driver_registers() {
	until_true 60 "the CSI driver registers" "$STATE/log/kubelet-1.log" csi_registered
	in_check wait --for=condition=Ready pod/with-volume --timeout=60s >/dev/null
	in_check exec with-volume -- sh -c 'echo written >/data/file'
	equal "$(on 1 cat "$(on 1 sh -c 'ls -d /run/check-csi/csi-*')/file")" written
	in_check delete pod with-volume --timeout=60s >/dev/null
	equal "$(on 1 ls /run/check-csi)" ""
}

csi_registered() { [[ $(kubectl get csinode node-1 -o 'jsonpath={.spec.drivers[*].name}') == *directory.csi.ferrostack.dev* ]]; }

step_11_drain() {
	kubectl drain node-1 --ignore-daemonsets --delete-emptydir-data --force --timeout=90s >/dev/null 2>&1
	equal "$(in_check get pods -o json --field-selector=spec.nodeName=node-1 | grep -c '"kind": "ReplicaSet"' || true)" 0
	kubectl uncordon node-1 >/dev/null
	in_check rollout status deployment/web --timeout=60s >/dev/null
	kubectl -n kube-system rollout status deployment/coredns --timeout=60s >/dev/null
}

step_12_everything_goes() {
	kubectl delete -f "$PARTS/check.yaml" -n check --ignore-not-found --wait=false >/dev/null 2>&1
	kubectl delete namespace check --timeout=60s >/dev/null
	until_true 20 "volumes are removed" "$STATE/log/local-volumes-0.log" no_volumes
}

# This cluster has the port on the host.
step_13_second_cluster_at_the_same_port_is_refused() {
	equal "$(FERROSTACK_NODE_STATE="$STATE/second" FERROSTACK_NODE_PORT="$PORT" "$HERE/node" up 2>&1 || true)" \
		"$PROGRAM: another program listens on 127.0.0.1:$PORT; choose another port with FERROSTACK_NODE_PORT"
	rm -rf "$STATE/second"
}

no_volumes() { [[ -z $(kubectl get persistentvolumes -o name) && -z $(ls "$STATE/volumes" 2>/dev/null) ]]; }
