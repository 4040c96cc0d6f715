# Two real nodes with the Cinder CSI driver in its pods, as `ferrostack generate cinder-csi-plugin` prints them. The cloud is the
# simulated one, and a disk is a loop device. The script that reads this has set program, root and here, and has read lib.sh.

[[ $(id -u) == 0 ]] || die "root is needed"
for needed in go curl jq python3 losetup strip mkfs.ext4 mkfs.xfs mkfs.btrfs; do
	command -v "$needed" >/dev/null || die "$needed is needed"
done
work=$(mktemp -d "/tmp/ferrostack-${program##*/}.XXXXXX")
export FERROSTACK_NODE_STATE=$work/node FERROSTACK_NODE_PORT=${FERROSTACK_NODE_PORT:-26643} OS_CLIENT_CONFIG_FILE=$work/clouds.yaml
cluster=$root/tests/kubernetes/node
tools=$root/target/tools
kubectl() { "$tools/kubectl" --kubeconfig "$FERROSTACK_NODE_STATE/kubeconfig" "$@"; }
on() { "$cluster" run "$@"; }
# of_machine N: the first process of machine N.
of_machine() { cut -d' ' -f1 "$FERROSTACK_NODE_STATE/machine-$1/first"; }

finish() {
	local status=$? pod
	trap - EXIT ERR
	set +e
	if [[ $status != 0 ]]; then
		kubectl get nodes,pods,pv,pvc,volumeattachments,volumesnapshots,volumesnapshotcontents,csinodes -A -o yaml >"$work/objects" 2>&1
		kubectl get events -A --sort-by=.lastTimestamp >"$work/events" 2>&1
		volumes >"$work/volumes" 2>&1
		for pod in $(kubectl -n kube-system get pods -o name | grep csi-cinder); do
			kubectl -n kube-system logs --all-containers --prefix "$pod" >>"$work/driver.log" 2>&1
		done
		cp -r "$FERROSTACK_NODE_STATE/log" "$work/node-log"
	fi
	if [[ ${FERROSTACK_KEEP:-} ]]; then
		say "the cluster runs, with its state in $work" >&2
		exit "$status"
	fi
	end_all
	"$cluster" down ${FERROSTACK_KEEP_IMAGES:+--keep-images} >"$work/down.log" 2>&1
	# Of block volumes kubelets have devices of their own; all can go now that the pods' mounts are gone.
	upper_devices | while read -r device; do losetup -d "$device"; done
	end_all
	if [[ $status != 0 ]]; then
		rm -rf "$work/disks" "$work/snapshots"
		say "logs are in $work" >&2
	else
		rm -rf "$work"
	fi
	exit "$status"
}
trap finish EXIT
trap 'exit 130' INT TERM
trap 'say "line $LINENO: $BASH_COMMAND" >&2' ERR

# upper_devices: the loop devices that kubelets have put on those of `disks`, which are found by the inodes of these.
upper_devices() {
	local inodes
	inodes=$(losetup -nO NAME,BACK-FILE | awk -v at="$work/disks/" 'index($2, at) == 1 {print $1}' | xargs -r stat -c '%i/%Hd:%Ld')
	losetup -nO NAME,BACK-INO,BACK-MAJ:MIN | awk -v all="$inodes" 'BEGIN {split(all, each); for (n in each) ours[each[n]]} ($2 "/" $3) in ours {print $1}'
}

