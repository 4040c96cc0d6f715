# Kubernetes on OpenStack on Kubernetes: a cluster of 1 + 3 machines on the servers of the cloud, whose guests are simulated: without
# Octavia there is one machine of the control plane.

# check_circle: after `check_scenario` or `seed_reference`, which make flavors, images and the external network.
check_circle() {
	local before after ready from config=$work/reference/clouds.yaml guests manager controller_of_clusters
	export OS_CLIENT_CONFIG_FILE=$config KUBERNETES_VERSION=v1.34.2 OPENSTACK_IMAGE_NAME=ubuntu-24.04-kubernetes OPENSTACK_SSH_KEY_NAME='' \
		OPENSTACK_DNS_NAMESERVERS=9.9.9.9 OPENSTACK_CONTROL_PLANE_MACHINE_FLAVOR=m1.medium OPENSTACK_NODE_MACHINE_FLAVOR=m1.small
	circle() { env -u KUBECONFIG "FERROSTACK_DATA_DIR=$work/circle" "$binary" --log warn "$@"; }
	# In the background in place of the shell, so that it is ended with it.
	background() { exec env -u KUBECONFIG "FERROSTACK_DATA_DIR=$work/circle" "$binary" --log warn "$@"; }
	before=$("$python" "$root/tests/openstack/python/inventory.py" demo 2>"$work/stderr") || die "listing the project failed: $(tail -n 1 "$work/stderr")"
	background simulate guests --cloud admin --state-dir "$work/guests" >"$work/guests.log" 2>&1 &
	guests=$!
	helpers+=("$guests")
	circle cloud-conf generate --cloud demo >"$work/circle.conf"
	# On a real cloud `up` runs no cloud controller manager, and the guests wait for one.
	(
		child=''
		trap '[[ ! $child ]] || kill "$child"; exit 0' TERM
		while :; do
			if circle get kubeconfig circle >"$work/circle.kubeconfig" 2>/dev/null; then
				env -u KUBECONFIG "$binary" --log warn cloud-controller-manager --cloud-config "$work/circle.conf" --kubeconfig "$work/circle.kubeconfig" --secure-port 0 >>"$work/ccm.log" 2>&1 &
				child=$!
				wait "$child" || true
				child=''
			fi
			sleep 1
		done
	) &
	manager=$!
	helpers+=("$manager")
	from=${EPOCHREALTIME/./}
	circle up --cloud demo --cluster-name circle --flavor without-lb --control-plane-machine-count 1 --worker-machine-count 3 \
		--exit-when-ready --timeout "$((4 * PATIENCE))s" >"$work/circle.log" 2>&1 || die "the cluster did not come up: $(tail -n 5 "$work/circle.log")"
	say "a cluster of 1 + 3 machines on the cloud was ready after $(since "$from") s"
	background up --cloud demo >"$work/circle-again.log" 2>&1 &
	controller_of_clusters=$!
	helpers+=("$controller_of_clusters")
	circle get kubeconfig circle >"$work/circle.kubeconfig"
	ready=$("$root/target/tools/kubectl" --kubeconfig "$work/circle.kubeconfig" get nodes --no-headers | awk '$2 == "Ready"' | wc -l)
	[[ $ready == 4 ]] || die "$ready nodes of 4 are Ready"
	until circle describe cluster circle >/dev/null 2>&1; do sleep 0.5; done
	from=${EPOCHREALTIME/./}
	circle delete cluster circle --wait --timeout "$((2 * PATIENCE))s" >"$work/circle-delete.log" 2>&1 || die "the cluster is not deleted: $(tail -n 3 "$work/circle-delete.log")"
	say "it had 4 nodes Ready, and was deleted after $(since "$from") s"
	after=$("$python" "$root/tests/openstack/python/inventory.py" demo 2>"$work/stderr")
	# Neutron makes the default group with the first request for groups.
	[[ $(grep -v ' default$' <<<"$after") == "$(grep -v ' default$' <<<"$before")" ]] || die "the cluster left behind or took: $(diff <(echo "$before") <(echo "$after") | grep '^[<>]' | paste -sd ' ')"
	kill "${helpers[@]}" 2>/dev/null || true
	helpers=()
	unset OS_CLIENT_CONFIG_FILE
	stage "Kubernetes on the cloud"
}
