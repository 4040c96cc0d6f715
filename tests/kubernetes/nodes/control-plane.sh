# etcd, kube-apiserver, kube-controller-manager and kube-scheduler on machine 0, and the API server's port on 127.0.0.1 of the host.

# control_plane CLOUD-PROVIDER
control_plane() {
	local pki=$STATE/pki
	start 0 etcd "$TOOLS/etcd" --data-dir="$STATE/etcd" --log-level=warn --unsafe-no-fsync \
		--listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 --listen-peer-urls=http://127.0.0.1:2380
	until_true 30 etcd "$STATE/log/etcd-0.log" on 0 curl -sf http://127.0.0.1:2379/health
	start 0 kube-apiserver "$TOOLS/kube-apiserver" --etcd-servers=http://127.0.0.1:2379 \
		--bind-address="$(address 0)" --advertise-address="$(address 0)" --secure-port=6443 \
		--service-cluster-ip-range="$SERVICES" --allow-privileged=true \
		--tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" --client-ca-file="$pki/ca.crt" \
		--kubelet-certificate-authority="$pki/ca.crt" --kubelet-client-certificate="$pki/apiserver-kubelet-client.crt" \
		--kubelet-client-key="$pki/apiserver-kubelet-client.key" --kubelet-preferred-address-types=InternalIP \
		--requestheader-client-ca-file="$pki/ca.crt" --requestheader-allowed-names=front-proxy-client \
		--requestheader-username-headers=X-Remote-User --requestheader-group-headers=X-Remote-Group --requestheader-extra-headers-prefix=X-Remote-Extra- \
		--proxy-client-cert-file="$pki/front-proxy-client.crt" --proxy-client-key-file="$pki/front-proxy-client.key" \
		--service-account-key-file="$pki/sa.pub" --service-account-signing-key-file="$pki/sa.key" \
		--service-account-issuer=https://kubernetes.default.svc.cluster.local \
		--authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --enable-bootstrap-token-auth=true
	runs_on_the_host forward || {
		setsid "$TOOLS/forward" "127.0.0.1:$PORT" "/proc/$(first 0)/ns/net" "$(address 0):6443" >>"$STATE/log/forward.log" 2>&1 </dev/null 9>&- &
		echo "$! $(started $!)" >"$STATE/run/forward"
	}
	until_true 90 kube-apiserver "$STATE/log/kube-apiserver-0.log" kubectl get --raw /readyz
	start 0 kube-controller-manager "$TOOLS/kube-controller-manager" --kubeconfig="$pki/kube-controller-manager.conf" \
		--authentication-kubeconfig="$pki/kube-controller-manager.conf" --authorization-kubeconfig="$pki/kube-controller-manager.conf" \
		--bind-address=127.0.0.1 --leader-elect=false --cert-dir="$STATE/run" --controllers='*,bootstrapsigner,tokencleaner' \
		--root-ca-file="$pki/ca.crt" --service-account-private-key-file="$pki/sa.key" \
		--cluster-signing-cert-file="$pki/ca.crt" --cluster-signing-key-file="$pki/ca.key" --use-service-account-credentials=true \
		--allocate-node-cidrs=true --cluster-cidr="$PODS" --service-cluster-ip-range="$SERVICES" ${1:+--cloud-provider="$1"}
	start 0 kube-scheduler "$TOOLS/kube-scheduler" --kubeconfig="$pki/kube-scheduler.conf" \
		--authentication-kubeconfig="$pki/kube-scheduler.conf" --authorization-kubeconfig="$pki/kube-scheduler.conf" \
		--bind-address=127.0.0.1 --leader-elect=false --cert-dir="$STATE/run"
}

# runs_on_the_host NAME: whether a process of this host that `up` started runs.
runs_on_the_host() {
	local pid ticks
	read -r pid ticks 2>/dev/null <"$STATE/run/$1" && [[ $(started "$pid") == "$ticks" ]]
}

# still_running NODES: what ended by itself is an error.
still_running() {
	local n program
	for program in etcd kube-apiserver kube-controller-manager kube-scheduler local-volumes; do
		runs 0 "$program" || die "$program ended; its log is $STATE/log/$program-0.log"
	done
	for ((n = 1; n <= $1; n++)); do
		for program in containerd kubelet kube-proxy; do
			runs "$n" "$program" || die "$program of node-$n ended; its log is $STATE/log/$program-$n.log"
		done
	done
}
