# What the tests of the Cinder CSI driver share: a simulated cloud, its servers and their disks, the driver, the sidecars.
# The script that reads this has set program, root and work.

say() { printf '%s: %s\n' "$program" "$*"; }
die() {
	say "$*" >&2
	exit 1
}
pids=()
# The project's id, once there is a login.
project=''
url=http://127.0.0.1:${CLOUD_PORT:-8774}
# Where the cloud's services answer; those of another cloud are set by its script.
at_identity=$url/identity/v3 at_compute=$url/compute/v2.1 at_image=$url/image/v2 at_volume=$url/volume/v3

# begin NAME COMMAND …: in the background, ended by `end_all`.
begin() {
	local log=$work/$1.log
	shift
	"$@" >>"$log" 2>&1 </dev/null &
	pids+=($!)
}

# await SECONDS WHAT COMMAND …: until the command succeeds; on a busy machine, `patience` times as long.
patience=1
await() {
	local deadline=$((SECONDS + $1 * patience)) what=$2
	shift 2
	until "$@" >/dev/null 2>&1; do
		((SECONDS < deadline)) || die "after waiting long enough: $what"
		sleep 0.3
	done
}

# end_all: what was begun, and the loop devices of `disks`.
end_all() {
	local pid device
	for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null; done
	for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null; done
	losetup -nO NAME,BACK-FILE 2>/dev/null | awk -v at="$work/disks/" 'index($2, at) == 1 {print $1}' | while read -r device; do losetup -d "$device"; done
}

# --- the cloud

# cloud_up LATENCY: with logins, and a cloud.conf for the driver.
cloud_up() {
	begin cloud "$FERROSTACK_BINARY" --log warn simulate --listen "${url#http://}" --clouds-file "$work/clouds.yaml" --password secret --latency "$1"
	await 60 "the simulated cloud does not start" curl -sf "$at_identity"
	log_in demo
	log_in admin
	project=$(cat "$work/demo.project")
	as admin -X PUT -d '{"quota_set":{"volumes":-1,"gigabytes":-1,"snapshots":-1}}' "$at_volume/$(cat "$work/admin.project")/os-quota-sets/$project" >/dev/null ||
		die "the quota cannot be set"
	printf '[Global]\nuse-clouds = true\nclouds-file = %s\ncloud = simulated\n' "$work/clouds.yaml" >"$work/cloud.conf"
	chmod 0600 "$work/cloud.conf"
}

# log_in USER: a token for the project of the same name, in USER.token, and the id of the project in USER.project.
log_in() {
	local body
	body=$(jq -n --arg user "$1" '{auth: {identity: {methods: ["password"], password: {user: {name: $user, password: "secret", domain: {id: "default"}}}},
		scope: {project: {name: $user, domain: {id: "default"}}}}}')
	curl -sf -D "$work/headers" -o "$work/answer" -H 'content-type: application/json' -d "$body" "$at_identity/auth/tokens"
	awk 'tolower($1) == "x-subject-token:" {print $2}' "$work/headers" | tr -d '\r' >"$work/$1.token"
	jq -r .token.project.id "$work/answer" >"$work/$1.project"
}

# as USER CURL-ARGUMENT …
as() {
	local user=$1 version=()
	shift
	# Cinder refuses versions of other services alone.
	[[ $* != *"$at_compute"* ]] || version=(-H 'openstack-api-version: compute 2.60')
	curl -sf -H "x-auth-token: $(cat "$work/$user.token")" -H 'content-type: application/json' "${version[@]}" "$@"
}
ask() { as demo "$@"; }
volumes() { ask "$at_volume/$project/volumes/detail"; }
snapshots() { ask "$at_volume/$project/snapshots/detail"; }
is_count() { [[ $(volumes | jq '.volumes | length') == "$1" ]]; }
no_snapshots() { [[ $(snapshots | jq '.snapshots | length') == 0 ]]; }
none_left() { is_count 0 && no_snapshots; }

