# For scripts with $ferrostack, $work and begin NAME COMMAND…: nodes wait for a cloud controller manager, which `up` starts
# on its own cloud only, and `manager` never.

# begin_ccm CLUSTER FLAG…: one for a cluster on the cloud of $work/clouds.yaml, from the moment its kubeconfig is there. The
# flags say where its management cluster is.
begin_ccm() {
	OS_CLIENT_CONFIG_FILE=$work/clouds.yaml "$ferrostack" cloud-conf generate --cloud simulated >"$work/cloud.conf"
	# shellcheck disable=SC2016 # Expanded by the other shell.
	begin ccm bash -c 'work=$1 ferrostack=$2 running="" && shift 2
		trap "kill \$running 2>/dev/null; exit" TERM
		while :; do
			if "$ferrostack" get kubeconfig "$@" >"$work/workload"; then
				# It ends while the API server is not up yet, and a kubelet would start it again.
				"$ferrostack" cloud-controller-manager --cloud-config "$work/cloud.conf" --kubeconfig "$work/workload" --secure-port 0 &
				running=$! && wait "$running"
			fi
			sleep 0.5
		done' ccm "$work" "$ferrostack" "$@"
}
