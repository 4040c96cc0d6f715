# For scripts with $ferrostack, $work and begin NAME COMMAND…: nodes wait for a cloud controller manager, which `up` starts
# on its own cloud only, and `manager` never.

# begin_ccm CLUSTER FLAG…: one for a cluster on the cloud of $work/clouds.yaml, from the moment its kubeconfig is there. The
# flags say where its management cluster is.
begin_ccm() {
	OS_CLIENT_CONFIG_FILE=$work/clouds.yaml "$ferrostack" cloud-conf generate --cloud simulated >"$work/cloud.conf"
	# shellcheck disable=SC2016 # Expanded by the other shell.
	begin ccm bash -c 'work=$1 ferrostack=$2 && shift 2
		until "$ferrostack" get kubeconfig "$@" >"$work/workload"; do sleep 0.5; done
		exec "$ferrostack" cloud-controller-manager --cloud-config "$work/cloud.conf" --kubeconfig "$work/workload" --secure-port 0' \
		ccm "$work" "$ferrostack" "$@"
}
