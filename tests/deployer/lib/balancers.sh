# Load balancers of a cloud on a real node: what tests/deployer/balancer does with them.

balancer() { outside loadbalancer "$@"; }

# northbound COMMAND…: of OVN's northbound database.
northbound() { kubectl exec ovn-nb-0 -- ovn-nbctl --db=tcp:127.0.0.1:6641 "$@"; }

# await_balancer NAME STATUS [KIND…]: its provisioning status.
await_balancer() {
	local status patience=$((SECONDS + PATIENCE))
	until status=$(balancer "${@:3}" show "$1" -f value -c provisioning_status) && [[ $status == "$2" ]]; do
		[[ $status != ERROR ]] || die "${*:3} $1 is in ERROR: $(kubectl logs deployment/octavia-api --tail=40 | grep ERROR | tail -n 3)"
		((SECONDS < patience)) || die "${*:3} $1 is ${status:-not there}, and not $2"
		sleep 1
	done
}

# check_octavia: its provider is there, and it is in the catalogue.
check_octavia() {
	[[ $(balancer provider list -f value -c name) == ovn ]] || die "the providers are: $(balancer provider list -f value | paste -sd ';')"
	[[ $(outside endpoint list --service load-balancer --interface public -f value -c URL) == "https://$public:9876" ]] || die "the public URL of Octavia is another one"
	stage "the provider"
}

# balanced_network: a network with an address for the load balancer.
balanced_network() {
	is_there network guests || outside network create guests >/dev/null
	is_there subnet guests || outside subnet create --network guests --subnet-range "$INSIDE.0/24" guests >/dev/null
}

# made ADDRESS…: a load balancer with these members. OVN has no other algorithm.
made() {
	local member
	if ! balancer show web >/dev/null 2>&1; then
		balancer create --name web --vip-subnet-id guests >/dev/null
		await_balancer web ACTIVE
		stage "a load balancer is ACTIVE"
		balancer listener create --name web --protocol TCP --protocol-port 80 web >/dev/null
		await_balancer web ACTIVE
		balancer pool create --name web --protocol TCP --lb-algorithm SOURCE_IP_PORT --listener web >/dev/null
		await_balancer web ACTIVE
	fi
	for member; do
		balancer member list web -f value -c address | grep -qx "$member" && continue
		balancer member create --name "$member" --address "$member" --subnet-id guests --protocol-port 7 web >/dev/null
		await_balancer web ACTIVE
	done
	await_balancer web ACTIVE listener
	await_balancer web ACTIVE pool
	stage "listener, pool, members"
}

# check_balancer: all of it is ACTIVE and in OVN's database; what OVN does not serve is refused.
check_balancer() {
	made "$INSIDE.21" "$INSIDE.22"
	[[ $(balancer show web -f value -c operating_status) == ONLINE ]] || die "web is $(balancer show web -f value -c operating_status)"
	northbound --bare --columns=vips find load_balancer >"$work/vips"
	grep -q "$INSIDE.21:7,$INSIDE.22:7\|$INSIDE.22:7,$INSIDE.21:7" "$work/vips" || die "OVN balances: $(<"$work/vips")"
	refuses "does not support HTTP protocol" listener create --name http --protocol HTTP --protocol-port 81 web
	refuses "does not support ROUND_ROBIN algorithm" pool create --name robin --protocol TCP --lb-algorithm ROUND_ROBIN --loadbalancer web
	await_balancer web ACTIVE
	stage "in OVN's database; others refused"
}

# refuses WORDS COMMAND…
refuses() {
	! balancer "${@:2}" >"$work/refused" 2>&1 || die "${*:2} was accepted"
	grep -q "$1" "$work/refused" || die "${*:2}: $(tail -n 2 "$work/refused")"
}

# check_served: two guests behind a floating IP answer the node, together and each alone.
check_served() {
	local name port patience=$((SECONDS + PATIENCE))
	for name in one two; do create "$name" guest "behind a load balancer"; done
	for name in one two; do
		await_status "$name" ACTIVE
		await_line "$name" "$PATIENCE" '^GUEST done' >/dev/null
	done
	stage "two guests"
	made "$(inner one)" "$(inner two)"
	floating=$(outside floating ip list -f value -c 'Floating IP Address' | head -n 1)
	if [[ ! $floating ]]; then
		floating=$(outside floating ip create public -f value -c floating_ip_address)
		port=$(balancer show web -f value -c vip_port_id)
		outside floating ip set --port "$port" "$floating"
	fi
	until echoes "$floating" 80; do
		((SECONDS < patience)) || die "the load balancer does not answer at $floating; OVN has: $(northbound --bare --columns=vips find load_balancer | paste -sd ';')"
		sleep 1
	done
	all_answer "with both guests"
	stage "a floating IP answers"
	for name in one two; do
		balancer member delete web "$(inner "$name")"
		await_balancer web ACTIVE
		all_answer "without $name"
		made "$(inner "$name")"
	done
	say "the load balancer answers at $floating, with both guests and with each alone"
	stage "each guest alone"
}

