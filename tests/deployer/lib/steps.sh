# Applies the steps of a cloud, each when those that it needs are ready, as their objects tell.

# Longest time without a step that gets ready, in seconds; half of the time that `openstack up` has. FERROSTACK_PATIENCE is for a busy machine.
PATIENCE=${FERROSTACK_PATIENCE:-300}
MANAGER=ferrostack-openstack

say() { printf 'tests/deployer/run: %s\n' "$*"; }
die() {
	say "$*" >&2
	exit 1
}
began=${EPOCHREALTIME/./}
last=$began
since() {
	local tenths=$(((${EPOCHREALTIME/./} - $1) / 100000))
	echo "$((tenths / 10)).$((tenths % 10))"
}
stage() {
	printf '%-34s %7.1f s   load %s\n' "$1" "$(since "$last")" "$(cut -d' ' -f1 /proc/loadavg)"
	last=${EPOCHREALTIME/./}
}
kubectl() { "$root/target/tools/kubectl" -n openstack "$@"; }

# inside COMMAND…: a command of this machine where Services are reached by their names, as from a Pod of the namespace.
inside() {
	cat >"$work/resolv.conf" <<-X
		nameserver 10.96.0.10
		search openstack.svc.cluster.local svc.cluster.local cluster.local
		options ndots:5
	X
	"$node" run 0 unshare --mount sh -c 'mount --bind "$0" /etc/resolv.conf && exec "$@"' "$work/resolv.conf" "$@"
}

# password ACCOUNT: such as identity-admin.
password() {
	kubectl get secret openstack-accounts -o json | jq -er --arg account "$1" '.data[$account] | @base64d'
}

