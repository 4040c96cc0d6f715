# For scripts with $here, $root, $work, $label, $kubectl, $embedded, admin, begin and await: the Go controllers of Cluster API,
# built from their module (tests/kubernetes/build cluster-api), as programs on this machine. Manifests are those of the same
# module: definitions, permissions, webhooks; the certificates of cert-manager are made here, and Services are addresses.

# Each provider: the directory in the module, its namespace, and the first of its three ports.
go_providers=("core capi-system 29470" "bootstrap/kubeadm capi-kubeadm-bootstrap-system 29474"
	"controlplane/kubeadm capi-kubeadm-control-plane-system 29478")
declare -A go_programs=([core]=cluster-api-core [bootstrap/kubeadm]=cluster-api-bootstrap
	[controlplane/kubeadm]=cluster-api-control-plane)

go_module() { (cd "$here/cluster-api" && go list -m -f '{{.Dir}}' sigs.k8s.io/cluster-api); }
go_version() { go version -m "$root/target/tools/cluster-api-core" | awk '$2 == "sigs.k8s.io/cluster-api" { print $3; exit }'; }

# The certificate of the webhooks, which cert-manager would issue.
go_certificate() {
	mkdir -p "$work/serving-certs"
	openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/serving-certs/tls.key" -out "$work/serving-certs/tls.crt" -days 1 \
		-subj /CN=webhooks -addext subjectAltName=IP:127.0.0.1 2>/dev/null
}

# go_manifests DIRECTORY PORT: those of a provider, with the label of clusterctl, with webhooks at an address, and without what
# only runs in a cluster.
go_manifests() {
	local certificate
	certificate=$(base64 -w0 <"$work/serving-certs/tls.crt")
	"$kubectl" kustomize "$(go_module)/$1/config/default" | "$kubectl" label --local -f - "$label" clusterctl.cluster.x-k8s.io= -o json |
		jq --arg url "https://127.0.0.1:$2" --arg authority "$certificate" '
			select(.kind | IN("Deployment", "Service", "Certificate", "Issuer") | not)
			| walk(if type == "object" and (.service | type == "object" and has("path"))
				then {url: ($url + .service.path), caBundle: $authority} else . end)'
}

# Installs the three providers over what is there, as clusterctl does.
go_install() {
	local directory port
	[[ -s $work/serving-certs/tls.crt ]] || go_certificate
	for provider in "${go_providers[@]}"; do
		read -r directory _ port <<<"$provider"
		go_manifests "$directory" "$((port + 2))" | admin apply --server-side --force-conflicts -f - >/dev/null
	done
}

# Removes what would answer for them, and their permissions. The kinds stay, without the label by which they are theirs.
go_remove() {
	local directory namespace
	for provider in "${go_providers[@]}"; do
		read -r directory namespace _ <<<"$provider"
		go_manifests "$directory" 0 | jq 'select(.kind | IN("CustomResourceDefinition", "Namespace") | not)' |
			admin delete --ignore-not-found -f - >/dev/null
	done
	admin label customresourcedefinitions -l clusterctl.cluster.x-k8s.io clusterctl.cluster.x-k8s.io- >/dev/null
}

# go_kubeconfig NAMESPACE SERVICE-ACCOUNT FILE: with a token of that ServiceAccount and nothing else, where there is RBAC.
go_kubeconfig() {
	local token
	admin config view --raw --flatten -o yaml >"$3"
	[[ ! $embedded ]] || return 0
	token=$(admin -n "$1" create token "$2" --duration 1h)
	"$kubectl" --kubeconfig "$3" config unset users >/dev/null
	"$kubectl" --kubeconfig "$3" config set-credentials manager --token "$token" >/dev/null
	"$kubectl" --kubeconfig "$3" config set-context "$("$kubectl" --kubeconfig "$3" config current-context)" --user manager >/dev/null
}

# Starts the three programs with the flags of their Deployments, but for addresses on this machine and the election.
go_start() {
	local directory namespace port binary
	go_pids=()
	for provider in "${go_providers[@]}"; do
		read -r directory namespace port <<<"$provider"
		binary=${go_programs[$directory]}
		go_kubeconfig "$namespace" "${namespace%-system}-manager" "$work/$binary.kubeconfig"
		# As in their images: the name is that of the field manager of their updates.
		mkdir -p "$work/$binary.d"
		ln -sf "$root/target/tools/$binary" "$work/$binary.d/manager"
		begin "$binary" env POD_NAMESPACE="$namespace" KUBECONFIG="$work/$binary.kubeconfig" "$work/$binary.d/manager" \
			--leader-elect=false --diagnostics-address "127.0.0.1:$port" --insecure-diagnostics=true \
			--health-addr "127.0.0.1:$((port + 1))" --webhook-port "$((port + 2))" --webhook-cert-dir "$work/serving-certs"
		go_pids+=("${pids[-1]}")
	done
	for provider in "${go_providers[@]}"; do
		read -r directory _ port <<<"$provider"
		await 90 "${go_programs[$directory]} is not ready: $(tail -n 2 "$work/${go_programs[$directory]}.log")" \
			curl -sf "http://127.0.0.1:$((port + 1))/readyz"
	done
}

go_stop() {
	kill "${go_pids[@]}"
	wait "${go_pids[@]}" || true
}

# go_reconciles: of each controller, how many reconciles succeeded and how many failed.
go_reconciles() {
	local port
	for provider in "${go_providers[@]}"; do
		read -r _ _ port <<<"$provider"
		curl -sf "http://127.0.0.1:$port/metrics"
	done | awk '/^controller_runtime_reconcile_total/ && $NF > 0 {
		match($0, /controller="[^"]*"/); name = substr($0, RSTART + 12, RLENGTH - 13)
		if ($0 ~ /result="error"/) failed[name] += $NF; else done[name] += $NF
	} END { for (name in done) printf "%s %d %d\n", name, done[name], failed[name] }' | sort
}
