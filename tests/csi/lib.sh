# What the tests of the Cinder CSI driver share: a simulated cloud, its servers and their disks, the driver, the sidecars.
# The script that reads this has set program, root and work.

say() { printf '%s: %s\n' "$program" "$*"; }
die() {
	say "$*" >&2
	exit 1
}
pids=()
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

# await SECONDS WHAT COMMAND …: until the command succeeds.
await() {
	local deadline=$((SECONDS + $1)) what=$2
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

# server NAME: a new one; prints its id.
server() {
	local flavor image id
	flavor=$(ask "$at_compute/flavors" | jq -r '.flavors[0].id')
	image=$(ask "$at_image/images" | jq -r '.images[0].id')
	id=$(ask -d "{\"server\":{\"name\":\"$1\",\"flavorRef\":\"$flavor\",\"imageRef\":\"$image\",\"networks\":\"none\"}}" "$at_compute/servers" | jq -r .server.id)
	await 60 "server $1 is not active" is_active "$id"
	echo "$id"
}
is_active() { [[ $(ask "$at_compute/servers/$1" | jq -r .server.status) == ACTIVE ]]; }

# --- what a hypervisor does

# disks SERVER ENTER …: a disk for each volume that the server has, as large as the volume, which the machine that ENTER
# enters finds by its link. For ever; a disk is a loop device.
disks() {
	local server=$1 id size file link there attached
	shift
	mkdir -p "$work/disks"
	attached=$work/attached-$server
	while :; do
		if ! volumes >"$attached.all"; then
			sleep 1
			continue
		fi
		jq -r --arg server "$server" '.volumes[] | select(any(.attachments[]; .server_id == $server)) | "\(.id) \(.size)"' "$attached.all" >"$attached"
		while read -r id size; do
			file=$work/disks/$id link=/dev/disk/by-id/virtio-${id:0:20}
			if ! there=$("$@" readlink "$link"); then
				truncate -s "${size}G" "$file"
				"$@" ln -s "$(losetup -f --show "$file")" "$link"
			elif (($(stat -c %s "$file") != size << 30)); then
				truncate -s "${size}G" "$file"
				losetup -c "$there"
			fi
		done <"$attached"
		for link in $("$@" find /dev/disk/by-id -name 'virtio-*'); do
			if ! grep -q "^${link#/dev/disk/by-id/virtio-}" "$attached"; then
				losetup -d "$("$@" readlink "$link")"
				"$@" rm "$link"
			fi
		done
		for file in "$work/disks"/*; do
			if [[ -e $file ]] && ! grep -q "${file##*/}" "$attached.all"; then rm -f "$file"; fi
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

# kinds_up: what `generate cinder-csi-plugin` prints, and the kinds of snapshots.
kinds_up() {
	local kind
	for kind in volumesnapshots volumesnapshotclasses volumesnapshotcontents; do
		kubectl apply -f "$FERROSTACK_SNAPSHOT_KINDS/snapshot.storage.k8s.io_$kind.yaml" >/dev/null
	done
	"$FERROSTACK_BINARY" generate cinder-csi-plugin >"$work/manifests.yaml"
	kubectl apply --server-side -f "$work/manifests.yaml" >/dev/null
	await 30 "the kinds of snapshots are not there" kubectl get volumesnapshotclasses
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