# unready: each applied object that is not ready, with the reason: as crates/deployer/src/plan/readiness.rs reads them.
UNREADY='.items[] | .status as $is | (.spec.replicas // 1) as $wanted | {step: .metadata.labels["ferrostack.dev/step"], why: (
	if .kind == "Job" then
		([$is.conditions[]? | select(.status == "True") | .type]) as $holds |
		if $holds | index("Complete") then null elif $holds | index("Failed") then "FAILED" else "has not completed" end
	elif ($is.observedGeneration // 0) < .metadata.generation then "not looked at"
	elif ($is.updatedReplicas // 0) < $wanted or ($is.replicas // 0) > ($is.updatedReplicas // 0) then "not updated"
	elif .kind == "StatefulSet" and ($is.readyReplicas // 0) < $wanted then "not ready"
	elif .kind == "Deployment" and ($is.availableReplicas // 0) < $wanted then "not available"
	else null end)} | select(.why) | "\(.step) \(.why)"'

# parameters: the file of the cloud (JSON, which is YAML): hypervisors in two zones, and the edge on the node's address.
parameters() {
	jq -cn --arg release "$release" --arg host "$public" --arg address "$address" --argjson hypervisors "$hypervisors" '{release: $release,
		network: {physical: [{name: "public"}]}, compute: {driver: "Fake", fake: {hypervisors: $hypervisors, zones: ["az1", "az2"]}},
		exposure: {mode: "Edge", host: $host, addresses: [$address]}}' |
		if [[ $scenario || $circle ]]; then reference_parameters; else cat; fi
}

# wanted: the names of the steps in their order; with --until those that it needs, too.
wanted() {
	jq -er --arg until "$until" '.steps as $all |
		def closure($names): ([$all[] | select(.name as $n | $names | index($n)) | .needs[]] + $names | unique) as $more |
			if ($more | length) == ($names | length) then $names else closure($more) end;
		(if $until == "" then [$all[].name] else closure([$until]) end) as $names |
		$all[] | .name | select(. as $n | $names | index($n))' "$work/steps.json"
}

# apply STEP: its objects, or what is written to RabbitMQ or Keystone. Jobs that are there stay as they are.
apply() {
	jq -c --arg step "$1" '.steps[] | select(.name == $step) | .objects[] | select(.kind != "Job")' "$work/steps.json" >"$work/apply"
	[[ ! -s $work/apply ]] || kubectl apply --server-side --field-manager="$MANAGER" --force-conflicts -f "$work/apply" >/dev/null
	jq -c --arg step "$1" '.steps[] | select(.name == $step) | .objects[] | select(.kind == "Job")' "$work/steps.json" >"$work/apply"
	if [[ -s $work/apply ]] && ! kubectl get -f "$work/apply" >/dev/null 2>&1; then
		kubectl apply --server-side --field-manager="$MANAGER" -f "$work/apply" >/dev/null
	fi
	if [[ $(jq -r --arg step "$1" '.steps[] | select(.name == $step) | .writes | length' "$work/steps.json") != 0 ]]; then
		inside python3 "$here/accounts.py" "$1" "$work/steps.json"
	fi
}

steps() {
	local step need waiting failed progress=$SECONDS
	local -A applied=() ready=()
	kubectl get secrets -o json | "$objects" "$(parameters)" >"$work/steps.json"
	mapfile -t names < <(wanted)
	((${#names[@]} > 0)) || die "there is no step $until"
	while ((${#ready[@]} < ${#names[@]})); do
		for step in "${names[@]}"; do
			[[ -z ${applied[$step]:-} ]] || continue
			for need in $(jq -r --arg step "$step" '.steps[] | select(.name == $step) | .needs[]' "$work/steps.json"); do
				[[ ${ready[$need]:-} ]] || continue 2
			done
			applied[$step]=${EPOCHREALTIME/./}
			apply "$step"
		done
		kubectl get statefulsets,deployments,jobs -o json >"$work/there.json"
		waiting=$(jq -r "$UNREADY" "$work/there.json")
		failed=$(grep FAILED <<<"$waiting" || true)
		[[ -z $failed ]] || die "task ${failed% *} failed"
		for step in "${names[@]}"; do
			if [[ ${applied[$step]:-} && -z ${ready[$step]:-} ]] && ! grep -q "^$step " <<<"$waiting" && appeared "$step"; then
				ready[$step]=1
				progress=$SECONDS
				printf '  %-32s %7.1f s\n' "$step" "$(since "${applied[$step]}")"
			fi
		done
		((SECONDS - progress < PATIENCE)) || die "after $PATIENCE s these are not ready: ${waiting//$'\n'/; }"
		sleep 0.5
	done
}

# up ARGUMENT…: the controller until the cloud is ready. What it logs is searched for passwords.
up() {
	(cd "$root" && "$binary" --log rollout=debug,deployer=debug,operator=debug openstack up "$@" --exit-when-ready --timeout "$((2 * PATIENCE))s" 2>>"$work/up.log") ||
		{ tail -n 5 "$work/up.log" >&2; return 1; }
}

# The same steps by the controller. Run again it writes nothing.
controller() {
	local versions
	parameters >"$work/cloud.yaml"
	up -f "$work/cloud.yaml" --on this-machine || die "openstack up failed"
	stage "openstack up"
	# What is deleted may be there until the garbage collector has passed.
	versions() { kubectl get secrets,configmaps,services,persistentvolumeclaims,statefulsets,deployments -o json |
		jq -S '[.items[] | select(.metadata.deletionTimestamp | not) | {kind, name: .metadata.name, generation: .metadata.generation, managers: [.metadata.managedFields[]? | select(.manager == "ferrostack-openstack")]}]'; }
	versions=$(versions)
	up -f "$work/cloud.yaml" --kubeconfig "$KUBECONFIG" >"$work/again" || die "openstack up failed the second time: $(tail -n 3 "$work/again")"
	grep -q 'nothing is written' "$work/again" || die "it is not said that nothing is written: $(<"$work/again")"
	[[ $(versions) == "$versions" ]] || die "openstack up has written again: $(diff <(echo "$versions") <(versions) | head -n 20)"
	stage "openstack up again"
}

# appeared STEP: whether the list that was just read has its workloads.
appeared() {
	[[ $(jq -r --arg step "$1" --slurpfile there "$work/there.json" '[.steps[] | select(.name == $step) | .objects[]
		| select(.kind == "Job" or .kind == "StatefulSet" or .kind == "Deployment") | "\(.kind) \(.metadata.name)"]
		- [$there[0].items[] | "\(.kind) \(.metadata.name)"] | length' "$work/steps.json") == 0 ]]
}