# images: those of the manifests, from the program under test and from the sidecars' Go modules.
images() {
	local layer image name
	sidecars=()
	mkdir "$work/programs"
	strip -o "$work/programs/ferrostack" "$FERROSTACK_BINARY"
	layer=$("$root/images/from-packages" --layer localhost/file-systems:1 e2fsprogs xfsprogs btrfs-progs)
	driver=$("$root/images/from-programs" localhost/ferrostack:1 --into csi --on "$layer" "$work/programs/ferrostack")
	for image in $("$FERROSTACK_BINARY" generate cinder-csi-plugin | awk '$1 == "image:" && $2 ~ /sig-storage/ {print $2}'); do
		name=${image##*/}
		sidecars+=("$("$root/images/from-programs" "$image" --into csi "$tools/${name%:*}")")
	done
}

# import N ARCHIVE …: into the containerd of node N.
import() {
	local n=$1 archive
	shift
	for archive in "$@"; do on "$n" ctr -n k8s.io images import "$archive" >>"$work/images.log" || die "node-$n does not import $archive"; done
}

# cluster_up: two nodes with the driver, which is registered on both.
cluster_up() {
	"$root/tests/kubernetes/build" csi-sidecars kubectl
	FERROSTACK_SNAPSHOT_KINDS=$(cd "$root/tests/kubernetes/csi-sidecars" && go list -m -f '{{.Dir}}' github.com/kubernetes-csi/external-snapshotter/client/v8)/config/crd
	if [[ -z ${FERROSTACK_BINARY:-} ]]; then
		(cd "$root" && cargo build -q -p ferrostack)
		FERROSTACK_BINARY=$root/target/debug/ferrostack
	fi
	images
	# Of the cgroups of its machines.
	in_machine=node-$(cksum <<<"$FERROSTACK_NODE_STATE" | cut -d' ' -f1)-
	"$cluster" up --nodes 2 >"$work/up.log" 2>&1 || die "the nodes do not start: $(tail -n 2 "$work/up.log")"
	say "two nodes are up after $SECONDS s"
	# The controller runs on node-1.
	import 1 "${sidecars[@]}" "$driver"
	import 2 "$driver"
	say "the images are there after $SECONDS s"
	cloud_up none
	begin storage storage
	begin reach reach
	for n in 1 2; do hardware "$n" nova; done
	# The machines of the cluster are two, and one of them will fail.
	printf '%s\n' 'csi: {plugin: {controllerPlugin: {nodeSelector: {kubernetes.io/hostname: node-1}}}}' >"$work/values.yaml"
	kinds_up --image localhost/ferrostack:1 --cloud simulated --values "$work/values.yaml"
	begin snapshot-controller "$tools/snapshot-controller" --kubeconfig "$FERROSTACK_NODE_STATE/kubeconfig" -v 2
	for n in 1 2; do await 120 "the driver is not registered on node-$n" is_registered "$n"; done
	say "the driver's pods are registered on both nodes after $SECONDS s"
}

# reach: the driver of the Deployment reaches the cloud, which listens on the loopback of this machine alone, on that of its pod.
# For ever.
reach() {
	local pid
	declare -A reached
	trap 'kill $(jobs -p); exit' TERM
	while :; do
		for pid in $(pgrep -f -- 'cinder-csi-plugin .*--cloud-config=/etc/config/cloud.conf'); do
			if [[ -z ${reached[$pid]:-} ]] && grep -q "$in_machine" "/proc/$pid/cgroup"; then
				nsenter -t "$pid" -n "$tools/forward" "${url#http://}" "/proc/$$/ns/net" "${url#http://}" &
				reached[$pid]=1
			fi
		done
		sleep 0.3
	done
}

# hardware N ZONE: the machine of node N is a new server of the cloud from now on, with its metadata and its disks.
hardware() {
	local n=$1 pid
	pid=$(of_machine "$n")
	[[ -z ${servers[n]:-} ]] || kill "${metadata[n]}" "${disks[n]}" 2>/dev/null || true
	servers[n]=$(server "node-$n" "$2")
	on "$n" sh -c 'mountpoint -q /dev/disk || { mkdir -p /dev/disk && mount -t tmpfs tmpfs /dev/disk && mkdir /dev/disk/by-id; }
		ip address replace 169.254.169.254/32 dev lo'
	# shellcheck disable=SC2016 # expanded by the shell of the metadata service
	begin "metadata-$n" nsenter -t "$pid" -n bash -c '. "$1/lib.sh"; metadata "$2" "$3"' bash "$here" "${servers[n]}" "$2"
	metadata[n]=$!
	begin "disks-$n" disks "${servers[n]}" "/proc/$pid/root/dev/disk/by-id"
	disks[n]=$!
}
servers=() metadata=() disks=()

# is_registered N: with the server that it is.
is_registered() { [[ $(kubectl get csinode "node-$1" -o json | jq -r '.spec.drivers[]? | select(.name == "cinder.csi.openstack.org") | "\(.nodeID) \(.topologyKeys[0])"') == "${servers[$1]} topology.cinder.csi.openstack.org/zone" ]]; }

# sidecars_were_permitted: as `permitted`, of the pods.
sidecars_were_permitted() {
	local container
	for container in csi-attacher csi-provisioner csi-snapshotter csi-resizer; do
		kubectl -n kube-system logs deployment/csi-cinder-controllerplugin -c "$container" >"$work/$container.log"
	done
	permitted
}

# --- claims and pods

# claim NAME CLASS GiB [MODE [ACCESS [SOURCE-KIND SOURCE]]]
claim() {
	local source=
	[[ -z ${6:-} ]] || source="dataSource: {kind: $6, name: $7$([[ $6 != VolumeSnapshot ]] || echo ', apiGroup: snapshot.storage.k8s.io')}"
	kubectl apply -f - >/dev/null <<-YAML
		apiVersion: v1
		kind: PersistentVolumeClaim
		metadata: {name: $1, namespace: default}
		spec:
		  accessModes: [${5:-ReadWriteOnce}]
		  volumeMode: ${4:-Filesystem}
		  storageClassName: $2
		  resources: {requests: {storage: ${3}Gi}}
		  $source
	YAML
}
# pod NAME NODE CLAIM [block]: as a user who is not root, in a group of its own.
pod() {
	local use='volumeMounts: [{name: data, mountPath: /data}]'
	[[ ${4:-} != block ]] || use='volumeDevices: [{name: data, devicePath: /dev/data}]'
	kubectl apply -f - >/dev/null <<-YAML
		apiVersion: v1
		kind: Pod
		metadata: {name: $1, namespace: default}
		spec:
		  nodeSelector: {kubernetes.io/hostname: node-$2}
		  terminationGracePeriodSeconds: 1
		  securityContext: {fsGroup: 2000}
		  containers:
		  - name: tool
		    image: localhost/tool:1
		    command: [sh, -c, "trap 'exit 0' TERM; while :; do sleep 1; done"]
		    $use
		  volumes: [{name: data, persistentVolumeClaim: {claimName: $3}}]
	YAML
}
is_running() { [[ $(kubectl get pod "$1" -o jsonpath='{.status.containerStatuses[0].ready}') == true ]]; }
in_pod() { kubectl exec "$1" -- sh -c "$2"; }
# attachments CLAIM …: of their volumes to servers, as Cinder has them.
attachments() {
	local handles
	handles=$(kubectl get pv -o json | jq -c '[.items[] | select(.spec.claimRef.name | IN($ARGS.positional[])) | .spec.csi.volumeHandle]' --args "$@")
	all_attachments | jq -c --argjson handles "$handles" '[.attachments[] | select(.volume_id | IN($handles[])) | [.id, .volume_id, .instance, .status]] | sort'
}
all_attachments() { ask -H 'openstack-api-version: volume 3.27' "$at_volume/$project/attachments/detail"; }
size_in() { in_pod "$1" 'df -k /data' | awk 'END {print $(NF-4)}'; }

# machine_ends N: at once, with all of its processes and mounts. A new machine would find the cgroups of its pods.
machine_ends() {
	kill -KILL "$(of_machine "$1")"
	await 20 "cgroups of machine $1 are left" without_cgroups "$in_machine$1"
}
without_cgroups() {
	find /sys/fs/cgroup -depth -type d -path "*/$1*" -exec rmdir {} + 2>/dev/null
	[[ -z $(find /sys/fs/cgroup -maxdepth 2 -type d -name "$1" -print -quit) ]]
}