# fault SERVICE METHOD ROUTE: its next request is carried out and answered with 504.
fault() {
	curl -sf -u admin:secret -d "{\"service\":\"$1\",\"method\":\"$2\",\"route\":\"$3\",\"count\":1,\"after_change\":true,\"status\":504}" "$url/_simulator/faults" >/dev/null
}

# server NAME [ZONE]: a new one; prints its id.
server() {
	local flavor image id
	flavor=$(ask "$at_compute/flavors" | jq -r '.flavors[0].id')
	image=$(ask "$at_image/images" | jq -r '.images[0].id')
	id=$(ask -d "{\"server\":{\"name\":\"$1\",\"flavorRef\":\"$flavor\",\"imageRef\":\"$image\",\"networks\":\"none\",\"availability_zone\":\"${2:-nova}\"}}" "$at_compute/servers" | jq -r .server.id)
	await 60 "server $1 is not active" is_active "$id"
	echo "$id"
}
is_active() { [[ $(ask "$at_compute/servers/$1" | jq -r .server.status) == ACTIVE ]]; }

# --- what storage and hypervisors do

# storage: a file for each volume and each snapshot, as large as it is, with what its source had. For ever.
storage() {
	local at=$work/storage id size from
	declare -A sizes wanted
	mkdir -p "$work/disks" "$work/snapshots"
	while :; do
		# The volumes first: of what one is made, is then among the snapshots.
		if ! volumes >"$at.volumes" || ! snapshots >"$at.snapshots"; then
			sleep 1
			continue
		fi
		sizes=() wanted=()
		while read -r id size; do sizes[$id]=$size; done < <(find "$work/disks" "$work/snapshots" -type f -printf '%f %s\n')
		while read -r id from; do
			wanted[$id]=1
			[[ -n ${sizes[$id]:-} ]] || copy "$from" "$work/snapshots/$id"
		done < <(jq -r '.snapshots[] | "\(.id) \(.volume_id)"' "$at.snapshots")
		while read -r id size from; do
			wanted[$id]=1
			[[ -n ${sizes[$id]:-} ]] || copy "$from" "$work/disks/$id"
			((${sizes[$id]:-0} == size << 30)) || truncate -s "${size}G" "$work/disks/$id"
		done < <(jq -r '.volumes[] | "\(.id) \(.size) \(.snapshot_id // .source_volid // "-")"' "$at.volumes")
		for id in "${!sizes[@]}"; do
			[[ -n ${wanted[$id]:-} ]] || rm -f "$work/disks/$id" "$work/snapshots/$id"
		done
		sleep 0.1
	done
}
# copy ID FILE: of a volume or a snapshot, or empty.
copy() {
	local from
	for from in "$work/disks/$1" "$work/snapshots/$1" /dev/null; do
		if [[ -e $from ]]; then
			cp --sparse=always "$from" "$work/copy" && mv "$work/copy" "$2"
			return
		fi
	done
}

# disks SERVER DIRECTORY: a loop device for each volume that the server has, by its link in the directory. For ever. Several servers
# that have one volume have one file.
disks() {
	local server=$1 at=$2 id size link there
	declare -A links wanted
	while :; do
		if ! volumes >"$work/attached-$server"; then
			sleep 1
			continue
		fi
		links=() wanted=()
		while read -r link there; do links[$link]=$there; done < <(find "$at" -name 'virtio-*' -printf '%f %l\n')
		while read -r id size; do
			link=virtio-${id:0:20}
			wanted[$link]=1
			there=${links[$link]:-}
			# Until storage has made it that large.
			[[ $(stat -c %s "$work/disks/$id" 2>/dev/null) == $((size << 30)) ]] || continue
			if [[ -z $there ]]; then
				ln -s "$(losetup -f --show "$work/disks/$id")" "$at/$link"
			elif (($(<"/sys/block/${there#/dev/}/size") != size << 21)); then
				losetup -c "$there"
			fi
		done < <(jq -r --arg server "$server" '.volumes[] | select(any(.attachments[]; .server_id == $server)) | "\(.id) \(.size)"' "$work/attached-$server")
		for link in "${!links[@]}"; do
			if [[ -z ${wanted[$link]:-} ]]; then
				losetup -d "${links[$link]}"
				rm "$at/$link"
			fi
		done
		sleep 0.1
	done
}

