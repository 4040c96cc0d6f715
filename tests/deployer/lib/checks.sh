# What the cloud is asked at the end.

client() {
	OS_CLOUD='' OS_AUTH_TYPE=password OS_AUTH_URL=http://keystone:5000/v3 OS_USERNAME=admin OS_PROJECT_NAME=admin OS_USER_DOMAIN_NAME=Default \
		OS_PROJECT_DOMAIN_NAME=Default OS_REGION_NAME=RegionOne OS_IDENTITY_API_VERSION=3 OS_INTERFACE=internal \
		OS_PASSWORD=$(password identity-admin) inside env -u OS_CLOUD openstack "$@"
}

check_token() {
	[[ $(client token issue -f value -c id) == gAAAA* ]] || die "Keystone gave no token"
	stage "a token"
	client catalog list -f value -c Type >"$work/catalog"
	grep -qx identity "$work/catalog" || die "the catalogue has no identity service: $(<"$work/catalog")"
	say "the catalogue has: $(sort "$work/catalog" | paste -sd ' ')"
}

check_services() {
	local name state token
	head -c 65536 /dev/urandom >"$work/image"
	client image show probe >/dev/null 2>&1 ||
		client image create --disk-format raw --container-format bare --file "$work/image" probe >/dev/null
	state=$(client image show probe -f value -c status)
	[[ $state == active ]] || die "the image is $state"
	client network show probe >/dev/null 2>&1 || client network create probe -f value -c status >/dev/null
	[[ $(client network show probe -f value -c status) == ACTIVE ]] || die "the network is not ACTIVE"
	client compute service list -f value -c Binary -c State >"$work/computes"
	for name in nova-conductor nova-scheduler; do
		state=$(awk -v name="$name" '$1 == name {print $2}' "$work/computes")
		[[ $state == up ]] || die "$name is ${state:-not in the list}"
	done
	token=$(client token issue -f value -c id)
	inside curl -sSf --config - http://placement:8778/resource_providers <<<"header = \"X-Auth-Token: $token\"" >"$work/providers"
	jq -e '.resource_providers | type == "array"' "$work/providers" >/dev/null || die "Placement answers $(<"$work/providers")"
	say "an image is active, a network is ACTIVE, conductor and scheduler are up, Placement answers"
}

# No container has restarted, and no task needed a second Pod.
no_restarts() {
	kubectl get pods -o json >"$work/pods.json"
	local restarted
	restarted=$(jq -r '.items[] | .metadata.name as $name | select(.status.phase == "Failed" or any(.status.containerStatuses[]?; .restartCount > 0)) | $name' "$work/pods.json")
	[[ -z $restarted ]] || die "these have failed or restarted: ${restarted//$'\n'/, }"
	say "$(jq '[.items[] | select(.status.phase == "Running")] | length' "$work/pods.json") Pods run, and no container has restarted"
}

# report_failure: what the Pods that are not ready say.
report_failure() {
	local pod
	[[ -s $KUBECONFIG ]] || return 0
	kubectl get pods -o wide >&2
	for pod in $(kubectl get pods -o json | jq -r '.items[] | select(.status.phase != "Succeeded") | select(any(.status.containerStatuses[]?; .ready | not) or .status.phase == "Pending") | .metadata.name'); do
		printf '\n== %s\n' "$pod" >&2
		kubectl get events --field-selector "involvedObject.name=$pod" -o 'jsonpath={range .items[*]}{.reason}: {.message}{"\n"}{end}' | tail -n 5 >&2
		kubectl logs "$pod" --tail=15 >&2 2>/dev/null || true
	done
}
