# Starts the cluster, or its missing parts.

nodes=1
cloud=
images=
server=
while (($# > 0)); do
	case $1 in
	--nodes) nodes=${2:-} ;;
	--cloud-provider) cloud=${2:-} ;;
	--images) images=${2:-} ;;
	--api-server) server=${2:-} ;;
	*) usage ;;
	esac
	(($# >= 2)) || die "$1 needs a value"
	shift 2
done
[[ $nodes == [1-9] ]] || die "--nodes $nodes: a number from 1 to 9 is expected"
[[ -z $cloud || $cloud == external ]] || die "--cloud-provider $cloud: only 'external' is a provider of kubelets today"
[[ -z $server || $server == kube-apiserver || $server == ferrostack ]] || die "--api-server $server: there are kube-apiserver and ferrostack"
[[ -z $images || -d $images ]] || die "--images $images: there is no such directory"

. "$PARTS/requirements.sh"
. "$PARTS/certificates.sh"
. "$PARTS/namespaces.sh"
. "$PARTS/control-plane.sh"
. "$PARTS/api-servers.sh"
. "$PARTS/kubelets.sh"
. "$PARTS/add-ons.sh"

requirements "$nodes"
mkdir -p "$STATE"/{log,pki,run}
chmod 700 "$STATE/pki"
STATE=$(cd "$STATE" && pwd)
exec 9>"$STATE/run/lock"
flock -n 9 || die "another 'up' or 'down' is at work in $STATE"
free_port

known=$(cat "$STATE/run/api-server" 2>/dev/null || true)
server=${server:-${known:-kube-apiserver}}
[[ ${known:-$server} == "$server" ]] || die "--api-server $server: this cluster runs on $known; end it with: $PROGRAM down"
echo "$server" >"$STATE/run/api-server"
programs=(control-plane nodes)
[[ $server != ferrostack ]] || programs=(kube-controller-manager kubectl nodes)
"$HERE/build" "${programs[@]}"
[[ $server != ferrostack ]] || build_embedded
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
control_plane "$server" "$cloud"
stage "control plane"
for ((n = 1; n <= nodes; n++)); do kubelet "$n" "$cloud" "$images"; done
stage "containerd, images, kubelet, kube-proxy started"
for ((n = 1; n <= nodes; n++)); do pod_network "$n"; done
for ((n = 1; n <= nodes; n++)); do node_ready "$n"; done
stage "nodes Ready"
add_ons
stage "DNS and storage class"
still_running "$nodes" "$server"
printf '%-50s %7.1f s\n' "all" "$(((${EPOCHREALTIME/./} - began) / 1000))e-3"
say "ready: export KUBECONFIG=$STATE/kubeconfig; $PROGRAM run 1 COMMAND runs a command on node-1"
