# The scenario of the two OpenStacks (docs/project/simulator.md) on the cloud, through the edge, beside the record of the reference.

# reference_parameters: limits and physical networks as tests/openstack has them.
reference_parameters() {
	jq -c '.compute.fake.hypervisors = 6 | .network.physical += [{name: "physnet1", vlans: "100:2999"}] | .services = {
		nova: {config: {quota: {instances: 1000, cores: 4000, ram: 8000000, key_pairs: 500, server_groups: 500, server_group_members: 100}}},
		neutron: {config: {DEFAULT: {max_allowed_address_pair: 100, max_routes: 100}, quotas: {quota_network: 1000, quota_subnet: 1000,
			quota_port: 10000, quota_router: 500, quota_floatingip: 2000, quota_security_group: 2000, quota_security_group_rule: 20000}}}}'
}

# seed_reference: the content of the reference cloud.
seed_reference() {
	local state=$work/reference
	mkdir -p "$state/data"
	password identity-admin >"$state/password"
	kubectl get secret cloud-admin -o json | jq -er '.data["ca.crt"] | @base64d' >"$state/ca.crt"
	from_outside env "STATE=$state" HOSTS=6 "AUTH_URL=https://$public:5000/v3" "CACERT=$state/ca.crt" \
		"$python" "$root/tests/openstack/python/seed.py" deployed 2>"$work/seed" || die "seeding failed: $(tail -n 1 "$work/seed")"
	stage "the content of the reference"
}

# check_scenario: each step whose services are there, and what the clients of the reference are tried with.
check_scenario() {
	local client clouds=$work/reference/clouds.yaml
	seed_reference
	(cd "$root" && from_outside env "FERROSTACK_DEPLOYED_CLOUDS=$clouds" "FERROSTACK_DEPLOYED_RELEASE=$release" cargo test --workspace --locked --test openstack_differential \
		a_deployed_cloud -- --nocapture) >"$work/scenario" 2>&1 || die "the scenario: $(grep -v '^ *Compiling' "$work/scenario" | head -c 100000)"
	say "$(grep 'compared with the reference' "$work/scenario")"
	stage "the scenario"
	from_outside env "FERROSTACK_REAL_CLOUDS=$clouds" "$root/tests/openstack/check" || die "tests/openstack/check failed"
	stage "the check of the reference"
	for client in ${FERROSTACK_CLIENTS:-debian}; do
		from_outside env "FERROSTACK_REAL_CLOUDS=$clouds" "FERROSTACK_BINARY=$binary" "$root/tests/openstack/clients" "$client" >"$work/clients" 2>&1 ||
			die "the client $client: $(tail -n 30 "$work/clients")"
		say "$(grep "$client/real:" "$work/clients" | paste -sd ';')"
		stage "the client $client"
	done
}