# metadata SERVER [ZONE]: what the metadata service says of the server, on 169.254.169.254 of this network. For ever.
metadata() {
	exec python3 - "$1" "${2:-nova}" <<'PYTHON'
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        facts = {"uuid": sys.argv[1], "name": "node", "availability_zone": sys.argv[2], "devices": []}
        body = json.dumps(facts).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
http.server.HTTPServer(("169.254.169.254", 80), Handler).serve_forever()
PYTHON
}

# --- a cluster with the driver's controller

# kinds_up OPTION …: what `generate cinder-csi-plugin` prints, and the kinds of snapshots and of group snapshots.
kinds_up() {
	local kind
	for kind in "$FERROSTACK_SNAPSHOT_KINDS"/*snapshot.storage.k8s.io_*.yaml; do
		kubectl apply -f "$kind" >/dev/null
	done
	"$FERROSTACK_BINARY" generate cinder-csi-plugin "$@" >"$work/manifests.yaml"
	kubectl apply --server-side -f "$work/manifests.yaml" >/dev/null
	await 30 "the kinds of snapshots are not there" kubectl get volumesnapshotclasses,volumegroupsnapshotclasses
	kubectl apply -f - >/dev/null <<-YAML
		apiVersion: snapshot.storage.k8s.io/v1
		kind: VolumeSnapshotClass
		metadata: {name: cinder}
		driver: cinder.csi.openstack.org
		deletionPolicy: Delete
		parameters: {force-create: "true"}
	YAML
}

# controller_up KUBECONFIG: the driver, and the sidecars as in the Deployment, with the permissions of its service account.
controller_up() {
	local token deployment sidecar port=${SIDECARS_PORT:-19800} socket=$work/csi.sock args
	cp "$1" "$work/account.kubeconfig"
	token=$(kubectl -n kube-system create token csi-cinder-controller-sa --duration 2h)
	"$root/target/tools/kubectl" --kubeconfig "$work/account.kubeconfig" config set-credentials account --token "$token" >/dev/null
	"$root/target/tools/kubectl" --kubeconfig "$work/account.kubeconfig" config set-context --current --user account >/dev/null
	begin controller "$FERROSTACK_BINARY" cinder-csi-plugin --endpoint "unix://$socket" --cloud-config "$work/cloud.conf" --cluster kubernetes --provide-node-service=false -v 4
	await 60 "the driver does not listen" test -S "$socket"
	deployment=$(kubectl -n kube-system get deployment csi-cinder-controllerplugin -o json)
	for sidecar in csi-provisioner csi-attacher csi-snapshotter csi-resizer; do
		mapfile -t args < <(jq -r --arg name "$sidecar" '.spec.template.spec.containers[] | select(.name == $name) | .args[]' <<<"$deployment")
		((${#args[@]} > 0)) || die "the Deployment has no $sidecar"
		begin "$sidecar" "$root/target/tools/$sidecar" "${args[@]/#--csi-address=*/--csi-address=$socket}" --kubeconfig "$work/account.kubeconfig" \
			--leader-election-namespace kube-system --http-endpoint "127.0.0.1:$((port++))" -v 2
	done
	begin snapshot-controller "$root/target/tools/snapshot-controller" --kubeconfig "$1" -v 2
}

