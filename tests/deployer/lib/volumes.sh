# A cloud that was deleted without its data is made again from them; a volume with data of another cloud is refused before.

# check_volumes [COMMAND]: deletes the cloud and keeps its data, gives its database a foreign mark and takes that back, lets
# COMMAND make the cloud again (`openstack up`), and looks for what was there.
check_volumes() {
	own_marks
	data >"$work/data"
	(($(wc -l <"$work/data") > 20)) || die "only these data are looked for: $(<"$work/data")"
	kept
	refused
	"${1:-made_again}"
	again
	data >"$work/data.now"
	cmp -s "$work/data" "$work/data.now" || die "the data are others than before: $(diff "$work/data" "$work/data.now" | head -n 20)"
	nothing_twice
	say "$(($(wc -l <"$work/data") - 1)) ids and the content of an image are as before the deletion, and nothing is there twice"
	stage "the data of before"
}

# data: ids of what the databases hold, and a digest of what is on Glance's volume.
data() {
	local kind
	for kind in project user endpoint network subnet image; do
		client "$kind" list -f value -c ID | sort | sed "s/^/$kind /"
	done
	client image save probe | sha256sum
}

# volume CLAIM: its directory (tests/kubernetes/local-volumes).
volume() { echo "$FERROSTACK_NODE_STATE/volumes/$(kubectl get persistentvolumeclaim "$1" -o 'jsonpath={.spec.volumeName}')"; }

# own_marks: every volume of a database has the uid of the cloud, which is left in `uid`.
own_marks() {
	local claim
	uid=$(kubectl get secret openstack-accounts -o json | jq -er '.metadata.labels["ferrostack.dev/cloud-uid"]')
	for claim in mariadb-data ovn-nb-data ovn-sb-data; do
		[[ $(<"$(volume "$claim")/ferrostack-cloud") == "$uid" ]] || die "the volume of $claim does not have the mark $uid"
	done
}

# kept: `delete` leaves volumes, passwords and keys.
kept() {
	local left stays='secret/keystone-credential-keys secret/keystone-fernet-keys secret/openstack-accounts'
	"$binary" openstack delete --kubeconfig "$KUBECONFIG" --timeout "$((2 * PATIENCE))s" >"$work/deleted" || die "openstack delete failed: $(tail -n 3 "$work/deleted")"
	grep -q 'volumes, passwords and keys stay' "$work/deleted" || die "it is not said that data stay: $(tail -n 1 "$work/deleted")"
	for ((tries = 0; tries < 60; tries++)); do
		left=$(kubectl get secrets,configmaps,services,statefulsets,deployments,daemonsets,jobs,pods -o name | grep -v '^configmap/kube-root-ca.crt$' | sort | paste -sd ' ')
		[[ $left != "$stays" ]] || break
		sleep 1
	done
	[[ $left == "$stays" ]] || die "beside volumes there are: $left"
	stage "openstack delete"
}

# refused: with another uid in the mark of its volume MariaDB is not started, its data are left alone, and the reason is
# told. With the right one the task that found it passes.
refused() {
	local directory before started
	directory=$(volume mariadb-data)
	content() { find "$directory/data" -printf '%P %s %T@\n' | sort | sha256sum; }
	before=$(content)
	echo 0123456789abcdef0123456789abcdef >"$directory/ferrostack-cloud"
	if "$binary" openstack up -f "$work/cloud.yaml" --kubeconfig "$KUBECONFIG" --exit-when-ready --timeout "$((PATIENCE / 5))s" >"$work/refused" 2>&1; then
		die "a volume with the mark of another cloud was taken"
	fi
	grep -q "^error: not ready after .* mariadb-install: .*volume mariadb-data has data that are not of this cloud.* does not hold $uid" "$work/refused" ||
		die "the volume is not named: $(tail -n 3 "$work/refused")"
	"$binary" openstack why mariadb --kubeconfig "$KUBECONFIG" >"$work/why"
	grep -Eq '^mariadb waits for task mariadb-install-[0-9a-f]{8}, which fails .*: volume mariadb-data has data that are not of this cloud' "$work/why" ||
		die "openstack why does not name the volume: $(<"$work/why")"
	started=$(kubectl get statefulset/mariadb pod/mariadb-0 --ignore-not-found -o name | paste -sd ' ')
	[[ ! $started ]] || die "MariaDB was started on data of another cloud: $started"
	[[ $(content) == "$before" ]] || die "data of another cloud were touched"
	echo "$uid" >"$directory/ferrostack-cloud"
	kubectl wait --for=condition=Complete job -l ferrostack.dev/step=mariadb-install --timeout "${PATIENCE}s" >/dev/null || die "the task fails with the right mark, too"
	say "a volume with the mark of another cloud was named, and MariaDB not started on it"
	stage "a foreign mark"
}

made_again() {
	up -f "$work/cloud.yaml" --kubeconfig "$KUBECONFIG" >"$work/again" || die "openstack up failed on the data of before: $(tail -n 3 "$work/again")"
	stage "openstack up on the data of before"
}

# again: the controller finds nothing to write (`versions` is in steps.sh).
again() {
	local versions
	versions=$(versions)
	up -f "$work/cloud.yaml" --kubeconfig "$KUBECONFIG" >"$work/again" || die "openstack up failed: $(tail -n 3 "$work/again")"
	grep -q 'nothing is written' "$work/again" || die "parameters were written: $(<"$work/again")"
	[[ $(versions) == "$versions" ]] || die "openstack up has written: $(diff <(echo "$versions") <(versions) | head -n 20)"
}
