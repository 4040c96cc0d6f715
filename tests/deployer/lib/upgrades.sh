# A cloud goes to the next release while it is used.

# A password that is searched for afterwards.
canary=${canary:-$(head -c 18 /dev/urandom | base64 | tr -d "+/=")}

# content COMMAND…: what users have (tests/deployer/content.py).
content() {
	CONTENT_PASSWORD=$canary OS_CLIENT_CONFIG_FILE=$logins "$python" "$here/content.py" "$@" >"$work/content" 2>&1 || die "content.py $1: $(tail -n 20 "$work/content")"
}

# run_controller: of the cloud that is there, until the end.
run_controller() {
	(cd "$root" && exec "$binary" --log rollout=debug,deployer=debug,operator=debug openstack up --kubeconfig "$KUBECONFIG") >"$work/controller" 2>>"$work/up.log" &
	controller_pid=$!
	started+=("$controller_pid")
}
end_controller() {
	kill -TERM "$controller_pid"
	wait "$controller_pid" || true
}

# keep_logs: of Pods that end, which the checks afterwards do not find any more.
keep_logs() {
	mkdir -p "$work/places"
	while sleep 4; do
		local pod
		for pod in $(kubectl get pods -o json 2>/dev/null | jq -r '.items[] | select(.metadata.deletionTimestamp or .status.phase == "Succeeded" or .status.phase == "Failed") | .metadata.name'); do
			[[ -s $work/places/log-$pod ]] || kubectl logs "$pod" --all-containers >"$work/places/log-$pod" 2>/dev/null || true
		done
	done &
	started+=("$!")
}

# mark NAME: the part of the time that begins now, or, with `-`, that ends.
mark() {
	[[ ! ${marked:-} ]] || echo "$marked $EPOCHREALTIME" >>"$work/phases"
	marked=''
	[[ $1 == - ]] || marked="$1 $EPOCHREALTIME"
}

# ask: a client asks until finish_asking; first on the cloud as it is.
ask() {
	OS_CLIENT_CONFIG_FILE=$logins "$python" "$here/asking.py" "$work/asking" --changes 2>"$work/asking.stderr" &
	asking=$!
	started+=("$asking")
	until [[ -s $work/asking ]]; do
		kill -0 "$asking" 2>/dev/null || die "the client cannot ask the cloud: $(tail -n 3 "$work/asking.stderr")"
		sleep 0.2
	done
	mark before
	sleep 30
	mark -
	stage "the client before"
}

finish_asking() {
	local asked failed
	mark after
	sleep 30
	mark -
	touch "$work/asking.end"
	wait "$asking" || die "the client has failed: $(tail -n 5 "$work/asking.stderr")"
	read -r asked failed < <(tail -n 1 "$work/asking")
	stage "the client after"
	((asked > 500)) || die "only $asked requests were sent"
	say "of $asked requests $failed failed"
}

# check_answers: how the cloud answered, and whether every request was.
check_answers() {
	"$python" "$here/answers.py" "$work/asking" "$work/phases"
	[[ ! -s $work/asking.failed ]] || die "requests failed: $(head -n 30 "$work/asking.failed")"
}

# objects: what the controller has written, but for tasks and files, of which a check has some of its own.
objects() {
	kubectl get services,persistentvolumeclaims,statefulsets,deployments -o json | jq -S '[.items[] | {kind, name: .metadata.name, generation: .metadata.generation}]'
}

# check_the_check: the checks pass, and change nothing.
check_the_check() {
	local before pods now=${EPOCHREALTIME/./}
	before=$(objects) pods=$(serving)
	mark --check
	"$binary" openstack upgrade --to "$newer" --check --kubeconfig "$KUBECONFIG" --timeout "$((2 * PATIENCE))s" >"$work/check" 2>&1 || die "the checks fail: $(tail -n 5 "$work/check")"
	mark -
	say "the checks of $newer pass after $(since "$now") s: $(grep -c . "$work/check") lines"
	[[ $(objects) == "$before" ]] || die "the check has changed: $(diff <(echo "$before") <(objects) | head -n 20)"
	[[ $(serving) == "$pods" ]] || die "the check has restarted: $(diff <(echo "$pods") <(serving) | head -n 20)"
	[[ -z $(tasks) ]] || die "of the check there is left: $(tasks)"
	[[ $(kubectl get openstack cloud -o json | jq -r '.status.release.current') == "$release" ]] || die "the check has upgraded"
	stage "openstack upgrade --check"
}

