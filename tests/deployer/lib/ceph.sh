# A Ceph of a monitor and one OSD in memory, in the network of the node, and volumes in it: what tests/deployer/volume does.

CEPH=$FERROSTACK_NODE_STATE/ceph

# of_ceph COMMAND…: a command of Ceph as its administrator, on the node.
of_ceph() { "$node" run 1 env "CEPH_CONF=$CEPH/ceph.conf" "$@"; }

# ceph_up: starts it, unless it runs, with pools and a user.
ceph_up() {
	local pool
	if [[ ! -s $CEPH/ceph.conf ]] || ! of_ceph timeout 20 ceph osd stat 2>/dev/null | grep -q '1 up'; then
		ceph_down
		mkdir -p "$CEPH"/{mon,osd,run}
		"$node" run 1 bash -euc "$CEPH_START" start "$CEPH" "$address" >"$work/ceph.log" 2>&1 || die "no Ceph: $(tail -n 3 "$work/ceph.log")"
	fi
	for pool in volumes backups images guests private; do
		of_ceph ceph osd pool ls 2>/dev/null | grep -qx "$pool" || of_ceph sh -c "ceph osd pool create $pool 8 && rbd pool init $pool" >>"$work/ceph.log" 2>&1
	done
	of_ceph ceph auth get-or-create client.openstack mon 'profile rbd' \
		osd 'profile rbd pool=volumes, profile rbd pool=backups, profile rbd pool=images, profile rbd pool=guests' >"$CEPH/openstack.keyring" 2>/dev/null
	stage "a Ceph with a monitor and one OSD"
}

# Arguments: directory, address.
# shellcheck disable=SC2016
CEPH_START='
fsid=$(cat /proc/sys/kernel/random/uuid)
cat >"$1/ceph.conf" <<X
[global]
fsid=$fsid
mon host=$2:6789
public addr=$2
auth cluster required=cephx
auth service required=cephx
auth client required=cephx
keyring=$1/keyring
osd pool default size=1
osd pool default min size=1
mon allow pool size one=true
mon warn on pool no redundancy=false
mon data avail crit=0
mon data avail warn=2
run dir=$1/run
pid file=$1/run/\$name.pid
admin socket=$1/run/\$name.asok
log file=$1/\$name.log
mon data=$1/mon
osd data=$1/osd
osd objectstore=memstore
memstore device bytes=1G
osd crush chooseleaf type=0
X
export CEPH_CONF=$1/ceph.conf
ceph-authtool --create-keyring "$1/keyring" --gen-key -n mon. --cap mon "allow *"
ceph-authtool "$1/keyring" --gen-key -n client.admin --cap mon "allow *" --cap osd "allow *" --cap mgr "allow *"
monmaptool --create --fsid "$fsid" --addv a "[v1:$2:6789]" "$1/monmap"
ceph-mon --mkfs -i a --monmap "$1/monmap" --keyring "$1/keyring"
ceph-mon -i a
osd=$(cat /proc/sys/kernel/random/uuid)
echo "{\"cephx_secret\": \"$(ceph-authtool --gen-print-key)\"}" >"$1/osd.json"
timeout 60 ceph osd new "$osd" -i "$1/osd.json"
ceph auth get osd.0 -o "$1/osd/keyring"
ceph-osd -i 0 --mkfs --osd-uuid "$osd" --keyring "$1/osd/keyring"
ceph-osd -i 0 --keyring "$1/osd/keyring"
for try in $(seq 120); do ! ceph osd stat | grep -q "1 up" || exit 0; sleep 0.5; done
exit 1'