# all_answer WHEN: twenty connections from the node, each of a port of its own.
all_answer() {
	local try
	for try in {1..20}; do
		echoes "$floating" 80 || die "$1 connection $try of 20 is not answered"
	done
}

# in_octavia COMMAND…: in its container.
in_octavia() { kubectl exec deployment/octavia-api -- "$@"; }

# octavia_restarts: how often its container has started again.
octavia_restarts() { kubectl get pods -l app.kubernetes.io/name=octavia-api -o json | jq '[.items[].status.containerStatuses[0].restartCount] | add'; }

# check_ends_of_octavia: without its agent the API ends too, and both are back; without OVN's database it is not ready, and is when that is back.
check_ends_of_octavia() {
	local before patience=$((SECONDS + PATIENCE))
	before=$(octavia_restarts)
	# shellcheck disable=SC2016
	in_octavia sh -c 'for it in /proc/[0-9]*; do
		tr "\0" " " <"$it/cmdline" | grep -q "octavia-driver-agent $" && kill -9 "${it#/proc/}"; done' >/dev/null 2>&1 || true
	until (($(octavia_restarts) > before)); do
		((SECONDS < patience)) || die "without its agent the API goes on"
		sleep 1
	done
	kubectl wait --for=condition=Available --timeout="${PATIENCE}s" deployment/octavia-api >/dev/null
	balancer member create --name more --address "$INSIDE.23" --subnet-id guests --protocol-port 7 web >/dev/null
	await_balancer web ACTIVE
	balancer member delete web more
	await_balancer web ACTIVE
	stage "the agent was killed"
	kubectl scale statefulset/ovn-nb --replicas=0 >/dev/null
	kubectl wait --for=delete --timeout="${PATIENCE}s" pod/ovn-nb-0 >/dev/null
	kubectl delete pod -l app.kubernetes.io/name=octavia-api >/dev/null
	sleep 20
	[[ $(kubectl get deployment/octavia-api -o 'jsonpath={.status.readyReplicas}') != 1 ]] || die "without OVN's database the API is ready"
	kubectl scale statefulset/ovn-nb --replicas=1 >/dev/null
	kubectl wait --for=condition=Available --timeout="$((2 * PATIENCE))s" deployment/octavia-api >/dev/null
	[[ $(balancer provider list -f value -c name) == ovn ]] || die "the provider is not there"
	stage "OVN's database was away"
}

# check_balancers_gone: with the load balancer goes what Octavia, Neutron and OVN had for it.
check_balancers_gone() {
	local left name patience=$((SECONDS + PATIENCE))
	balancer delete --cascade web
	until ! balancer show web >/dev/null 2>&1; do
		((SECONDS < patience)) || die "web is $(balancer show web -f value -c provisioning_status)"
		sleep 1
	done
	until left=$(outside port list --device-owner Octavia -f value -c ID; outside port list --device-owner ovn-lb-vip -f value -c ID
		northbound --bare --columns=name find load_balancer; northbound --bare --columns=_uuid find load_balancer_health_check) && [[ ! ${left//[[:space:]]/} ]]; do
		((SECONDS < patience)) || die "after the load balancer there are: ${left//$'\n'/ }"
		sleep 1
	done
	if [[ $guests ]]; then
		outside floating ip delete "$floating"
		# The end of the cloud ends no guest.
		for name in one two; do outside server delete --wait "$name"; done
	fi
	stage "deleted, nothing left"
}

# check_never_off: Octavia is not turned off under the load balancers of users.
check_never_off() {
	! kubectl patch openstack cloud --type=merge -p '{"spec": {"services": {"octavia": {"enabled": false}}}}' >"$work/off" 2>&1 || die "Octavia was turned off"
	grep -q 'services.octavia.enabled cannot be turned off' "$work/off" || die "$(<"$work/off")"
}
