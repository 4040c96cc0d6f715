# The namespaces of the machines, and the links between them. The host's network is not changed: the bridge is in
# machine 0.

# hierarchies: the cgroup hierarchies of this machine: the names of version 1, or "v2".
hierarchies() {
	if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
		echo v2
	else
		awk '$9 == "cgroup" || $8 == "cgroup" { n = split($5, parts, "/"); print parts[n] }' /proc/self/mountinfo | sort -u | tr '\n' ' '
	fi
}

# join_cgroup N: moves this process into the cgroup of machine N, which is created if necessary.
join_cgroup() {
	local one name
	name=$(cgroup "$1")
	if [[ $(hierarchies) == v2 ]]; then
		mkdir -p "/sys/fs/cgroup/$name"
		echo "$BASHPID" >"/sys/fs/cgroup/$name/cgroup.procs"
		return
	fi
	for one in $(hierarchies); do
		mkdir -p "/sys/fs/cgroup/$one/$name"
		if [[ $one == cpuset ]]; then
			# A new cpuset accepts processes only after its CPUs and memory nodes are set.
			cat /sys/fs/cgroup/cpuset/cpuset.cpus >"/sys/fs/cgroup/cpuset/$name/cpuset.cpus"
			cat /sys/fs/cgroup/cpuset/cpuset.mems >"/sys/fs/cgroup/cpuset/$name/cpuset.mems"
		fi
		echo "$BASHPID" >"/sys/fs/cgroup/$one/$name/cgroup.procs"
	done
}

# machine N UNSHARE… -- COMMAND…: starts the first process of machine N and waits until it is ready.
machine() {
	local n=$1 namespaces=() directory=$STATE/machine-$1 parent child
	shift
	while [[ $1 != -- ]]; do namespaces+=("$1") && shift; done
	shift
	mkdir -p "$directory"
	rm -f "$directory/ready" "$directory/first"
	(
		join_cgroup "$n"
		exec setsid unshare "${namespaces[@]}" --fork --kill-child=KILL "$@"
	) >>"$STATE/log/machine-$n.log" 2>&1 </dev/null 9>&- &
	parent=$!
	until_true 10 "machine $n" "$STATE/log/machine-$n.log" test -e "$directory/ready"
	child=$(pgrep -P "$parent" | head -n 1)
	echo "$child $(started "$child")" >"$directory/first"
}

machine_of_the_control_plane() {
	first 0 >/dev/null && return
	machine 0 --net --pid --mount-proc -- bash "$PARTS/first-process" "$STATE/machine-0"
	on 0 ip link set lo up
	on 0 ip link add nodes type bridge
	on 0 ip addr add "$(address 0)/24" dev nodes
	on 0 ip link set nodes up
}

# mount_points: creates missing directories of the host on which nodes mount; `down` removes them.
mount_points() {
	local point
	for point in /var/lib/kubelet /var/log/pods /var/log/containers; do
		[[ -d $point ]] || { mkdir -p "$point" && echo "$point" >>"$STATE/run/directories"; }
	done
}

machine_of_a_node() {
	local n=$1 pid
	first "$n" >/dev/null && return
	mount_points
	machine "$n" --mount --net --pid --uts --ipc --cgroup --propagation private -- \
		bash "$PARTS/first-process-of-a-node" "$STATE/machine-$n" "node-$n" "$(hierarchies)"
	pid=$(first "$n")
	on 0 ip link del "node-$n" 2>/dev/null || true
	# The process id does not exist in the PID namespace of machine 0, so only its network namespace is entered.
	nsenter -t "$(first 0)" -n ip link add "node-$n" type veth peer name eth0 netns "$pid"
	on 0 ip link set "node-$n" master nodes up
	on "$n" ip addr add "$(address "$n")/24" dev eth0
	on "$n" ip link set eth0 up
	on "$n" ip route add default via "$(address 0)"
}
