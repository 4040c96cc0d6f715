# Everything is killed: the controller after each step, each program in turn, the kubelet. The cloud is ready again, and
# has nothing twice.

# kill_controller: makes the cloud with a controller that is killed whenever a step has become ready.
kill_controller() {
	local kills=0 before now pid patience=$((SECONDS + 6 * PATIENCE))
	parameters >"$work/cloud.yaml"
	before=-1
	"$node" forward "$public" 443 5000 6080 8774 8778 9292 9696
	while :; do
		((SECONDS < patience)) || die "after $kills kills the cloud is not ready: $(tail -n 3 "$work/killed")"
		(cd "$root" && exec "$binary" --log rollout=debug,deployer=debug,operator=debug openstack up -f "$work/cloud.yaml" --kubeconfig "$KUBECONFIG" --exit-when-ready) >>"$work/killed" 2>>"$work/up.log" &
		pid=$!
		while kill -0 "$pid" 2>/dev/null; do
			now=$(kubectl get openstack cloud -o json 2>/dev/null | jq '[.status.steps[]? | select(.phase == "Ready")] | length' || echo "$before")
			((${now:-$before} <= before)) || break
			sleep 0.1
		done
		if kill -KILL "$pid" 2>/dev/null; then
			wait "$pid" 2>/dev/null || true
			before=${now:-$before}
			kills=$((kills + 1))
		else
			wait "$pid" || die "openstack up failed: $(tail -n 3 "$work/up.log")"
			break
		fi
	done
	((kills > 5)) || die "the controller was killed $kills times only"
	say "the controller was killed $kills times, each time after a step had become ready"
	no_restarts
	stage "openstack up, killed after each step"
	nothing_twice
}

# kill_programs: kills every process of each Pod in turn, and waits until it is ready again.
kill_programs() {
	local pod uid patience count=0 began_here=$SECONDS
	for pod in $(kubectl get pods -o json | jq -r '.items[] | select(.spec.restartPolicy == "Always") | .metadata.name'); do
		uid=$(kubectl get pod "$pod" -o 'jsonpath={.metadata.uid}')
		# The container's processes; that of the Pod itself is /pause.
		"$node" run 1 sh -c 'for each in /proc/[0-9]*; do
			! grep -q "$0" "$each/cgroup" || [ "$(cat "$each/comm")" = pause ] || kill -KILL "${each#/proc/}"
		done 2>/dev/null; true' "$uid"
		patience=$((SECONDS + PATIENCE))
		until kubectl get pod "$pod" -o json | jq -e '.status.containerStatuses[0] | .restartCount > 0 and .ready' >/dev/null; do
			((SECONDS < patience)) || die "$pod is not ready after its processes were killed"
			sleep 0.5
		done
		count=$((count + 1))
	done
	# Those that lost a program that they work with are ready again, too.
	patience=$((SECONDS + PATIENCE))
	until [[ -z $(kubectl get pods -o json | jq -r '.items[] | select(.spec.restartPolicy == "Always") | select(any(.status.containerStatuses[]?; .ready | not)) | .metadata.name') ]]; do
		((SECONDS < patience)) || die "after all were killed these are not ready: $(kubectl get pods --no-headers | grep -v Completed | grep -v 1/1)"
		sleep 1
	done
	say "the processes of $count Pods were killed one after the other, all ready after $((SECONDS - began_here)) s"
	restarted_once
	stage "programs killed"
	rest
}

# restarted_once: no container has restarted more often than it was killed.
restarted_once() {
	local more
	more=$(kubectl get pods -o json | jq -r '.items[] | select(any(.status.containerStatuses[]?; .restartCount > 1)) | "\(.metadata.name) \(.status.containerStatuses[0].restartCount)"')
	[[ -z $more ]] || say "these have restarted more often than they were killed: ${more//$'\n'/, }"
}

# kill_kubelet: kills the kubelet; containers go on, and it takes them up again.
kill_kubelet() {
	local before after
	before=$(kubectl get pods -o json | jq -r '.items[] | "\(.metadata.name) \(.status.containerStatuses[0].containerID)"')
	"$node" run 1 pkill -KILL -x kubelet
	"$node" up --images "$(dirname "$archive")" >"$work/node" || die "the node does not come back: $(tail -n 1 "$work/node")"
	rest
	after=$(kubectl get pods -o json | jq -r '.items[] | "\(.metadata.name) \(.status.containerStatuses[0].containerID)"')
	[[ $after == "$before" ]] || die "containers have changed: $(diff <(echo "$before") <(echo "$after"))"
	say "the kubelet was killed and started again; every container went on"
	stage "kubelet killed"
}

# rest: the controller finds nothing to do.
rest() {
	up -f "$work/cloud.yaml" --kubeconfig "$KUBECONFIG" >"$work/again" || die "the cloud is not ready: $(tail -n 3 "$work/again")"
	grep -q 'nothing is written' "$work/again" || die "parameters were written: $(<"$work/again")"
	nothing_twice
}

# nothing_twice: every account, endpoint, task, host and zone is there once.
nothing_twice() {
	local twice kind
	for kind in 'user' 'role' 'project' 'service' 'region'; do
		client "$kind" list -f value -c ID -c Name >"$work/$kind" 2>/dev/null || client "$kind" list -f value >"$work/$kind"
		twice=$(awk '{print $2}' "$work/$kind" | grep . | sort | uniq -d | paste -sd ' ' || true)
		[[ -z $twice ]] || die "of ${kind}s there are two: $twice"
	done
	client endpoint list -f value -c 'Service Type' -c Interface | sort >"$work/endpoints"
	[[ $(wc -l <"$work/endpoints") == 15 && -z $(uniq -d "$work/endpoints") ]] || die "the endpoints are $(paste -sd, "$work/endpoints")"
	client compute service list -f value -c Binary -c Host | sort >"$work/hosts"
	[[ $(grep -c nova-compute "$work/hosts") == "$hypervisors" && -z $(uniq -d "$work/hosts") ]] || die "the services of Nova are $(paste -sd, "$work/hosts")"
	[[ $(client hypervisor list -f value | wc -l) == "$hypervisors" ]] || die "the hypervisors are $(client hypervisor list -f value -c 'Hypervisor Hostname' | paste -sd ' ')"
	[[ $(client aggregate list -f value | wc -l) == 2 ]] || die "the aggregates are $(client aggregate list -f value -c Name | paste -sd ' ')"
	twice=$(kubectl get jobs -o json | jq -r '.items[].metadata.labels["ferrostack.dev/step"]' | sort | uniq -d | paste -sd ' ')
	[[ -z $twice ]] || die "these tasks are there twice: $twice"
}
