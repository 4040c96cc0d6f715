# The API servers for the control plane.

api_server_kube_apiserver() {
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
}

# The embedded API server (docs/reference/apiserver.md), with the options of kube-apiserver.
api_server_ferrostack() {
	local pki=$STATE/pki
	start 0 ferrostack "$(embedded)" --database="$STATE/objects.db" \
		--bind-address="$(address 0)" --advertise-address="$(address 0)" --secure-port=6443 \
		--tls-cert-file="$pki/apiserver.crt" --tls-private-key-file="$pki/apiserver.key" --client-ca-file="$pki/ca.crt" \
		--kubelet-certificate-authority="$pki/ca.crt" --kubelet-client-certificate="$pki/apiserver-kubelet-client.crt" \
		--kubelet-client-key="$pki/apiserver-kubelet-client.key" --kubelet-preferred-address-types=InternalIP \
		--service-account-signing-key-file="$pki/sa.key"
}

# Controllers that the embedded API server implements itself, and those of kinds that it does not serve.
NOT_ON_THE_EMBEDDED=(garbage-collector-controller namespace-controller serviceaccount-controller root-ca-certificate-publisher-controller
	persistentvolumeclaim-protection-controller persistentvolume-protection-controller
	horizontal-pod-autoscaler-controller resourceclaim-controller validatingadmissionpolicy-status-controller service-cidr-controller
	clusterrole-aggregation-controller storageversion-garbage-collector-controller)

# embedded: the path of the program, which Cargo has built.
embedded() { echo "${FERROSTACK_API_SERVER:-$ROOT/target/debug/examples/apiserver}"; }

build_embedded() {
	[[ -z ${FERROSTACK_API_SERVER:-} ]] || return 0
	command -v cargo >/dev/null || die "cargo is needed to build the embedded API server, and it is not in PATH"
	(cd "$ROOT" && cargo build -q --locked --workspace --example apiserver) || die "the embedded API server was not built"
}

# allow_components: the embedded API server does not evaluate RBAC rules, so components with rules in a real cluster
# become administrators.
allow_components() {
	kubectl apply --server-side -f "$PARTS/embedded.yaml" >>"$STATE/log/add-ons.log" 2>&1 ||
		die "embedded.yaml is rejected: $(tail -n 1 "$STATE/log/add-ons.log")"
}