ceph_down() {
	local pid
	for pid in "$CEPH"/run/*.pid; do
		[[ ! -s $pid ]] || kill "$(<"$pid")" 2>/dev/null || true
	done
	rm -rf --one-file-system "$CEPH"
}

# ceph_secret [KEYRING]: the Secret of the cloud.
ceph_secret() {
	kubectl create secret generic ceph --from-file=keyring="${1:-$CEPH/openstack.keyring}" --dry-run=client -o json |
		kubectl apply --server-side --force-conflicts -f - >/dev/null
}

# check_bad_ceph: each mistake is told with its field, before a program uses the Ceph.
check_bad_ceph() {
	kubectl delete secret ceph --ignore-not-found >/dev/null
	"$binary" openstack plan -f "$work/cloud.yaml" --kubeconfig "$KUBECONFIG" >"$work/plan" 2>&1 || true
	grep -q 'storage.ceph.secretName: there is no Secret ceph in the namespace' "$work/plan" || die "the missing Secret is not told: $(tail -n 3 "$work/plan")"
	ceph_secret
	tried '.storage.images.pool = "nowhere"' 'storage.images.pool: the Ceph has no pool nowhere'
	tried '.storage.volumes.pool = "private"' 'storage.volumes.pool: client.openstack may not write to the pool private'
	tried ".storage.ceph.monitors = [\"$address:6790\"]" 'storage.ceph.monitors: none of'
	say "a missing Secret, a pool that is not there, one without caps and a monitor that does not answer were told with their fields"
	stage "bad input"
}

# tried FILTER MESSAGE: the task of such a cloud fails with the message, as a Job beside the cloud would.
tried() {
	local job="$work/job.json"
	jq "$1" "$work/cloud.yaml" >"$work/bad.yaml"
	"$binary" openstack plan -f "$work/bad.yaml" --kubeconfig "$KUBECONFIG" -o json >"$work/plan.json" 2>"$work/stderr" || true
	timeout "$PATIENCE" "$binary" openstack up -f "$work/bad.yaml" --kubeconfig "$KUBECONFIG" --exit-when-ready --timeout "$((PATIENCE / 2))s" >"$job" 2>&1 || true
	"$binary" openstack why --kubeconfig "$KUBECONFIG" >"$work/why" 2>&1 || true
	grep -qF "$2" "$work/why" "$job" || die "'$2' is not told: $(tail -n 3 "$work/why") $(tail -n 2 "$job")"
	"$binary" openstack delete --purge-data --kubeconfig "$KUBECONFIG" --timeout "${PATIENCE}s" >/dev/null 2>&1 || true
}

# await_volume NAME STATUS [KIND]
await_volume() {
	local patience=$((SECONDS + PATIENCE)) status
	until status=$(outside "${@:3}" show "$1" -f value -c status) && [[ $status == "$2" ]]; do
		[[ $status != error* ]] || die "$1 is in $status: $(outside volume message list -f value 2>/dev/null | tail -n 2)"
		((SECONDS < patience)) || die "$1 is ${status:-not there}, and not $2"
		sleep 1
	done
}

# check_volumes: made, grown, a snapshot of it, another one of that, and of itself; backed up where there is a pool.
check_volumes() {
	local name
	for name in api:cinder-scheduler volume:cinder-volume; do
		[[ $(outside volume service list -f json | jq -r --arg name "${name#*:}" '.[] | select(.Binary == $name) | .State') == up ]] || die "${name#*:} is not up"
	done
	outside volume create --size 1 first >/dev/null
	await_volume first available volume
	outside volume set --size 2 first
	await_volume first available volume
	[[ $(outside volume show first -f value -c size) == 2 ]] || die "the volume has not grown"
	outside volume snapshot create --volume first point >/dev/null
	await_volume point available volume snapshot
	outside volume create --snapshot point --size 2 restored >/dev/null
	await_volume restored available volume
	outside volume create --source first --size 2 copied >/dev/null
	await_volume copied available volume
	stage "a volume, grown, a snapshot, a clone"
	[[ $fake ]] && return
	outside volume backup create --name backup first >/dev/null
	await_volume backup available volume backup
	stage "a backup"
}

# check_pools: the volumes and an image are where the parameters say.
check_pools() {
	local id
	id=$(outside volume show first -f value -c id)
	of_ceph rbd ls volumes 2>/dev/null | grep -qx "volume-$id" || die "volume-$id is not in the pool: $(of_ceph rbd ls volumes 2>/dev/null | paste -sd ' ')"
	[[ $(of_ceph rbd ls backups 2>/dev/null) ]] || die "the pool of backups is empty"
	head -c 1048576 /dev/urandom >"$work/image"
	is_there image stored || outside image create --disk-format raw --container-format bare --file "$work/image" stored >/dev/null
	id=$(outside image show stored -f value -c id)
	of_ceph rbd ls images 2>/dev/null | grep -qx "$id" || die "the image is not in its pool"
	outside image save --file "$work/saved" stored
	cmp "$work/image" "$work/saved" || die "the image is another one"
	# In one Ceph it is a clone.
	outside volume create --image stored --size 1 cloned >/dev/null
	await_volume cloned available volume
	id=$(outside volume show cloned -f value -c id)
	of_ceph rbd info "volumes/volume-$id" 2>/dev/null | grep -q 'parent: images/' || die "a volume of an image is no clone of it"
	say "volumes, backups and images are in their pools; a volume of an image is its clone"
	stage "an image in its pool"
}

# check_attached: a volume on an imaginary server, and off it.
check_attached() {
	is_there flavor tiny || outside flavor create --ram 64 --disk 1 --vcpus 1 tiny >/dev/null
	is_there image small || { head -c 4096 /dev/urandom >"$work/image" && outside image create --disk-format raw --container-format bare --file "$work/image" small >/dev/null; }
	outside server create --flavor tiny --image small --nic none --wait holder >/dev/null || die "no server: $(outside server show holder -f value -c fault)"
	outside server add volume holder first >/dev/null
	await_volume first in-use volume
	outside server remove volume holder first
	await_volume first available volume
	outside server delete --wait holder
	say "a volume was attached to a server and detached"
	stage "attached and detached"
}

# check_guest_volume: a guest that runs has a volume as a disk, grown while it runs, and one boots from its own pool.
check_guest_volume() {
	create holder guest 'volume'
	await_status holder ACTIVE
	outside server add volume holder first >/dev/null
	await_volume first in-use volume
	kubectl exec daemonset/libvirt -- sh -c 'virsh --quiet list --uuid | head -n 1 | xargs virsh domblklist' >"$work/disks"
	grep -q 'volumes/volume-' "$work/disks" || die "the guest has no disk in the pool: $(<"$work/disks")"
	kubectl exec daemonset/libvirt -- sh -c 'virsh --quiet list --uuid | head -n 1 | xargs virsh dumpxml --security-info' >"$work/xml"
	! grep -qF "$(sed -n 's/.*key = //p' "$CEPH/openstack.keyring")" "$work/xml" || die "the key is in the definition of the guest"
	outside --os-volume-api-version 3.42 volume set --size 3 first
	await_volume first in-use volume
	outside server remove volume holder first
	await_volume first available volume
	outside server delete --wait holder
	say "a guest that runs had a volume, which grew, and its own disk in the pool"
	stage "attached to a guest"
}

# check_gone: nothing is left in the pools.
check_gone() {
	local name patience=$((SECONDS + PATIENCE))
	[[ $fake ]] || outside volume backup delete backup
	for name in restored copied; do outside volume delete "$name"; done
	[[ $fake ]] || outside volume delete cloned
	until [[ $(outside volume list -f value -c Name) == first ]]; do
		((SECONDS < patience)) || die "volumes are left: $(outside volume list -f value | paste -sd ';')"
		sleep 1
	done
	outside volume snapshot delete point
	until [[ ! $(outside volume snapshot list -f value -c ID) ]]; do
		((SECONDS < patience)) || die "a snapshot is left"
		sleep 1
	done
	outside volume delete first
	until [[ ! $(outside volume list -f value -c ID) ]]; do
		((SECONDS < patience)) || die "volumes are left: $(outside volume list -f value | paste -sd ';')"
		sleep 1
	done
	[[ $fake ]] || [[ ! $(of_ceph rbd ls volumes 2>/dev/null) ]] || die "the pool of volumes has: $(of_ceph rbd ls volumes 2>/dev/null | paste -sd ' ')"
	stage "all deleted"
}
