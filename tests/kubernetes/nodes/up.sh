# Brings the cluster up, or what of it is missing.

nodes=1
cloud=
images=
while (($# > 0)); do
	case $1 in
	--nodes) nodes=${2:-} ;;
	--cloud-provider) cloud=${2:-} ;;
	--images) images=${2:-} ;;
	--api-server)
		[[ ${2:-} == kube-apiserver ]] || die "--api-server ${2:-}: only kube-apiserver is built; the embedded API server cannot reach kubelets yet"
		;;
	*) usage ;;
	esac
	(($# >= 2)) || die "$1 needs a value"
	shift 2
done
[[ $nodes == [1-9] ]] || die "--nodes $nodes: a number from 1 to 9 is expected"
[[ -z $cloud || $cloud == external ]] || die "--cloud-provider $cloud: only 'external' is a provider of kubelets today"
[[ -z $images || -d $images ]] || die "--images $images: there is no such directory"

. "$PARTS/requirements.sh"
. "$PARTS/certificates.sh"
. "$PARTS/namespaces.sh"
. "$PARTS/control-plane.sh"
. "$PARTS/kubelets.sh"
. "$PARTS/add-ons.sh"

requirements "$nodes"
mkdir -p "$STATE"/{log,pki,run}
chmod 700 "$STATE/pki"
STATE=$(cd "$STATE" && pwd)
exec 9>"$STATE/run/lock"
flock -n 9 || die "another 'up' or 'down' is at work in $STATE"

"$HERE/build" etcd kube-apiserver kube-controller-manager kube-scheduler kubelet kube-proxy kubeadm kubectl pause local-volumes forward csi-directory get coredns
stage "programs"
"$ROOT/images/kubeadm" pause coredns >/dev/null
"$ROOT/images/from-programs" localhost/tool:1 --applets "$(command -v busybox)" "$TOOLS/get" >/dev/null
"$ROOT/images/from-programs" localhost/csi-directory:1 "$TOOLS/csi-directory" >/dev/null
stage "images"
certificates "$nodes"
stage "certificates"
machine_of_the_control_plane
for ((n = 1; n <= nodes; n++)); do machine_of_a_node "$n"; done
stage "namespaces"
control_plane "$cloud"
stage "control plane"
for ((n = 1; n <= nodes; n++)); do kubelet "$n" "$cloud" "$images"; done
stage "containerd, images, kubelet, kube-proxy started"
for ((n = 1; n <= nodes; n++)); do pod_network "$n"; done
for ((n = 1; n <= nodes; n++)); do node_ready "$n"; done
stage "nodes Ready"
add_ons
stage "DNS and storage class"
still_running "$nodes"
printf '%-50s %7.1f s\n' "all" "$(((${EPOCHREALTIME/./} - began) / 1000))e-3"
say "ready: export KUBECONFIG=$STATE/kubeconfig; $PROGRAM run 1 COMMAND runs a command on node-1"
