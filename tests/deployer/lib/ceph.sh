# A Ceph of a monitor, a manager and one OSD in memory, in the network of the node, and volumes in it: what tests/deployer/volume does.

CEPH=$FERROSTACK_NODE_STATE/ceph

# of_ceph COMMAND…: a command of Ceph as its administrator, on the node.
of_ceph() { "$node" run 1 env "CEPH_CONF=$CEPH/ceph.conf" "$@"; }

# ceph_up: starts it, unless it runs, with pools and a user.
ceph_up() {
	local pool patience=$((SECONDS + 120))
	if [[ ! -s $CEPH/ceph.conf ]] || ! of_ceph timeout 20 ceph osd stat 2>/dev/null | grep -q '1 up'; then
		ceph_down
		mkdir -p "$CEPH"/{mon,mgr,osd,run}
		"$node" run 1 bash -euc "$CEPH_START" start "$CEPH" "$address" >"$work/ceph.log" 2>&1 || die "no Ceph: $(tail -n 3 "$work/ceph.log")"
	fi
	for pool in volumes backups images guests private; do
		of_ceph ceph osd pool ls 2>/dev/null | grep -qx "$pool" || of_ceph sh -c "ceph osd pool create $pool 8 && rbd pool init $pool" >>"$work/ceph.log" 2>&1
	done
	of_ceph ceph auth get-or-create client.openstack mon 'profile rbd' \
		osd 'profile rbd pool=volumes, profile rbd pool=backups, profile rbd pool=images, profile rbd pool=guests' >"$CEPH/openstack.keyring" 2>/dev/null
	until of_ceph timeout 20 ceph df -f json 2>/dev/null | jq -e 'any(.pools[]; .name == "guests")' >/dev/null; do
		((SECONDS < patience)) || die "the Ceph does not tell of its pools"
		sleep 1
	done
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
mgr data=$1/mgr
mgr initial modules=
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
# Without it there is no `ceph df`, and Nova finds no pool.
ceph auth get-or-create mgr.a mon "allow profile mgr" osd "allow *" -o "$1/mgr/keyring"
ceph-mgr -i a --keyring "$1/mgr/keyring"
for try in $(seq 120); do ! ceph osd stat | grep -q "1 up" || exit 0; sleep 0.5; done
exit 1'

# ceph_down: ends it. Its process ids are those of the node.
ceph_down() {
	local pid
	for pid in "$CEPH"/run/*.pid; do
		# shellcheck disable=SC2016
		[[ ! -s $pid ]] || of_ceph sh -c 'grep -q ^ceph "/proc/$1/comm" && kill "$1"' kill "$(<"$pid")" 2>/dev/null || true
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
	local pools='.storage.images.pool = "nowhere" | .storage.volumes.pool = "private"'
	kubectl delete secret ceph --ignore-not-found >/dev/null
	"$binary" openstack plan -f "$work/cloud.yaml" --kubeconfig "$KUBECONFIG" >"$work/plan" 2>&1 || true
	grep -q 'storage.ceph.secretName: there is no Secret ceph in the namespace' "$work/plan" || die "the missing Secret is not told: $(tail -n 3 "$work/plan")"
	of_ceph ceph auth get-or-create client.other mon 'profile rbd' 2>/dev/null | sed 's/client\.other/client.openstack/' >"$CEPH/other.keyring"
	ceph_secret "$CEPH/other.keyring"
	told "$pools" 'storage.ceph.secretName: the Ceph takes no key of client.openstack like this one'
	ceph_secret
	told "$pools | .storage.ceph.monitors = [\"$address:6790\"]" 'storage.ceph.monitors: none of'
	told "$pools" 'storage.images.pool: the Ceph has no pool nowhere' 'storage.volumes.pool: client.openstack may not write to the pool private'
	"$binary" openstack delete --purge-data --kubeconfig "$KUBECONFIG" --timeout "${PATIENCE}s" >"$work/deleted" 2>&1 || die "the deletion failed: $(tail -n 3 "$work/deleted")"
	say "a missing Secret, a wrong key, a monitor that does not answer, a pool that is not there and one without caps were told with their fields"
	stage "bad input"
}

# told FILTER MESSAGE…: `why` has the messages of the cloud with this change.
told() {
	local pid said message patience=$((SECONDS + PATIENCE))
	jq "$1" "$work/cloud.yaml" >"$work/bad.yaml"
	shift
	(cd "$root" && exec "$binary" openstack up -f "$work/bad.yaml" --kubeconfig "$KUBECONFIG") >"$work/told" 2>&1 &
	pid=$!
	for message; do
		until said=$("$binary" openstack why --kubeconfig "$KUBECONFIG" 2>&1 || true) && [[ $said == *"$message"* ]]; do
			kill -0 "$pid" 2>/dev/null || die "'$message' is not told, and the controller has ended: $(tail -n 3 "$work/told")"
			((SECONDS < patience)) || die "'$message' is not told: $(tail -n 3 <<<"$said")"
			sleep 1
		done
	done
	kill -TERM "$pid"
	wait "$pid" || true
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
	outside --os-compute-api-version 2.37 server create --flavor tiny --image small --nic none --wait holder >/dev/null || die "no server: $(outside server show holder -f value -c fault)"
	outside server add volume holder first >/dev/null
	await_volume first in-use volume
	outside server remove volume holder first
	await_volume first available volume
	outside server delete --wait holder
	say "a volume was attached to a server and detached"
	stage "attached and detached"
}

# check_guest_volume: a guest that runs has a volume as a disk, which it writes; it grows meanwhile, and another guest reads it.
check_guest_volume() {
	local domain
	create holder guest volume
	await_status holder ACTIVE
	await_line holder "$PATIENCE" '^GUEST done' >/dev/null
	stage "a guest with its disk in the pool"
	outside server add volume holder first >/dev/null
	await_volume first in-use volume
	await_line holder 120 "^GUEST volume of 2048 MiB begins with ''" >/dev/null
	await_line holder 60 "^GUEST volume of 2048 MiB ends with 'written by a guest'" >/dev/null
	domain=$(outside server show holder -f value -c OS-EXT-SRV-ATTR:instance_name)
	kubectl exec daemonset/libvirt -- virsh domblklist "$domain" >"$work/disks"
	grep -q ' guests/.*_disk$' "$work/disks" && grep -q ' volumes/volume-' "$work/disks" || die "the disks of the guest are: $(<"$work/disks")"
	kubectl exec daemonset/libvirt -- virsh dumpxml --security-info "$domain" >"$work/xml"
	! grep -qF "$(sed -n 's/.*key = //p' "$CEPH/openstack.keyring")" "$work/xml" || die "the key is in the definition of the guest"
	stage "a volume on a guest, written"
	outside --os-volume-api-version 3.42 volume set --size 3 first
	await_line holder 120 "^GUEST volume of 3072 MiB begins with 'written by a guest'" >/dev/null
	await_line holder 60 "^GUEST volume of 3072 MiB ends with 'written by a guest'" >/dev/null
	await_volume first in-use volume
	outside server remove volume holder first
	await_line holder 120 '^GUEST volume is gone' >/dev/null
	await_volume first available volume
	stage "grown under the guest, detached"
	outside volume create --image guest --size 1 --bootable root >/dev/null
	await_volume root available volume
	printf 'volume\n' >"$work/user"
	outside server create --flavor guest --volume root --network guests --security-group guests --user-data "$work/user" rooted >/dev/null
	await_status rooted ACTIVE
	await_line rooted "$PATIENCE" '^GUEST boots 1' >/dev/null
	await_line rooted "$PATIENCE" '^GUEST done' >/dev/null
	outside server add volume rooted first >/dev/null
	await_line rooted 120 "^GUEST volume of 3072 MiB begins with 'written by a guest'" >/dev/null
	outside server delete --wait rooted
	outside server delete --wait holder
	await_volume first available volume
	outside volume delete root
	[[ ! $(of_ceph rbd ls guests 2>/dev/null) ]] || die "the pool of guests has: $(of_ceph rbd ls guests 2>/dev/null | paste -sd ' ')"
	say "a guest wrote a volume that grew meanwhile, and one that was booted from a volume read it; the disks of both are in the Ceph"
	stage "booted from a volume"
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
	# Cinder 28 keeps a volume whose clone was deleted before it, under a name that ends so (docs/reference/not-built.md).
	[[ $fake ]] || name=$(of_ceph rbd ls volumes 2>/dev/null | { grep -v '\.deleted$' || true; } | paste -sd ' ')
	[[ $fake || ! $name ]] || die "the pool of volumes has: $name"
	stage "all deleted"
}

# check_rotation: every password and key is another one, while a client asks; volumes can be made as before.
check_rotation() {
	local controller asking rotation asked failed accounts pod
	(cd "$root" && exec "$binary" --log rollout=debug,deployer=debug,operator=debug openstack up --kubeconfig "$KUBECONFIG") >"$work/controller" 2>>"$work/up.log" &
	controller=$!
	from_outside env "OS_CLIENT_CONFIG_FILE=$logins" "$python" "$here/asking.py" "$work/asking" &
	asking=$!
	until [[ -s $work/asking ]]; do
		kill -0 "$asking" 2>/dev/null || die "the client cannot ask the cloud"
		sleep 0.2
	done
	# All but the administrator, whose tokens end with its password, and who is the client.
	accounts=$(kubectl get secret openstack-accounts -o json |
		jq -r '[.data | keys[] | select(test("^(database|messaging|identity)-") and (endswith("-admin") | not))] | . + ["fernet", "credential"] | join(",")')
	[[ $accounts == *database-cinder*identity-cinder*messaging-cinder* ]] || die "Cinder has no accounts: $accounts"
	"$binary" openstack rotate --only "$accounts" --kubeconfig "$KUBECONFIG" --timeout "$((4 * PATIENCE))s" >"$work/rotate" 2>&1 &
	rotation=$!
	# Pods beside guests are replaced when somebody deletes them; the rotation names them.
	while kill -0 "$rotation" 2>/dev/null; do
		pod=$(tail -n 1 "$work/rotate" | sed -n 's/.*Pod \(nova-compute-[a-z0-9]*\) on .* has former passwords.*/\1/p')
		[[ ! $pod || ! $guests ]] || kubectl delete pod "$pod" --ignore-not-found >/dev/null
		sleep 2
	done
	wait "$rotation" || die "the rotation failed: $(tail -n 5 "$work/rotate")"
	stage "every password but one replaced"
	sleep 5
	touch "$work/asking.end"
	wait "$asking" || die "the client has failed"
	read -r asked failed < <(tail -n 1 "$work/asking")
	say "of $asked requests during the rotation $failed failed"
	((failed == 0 && asked > 50)) || die "requests failed: $(head -n 10 "$work/asking.failed")"
	"$binary" openstack rotate --only identity-admin --kubeconfig "$KUBECONFIG" --timeout "$((2 * PATIENCE))s" >"$work/rotate" 2>&1 || die "the rotation failed: $(tail -n 5 "$work/rotate")"
	kill -TERM "$controller"
	wait "$controller" || true
	up -f "$work/cloud.yaml" --on this-machine >"$work/again" 2>&1 || die "openstack up failed after the rotation: $(tail -n 3 "$work/again")"
	grep -q 'nothing is written' "$work/again" || die "after the rotation there is something to write: $(<"$work/again")"
	outside volume create --size 1 later >/dev/null
	await_volume later available volume
	outside volume delete later
	stage "and that of the administrator"
}