# tasks: those of upgrades that are there, and what only an upgrade has.
tasks() {
	{
		kubectl get jobs -o json | jq -r '.items[] | select(.metadata.labels["ferrostack.dev/step"] | test("-(check|expand|migrate|contract)$")) | "job/\(.metadata.name)"'
		kubectl get networkpolicies -o name | grep upgrade || true
	} | paste -sd ' '
}

# upgrade: by the command; the phases are those of the status.
upgrade() {
	local infrastructure
	infrastructure=$(serving | grep -E '^(mariadb|rabbitmq|memcached|ovn-|edge)')
	"$binary" openstack upgrade --to "$newer" --kubeconfig "$KUBECONFIG" --timeout "$((8 * PATIENCE))s" >"$work/upgrade" 2>&1 || die "the upgrade fails: $(tail -n 5 "$work/upgrade")"
	kubectl get openstack cloud -o json | jq -r '.status.release.phases[] | "\(.name) \(.started | fromdate) \((.started | fromdate) + .seconds)"' >>"$work/phases"
	say "$(grep '^upgraded ' "$work/upgrade" | tail -n 1)"
	stage "openstack upgrade --to $newer"
	[[ $(serving | grep -E '^(mariadb|rabbitmq|memcached|ovn-|edge)') == "$infrastructure" ]] || die "databases, message broker, OVN or edge have restarted: $(diff <(echo "$infrastructure") <(serving) | head -n 20)"
}

check_resources() {
	content compare "$work/before"
	say "$(head -n 1 "$work/content") are as before"
	content log-in
	say "$(tail -n 1 "$work/content")"
}

# check_programs: every program of a service is of the new release, and has no pin.
check_programs() {
	local old
	old=$(kubectl get statefulsets,deployments -o json | jq -r --arg image ":$release" '.items[] | select(.spec.template.spec.containers[0].image | endswith($image)) | .metadata.name' |
		{ grep -vE '^(mariadb|rabbitmq|memcached|ovn-.*|edge)$' || true; } | paste -sd ' ')
	[[ ! $old ]] || die "these are of $release: $old"
	[[ $(kubectl get openstack cloud -o json | jq -r '.status.release | "\(.current) \(.phase)"') == "$newer null" ]] || die "the status is $(kubectl get openstack cloud -o json | jq -c .status.release)"
}

# check_nothing_left: neither tasks nor pins; and the controller has nothing to write for the file with the new release.
check_nothing_left() {
	local left used
	left=$(tasks)
	[[ ! $left ]] || die "of the upgrade there is left: $left"
	used=$(kubectl get statefulsets,deployments -o json | jq -r '.items[].spec.template.spec.volumes[]?.configMap.name // empty' | sort -u)
	left=$(kubectl get configmaps -o json | jq -r --arg used "$used" '.items[] | select(.metadata.name as $name | $used | split("\n") | index($name)) | select(any(.data[]?; contains("upgrade_levels"))) | .metadata.name' | paste -sd ' ')
	[[ ! $left ]] || die "pins are left in: $left"
}

# check_canary: the password of the users is in no log and no output, those of Pods that have ended included.
check_canary() {
	local found
	found=$(grep -rlF "$canary" "$work/places" "$work/up.log" "$work/upgrade" "$work/check" "$work/controller" | paste -sd ' ' || true)
	[[ ! $found ]] || die "the password of a user is in $found"
	say "nor is that of users, in $(find "$work/places" -name 'log-*' | wc -l) logs of Pods"
}

# report_upgrade: how far it was.
report_upgrade() {
	[[ -s $work/upgrade ]] || return 0
	printf '\n== the upgrade\n' >&2
	tail -n 20 "$work/upgrade" >&2
	kubectl get openstack cloud -o json | jq '.status.release, .status.conditions' >&2
	[[ ! -s $work/asking.answers ]] || grep -Pv '\tok$' "$work/asking.answers" | head -n 40 >&2
}