# permitted: the service account may do all that the sidecars have asked for.
permitted() {
	if grep -hiE 'is forbidden' "$work"/csi-*.log | head -n 3 | grep .; then
		die "the service account may not do what a sidecar asks for"
	fi
}

# snapshot NAME CLAIM
snapshot() {
	kubectl apply -f - >/dev/null <<-YAML
		apiVersion: snapshot.storage.k8s.io/v1
		kind: VolumeSnapshot
		metadata: {name: $1, namespace: default}
		spec:
		  volumeSnapshotClassName: cinder
		  source: {persistentVolumeClaimName: $2}
	YAML
}
is_ready() { [[ $(kubectl get volumesnapshot "$1" -o jsonpath='{.status.readyToUse}') == true ]]; }
is_bound() { [[ $(kubectl get pvc "$1" -o jsonpath='{.status.phase}') == Bound ]]; }

# --- attributes of volumes

# attributes NAME PARAMETERS
attributes() {
	kubectl apply -f - >/dev/null <<YAML
apiVersion: storage.k8s.io/v1
kind: VolumeAttributesClass
metadata: {name: $1}
driverName: cinder.csi.openstack.org
parameters: {$2}
YAML
}
# has_attributes CLAIM TYPE TIER CLASS: in Cinder, and in the claim.
has_attributes() {
	local volume class
	volume=$(kubectl get pv "$(kubectl get pvc "$1" -o jsonpath='{.spec.volumeName}')" -o jsonpath='{.spec.csi.volumeHandle}')
	class=$(kubectl get pvc "$1" -o jsonpath='{.status.currentVolumeAttributesClassName}')
	[[ $(volumes | jq -r --arg id "$volume" '.volumes[] | select(.id == $id) | "\(.volume_type) \(.metadata.tier)"')/$class == "$2 $3/$4" ]]
}
becomes() { kubectl patch pvc "$1" --type merge -p "{\"spec\":{\"volumeAttributesClassName\":\"$2\"}}" >/dev/null; }
# is_told CLAIM WORDS: an event says why its class does not change.
is_told() { kubectl get events -o json | jq -e --arg name "$1" --arg words "$2" 'any(.items[]; .involvedObject.name == $name and .reason == "VolumeModifyFailed" and (.message | contains($words)))'; }

# --- snapshots of several volumes

# group_class NAME [GROUP-TYPE]: snapshots at one moment, in groups of the type, or else of that with this name.
group_class() {
	local consistency=''
	[[ ${2:-$1} != consistent* ]] || consistency=', consistency: declared'
	kubectl apply -f - >/dev/null <<YAML
apiVersion: groupsnapshot.storage.k8s.io/v1
kind: VolumeGroupSnapshotClass
metadata: {name: $1}
driver: cinder.csi.openstack.org
deletionPolicy: Delete
parameters: {group-type: ${2:-$1}$consistency}
YAML
}
# group_snapshot NAME CLASS: of all volumes whose claims have the label class=together.
group_snapshot() {
	kubectl apply -f - >/dev/null <<YAML
apiVersion: groupsnapshot.storage.k8s.io/v1
kind: VolumeGroupSnapshot
metadata: {name: $1, namespace: default}
spec:
  volumeGroupSnapshotClassName: $2
  source: {selector: {matchLabels: {class: together}}}
YAML
}
is_taken() { [[ $(kubectl get volumegroupsnapshot "$1" -o jsonpath='{.status.readyToUse}') == true ]]; }
# has_parts NAME N: so many VolumeSnapshots of it are ready, which comes after it is.
has_parts() { [[ $(kubectl get volumesnapshots -o json | jq --arg name "$1" '[.items[] | select(.status.volumeGroupSnapshotName == $name and .status.readyToUse)] | length') == "$2" ]]; }
# kinds groups|group_snapshots: how many the project has.
kinds() { ask -H 'openstack-api-version: volume 3.14' "$at_volume/$project/$1/detail" | jq ".$1 | length"; }
