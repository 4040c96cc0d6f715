# The API server, kube-controller-manager and kube-scheduler on machine 0, and the forwarding of the API server's port
# on the host's 127.0.0.1.

# control_plane API-SERVER CLOUD-PROVIDER
control_plane() {
	local pki=$STATE/pki controllers='*,bootstrapsigner,tokencleaner' gates=() credentials=true
	if [[ $1 == ferrostack ]]; then
		controllers+=$(printf ',-%s' "${NOT_ON_THE_EMBEDDED[@]}")
		gates=(--feature-gates=DynamicResourceAllocation=false)
		credentials=false
	fi
	"api_server_${1//-/_}"
	runs_on_the_host forward || {
		setsid "$TOOLS/forward" "127.0.0.1:$PORT" "/proc/$(first 0)/ns/net" "$(address 0):6443" >>"$STATE/log/forward.log" 2>&1 </dev/null 9>&- &
		echo "$! $(started $!)" >"$STATE/run/forward"
	}
	until_true 90 "$1" "$STATE/log/$1-0.log" kubectl get --raw /readyz
	[[ $1 != ferrostack ]] || allow_components
	start 0 kube-controller-manager "$TOOLS/kube-controller-manager" --kubeconfig="$pki/kube-controller-manager.conf" \
		--authentication-kubeconfig="$pki/kube-controller-manager.conf" --authorization-kubeconfig="$pki/kube-controller-manager.conf" \
		--bind-address=127.0.0.1 --leader-elect=false --cert-dir="$STATE/run" --controllers="$controllers" "${gates[@]}" \
		--root-ca-file="$pki/ca.crt" --service-account-private-key-file="$pki/sa.key" \
		--cluster-signing-cert-file="$pki/ca.crt" --cluster-signing-key-file="$pki/ca.key" --use-service-account-credentials=$credentials \
		--allocate-node-cidrs=true --cluster-cidr="$PODS" --service-cluster-ip-range="$SERVICES" ${2:+--cloud-provider="$2"}
	start 0 kube-scheduler "$TOOLS/kube-scheduler" --kubeconfig="$pki/kube-scheduler.conf" \
		--authentication-kubeconfig="$pki/kube-scheduler.conf" --authorization-kubeconfig="$pki/kube-scheduler.conf" \
		--bind-address=127.0.0.1 --leader-elect=false --cert-dir="$STATE/run" "${gates[@]}"
}

# still_running NODES API-SERVER: fails if a program has ended.
still_running() {
	local n program servers=(etcd kube-apiserver)
	[[ $2 != ferrostack ]] || servers=(apiserver)
	for program in "${servers[@]}" kube-controller-manager kube-scheduler local-volumes; do
		runs 0 "$program" || die "$program ended; its log is $STATE/log/$program-0.log"
	done
	for ((n = 1; n <= $1; n++)); do
		for program in containerd kubelet kube-proxy; do
			runs "$n" "$program" || die "$program of node-$n ended; its log is $STATE/log/$program-$n.log"
		done
	done
}
