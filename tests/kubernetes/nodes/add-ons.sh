# The add-ons of the cluster: DNS for Services, and volumes.

add_ons() {
	local version file
	version=$("$TOOLS/kubeadm" config images list --kubernetes-version "$("$TOOLS/kubeadm" version -o short)" 2>/dev/null | grep /coredns:)
	for file in dns storage; do
		sed "s|@DNS@|$DNS|; s|@COREDNS@|$version|" "$PARTS/$file.yaml" | kubectl apply --server-side -f - >>"$STATE/log/add-ons.log" 2>&1 ||
			die "$file.yaml is rejected: $(tail -n 1 "$STATE/log/add-ons.log")"
	done
	start 0 local-volumes "$TOOLS/local-volumes" --kubeconfig="$STATE/pki/local-volumes.conf" --directory="$STATE/volumes"
	kubectl -n kube-system rollout status deployment/coredns --timeout=90s >>"$STATE/log/add-ons.log" 2>&1 ||
		die "CoreDNS is not ready: kubectl --kubeconfig $STATE/kubeconfig -n kube-system describe pods"
}
