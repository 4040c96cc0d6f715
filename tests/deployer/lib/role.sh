# The controller of clouds with its own role (config/rbac/openstack.yaml) on the real API server: a manager with nothing but
# the token of its ServiceAccount deletes a cloud, makes it and changes it.

# made_by_manager: the manager deletes what there is of the cloud but its data, and makes it again.
made_by_manager() {
	local pid created patience=$((SECONDS + PATIENCE))
	install_manager
	# On machine 0, where the API server reaches its webhooks; its process id there is in a file.
	# shellcheck disable=SC2016
	"$node" run 0 sh -c 'echo $$ >"$0" && exec "$@"' "$work/manager.pid" "$binary" --log info,rollout=debug,operator=debug manager \
		--kubeconfig "$work/manager.kubeconfig" --openstack-namespace openstack --leader-elect --webhook-url https://127.0.0.1:9443 >"$work/manager.log" 2>&1 &
	pid=$!
	until grep -q '^leading as ' "$work/manager.log"; do
		kill -0 "$pid" 2>/dev/null && ((SECONDS < patience)) || die "the manager does not lead: $(tail -n 3 "$work/manager.log")"
		sleep 0.2
	done
	stage "a manager with its role"
	kubectl delete openstack cloud --timeout "$((2 * PATIENCE))s" >/dev/null || die "the manager does not delete the cloud: $(tail -n 3 "$work/manager.log")"
	stage "the manager deletes the cloud"
	jq '.services.nova.config.filter_scheduler.max_instances_per_host = 40' "$work/cloud.yaml" | submit
	stage "the manager makes the cloud"
	submit <"$work/cloud.yaml"
	stage "the manager changes an option"
	"$node" run 0 "$binary" openstack plan -f "$work/cloud.yaml" --kubeconfig "$work/manager.kubeconfig" >"$work/plan" 2>&1 ||
		die "the plan by the manager's role is not empty: $(tail -n 5 "$work/plan")"
	"$node" run 0 kill "$(<"$work/manager.pid")"
	wait "$pid" || die "the manager ended badly: $(tail -n 3 "$work/manager.log")"
	! grep -iE 'forbidden|\b403\b' "$work/manager.log" >"$work/found" || die "the role of the manager lacks something: $(head -n 3 "$work/found")"
	created=$(grep -c ' cloud: creates ' "$work/manager.log" || true)
	((created > 40)) || die "the manager has created $created objects only"
	remove_manager
	say "by its role alone the manager deleted the cloud, created $created objects and changed an option; nothing was forbidden"
	stage "nothing forbidden"
}

# install_manager: what `generate manager` prints, and a kubeconfig with the token of its ServiceAccount.
install_manager() {
	local server token who forbidden
	"$binary" generate manager --openstack-namespace openstack >"$work/manager.yaml"
	# The namespace and the kind of clouds are there, and stay.
	"$root/target/tools/kubectl" label --local -f "$work/manager.yaml" ferrostack-test=role -o json |
		jq -c '(.items[]? // .) | select(.metadata.name != "openstack" and .metadata.name != "openstacks.ferrostack.dev")' >"$work/manager.json"
	"$root/target/tools/kubectl" apply --server-side -f "$work/manager.json" >/dev/null
	kubectl wait --for=condition=Established customresourcedefinitions -l ferrostack-test=role --timeout 90s >/dev/null
	server=$(sed -n 's/.*server: "\([^"]*\)".*/\1/p' "$FERROSTACK_NODE_STATE/pki/kube-proxy.conf")
	token=$(kubectl create token ferrostack-manager -n ferrostack-system --duration 1h)
	cat >"$work/manager.kubeconfig" <<-X
		apiVersion: v1
		kind: Config
		clusters: [{name: node, cluster: {server: "$server", certificate-authority: $FERROSTACK_NODE_STATE/pki/ca.crt}}]
		users: [{name: manager, user: {token: $token}}]
		contexts: [{name: node, context: {cluster: node, user: manager, namespace: ferrostack-system}}]
		current-context: node
	X
	as_manager() { "$node" run 0 "$root/target/tools/kubectl" --kubeconfig "$work/manager.kubeconfig" "$@"; }
	who=$(as_manager auth whoami -o 'jsonpath={.status.userInfo.username}')
	[[ $who == system:serviceaccount:ferrostack-system:ferrostack-manager ]] || die "the token is that of $who"
	for forbidden in 'create pods -n default' 'patch nodes' 'update deployments.apps' 'delete persistentvolumeclaims -n default' 'update roles.rbac.authorization.k8s.io'; do
		# shellcheck disable=SC2086
		[[ $(as_manager auth can-i -n openstack $forbidden 2>/dev/null || true) == no* ]] || die "the manager may $forbidden: is the authorization mode RBAC?"
	done
}

# submit: applies parameters from standard input, as a user of kubectl does. The manager has to do the rest.
submit() {
	jq -c '{apiVersion: "ferrostack.dev/v1alpha1", kind: "OpenStack", metadata: {name: "cloud"}, spec: .}' |
		kubectl apply --server-side --field-manager=ferrostack -f - >/dev/null
	kubectl wait --for=condition=Ready openstack/cloud --timeout "$((2 * PATIENCE))s" >/dev/null ||
		die "by the manager the cloud is not ready: $("$binary" openstack why --kubeconfig "$KUBECONFIG")"
}

# remove_manager: its webhooks first, since nobody answers for them any more.
remove_manager() {
	kubectl delete validatingwebhookconfigurations,mutatingwebhookconfigurations,rolebindings,roles,clusterrolebindings,clusterroles,customresourcedefinitions,namespaces \
		-l ferrostack-test=role --timeout 120s >/dev/null 2>"$work/stderr" || die "the manager is not removed: $(tail -n 1 "$work/stderr")"
}
