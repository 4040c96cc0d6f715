# The parts of a machine: disk, cgroup, network, processes.

# refuse WHY: exits because the machine cannot be started; the message becomes the fault of the server.
refuse() {
	echo "tests/nodes/machine: $*" >&2
	exit 126
}

requirements() {
	local program wanted available
	for program in jq unshare nsenter ip pgrep losetup; do
		command -v "$program" >/dev/null || { echo "tests/nodes/machine: $program is missing" >&2; exit 126; }
	done
	[[ $EUID == 0 ]] || refuse "root is needed: a machine is namespaces with mounts and a network of its own"
	image_of_version
	[[ -s $image/inputs ]] || refuse "there is no root file system at $image: tests/nodes/image makes it"
	[[ -z $(ip -4 route show default) ]] ||
		refuse "this network namespace has a way to the world, so it is the host's: start the cloud in one of its own, as tests/nodes/end-to-end does"
	wanted=$(field .flavor.memory_mib)
	available=$(awk '/^MemTotal:/ {print int($2 / 1024)}' /proc/meminfo)
	((wanted <= available)) || refuse "the flavor has ${wanted} MiB of memory, and this machine has ${available}"
	watchers
}

# watchers: each machine has 15 to 20 inotify instances. Without one, its console says nothing, and its kubelet may not start.
watchers() {
	local limit used
	limit=$(</proc/sys/fs/inotify/max_user_instances)
	used=$({ find /proc/[0-9]*/fd -lname 'anon_inode:inotify' 2>/dev/null || true; } | wc -l)
	((used + 20 <= limit)) || refuse "a machine watches files by 20 inotify instances, and of $limit that this host allows $used are in use: sysctl -w fs.inotify.max_user_instances=1024"
}

# image_of_version: selects the root file system with the version of Kubernetes that the name of the server's image ends
# with, if it does.
image_of_version() {
	local wanted
	wanted=$(field .image.name | grep -oE 'v[0-9]+\.[0-9]+\.[0-9]+$') || return 0
	[[ $wanted != "$(cat "$image/version" 2>/dev/null)" ]] || return 0
	[[ -s $image-$wanted/inputs ]] || refuse "the image $(field .image.name) has Kubernetes $wanted, and there is no $image-$wanted: tests/nodes/image --version $wanted makes it"
	image=$image-$wanted
}

# disk: the writable layer of the machine, over the root file system that all machines share. It is kept across reboots.
disk() {
	mkdir -p "$directory"/{upper,work,root,kubelet,pods,containers,etcd}
	[[ -e $directory/serial ]] || mkfifo "$directory/serial"
	if [[ ! -d $directory/containerd ]]; then
		# Image layers are read-only, so they are hard links; containerd's databases are copied.
		cp -al "$image/containerd" "$directory/containerd.new"
		find "$directory/containerd.new" -name '*.db' -exec sh -c 'cp --remove-destination "$1" "$1.copy" && mv "$1.copy" "$1"' _ {} \;
		mv "$directory/containerd.new" "$directory/containerd"
	fi
	mkdir -p "$directory/upper/etc"
	jq -r '[.ports[].addresses[].dns_nameservers[]?] | unique[] | "nameserver " + .' <<<"$document" >"$directory/upper/etc/resolv.conf"
	seed
}

# seed: copies the config drive to the path where cloud-init looks for it.
seed() {
	local drive target=$directory/upper/var/lib/cloud/seed/config_drive
	drive=$(field .config_drive)
	[[ -n $drive ]] || return 0
	mkdir -p "$target"
	cp -rT "$drive" "$target"
}

# hierarchies: the cgroup hierarchies of version 1, or "v2".
hierarchies() {
	if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
		echo v2
	else
		awk '$9 == "cgroup" || $8 == "cgroup" { n = split($5, parts, "/"); print parts[n] }' /proc/self/mountinfo | sort -u | tr '\n' ' '
	fi
}

# join_cgroup: moves this process into the machine's cgroup, which is created with the memory limit of the flavor
# (version 1 only).
join_cgroup() {
	local one at
	if [[ $(hierarchies) == v2 ]]; then
		mkdir -p "/sys/fs/cgroup/$cgroup"
		echo "$BASHPID" >"/sys/fs/cgroup/$cgroup/cgroup.procs"
		return
	fi
	for one in $(hierarchies); do
		at=/sys/fs/cgroup/$one/$cgroup
		mkdir -p "$at"
		if [[ $one == cpuset ]]; then
			cat /sys/fs/cgroup/cpuset/cpuset.cpus >"$at/cpuset.cpus"
			cat /sys/fs/cgroup/cpuset/cpuset.mems >"$at/cpuset.mems"
		elif [[ $one == memory ]]; then
			echo "$(field .flavor.memory_mib)M" >"$at/memory.limit_in_bytes"
		fi
		echo "$BASHPID" >"$at/cgroup.procs"
	done
}

# switch_on: starts the machine's first process, connects its ports, and lets it continue.
switch_on() {
	local tries first
	rm -f "$directory"/{started,connected}
	exec 8<>"$directory/serial"
	cat <&8 &
	serial=$!
	(
		join_cgroup
		exec unshare --mount --net --pid --uts --ipc --cgroup --propagation private --fork --kill-child=KILL \
			bash "$here/first-process" "$image/root" "$directory" "$name" "$(hierarchies)"
	) 8>&- &
	machine=$!
	for ((tries = 0; tries < 100; tries++)); do
		[[ ! -e $directory/started ]] || break
		kill -0 "$machine" 2>/dev/null || refuse "the machine's first process ended"
		sleep 0.05
	done
	first=$(pgrep -P "$machine" | head -n 1)
	echo "$first" >"$directory/first"
	connect "$first"
	answer_for_volumes "$first" 8>&- &
	volumes=$!
	touch "$directory/connected"
}

power_off() {
	local first
	first=$(pgrep -P "${machine:-0}" | head -n 1) || true
	# systemd's signal for a power-off.
	[[ -z $first ]] || kill -RTMIN+4 "$first" 2>/dev/null || true
}

# last_moments: a machine that is powered off is killed after five seconds.
last_moments() {
	deadline=${deadline:-$((SECONDS + 5))}
	((SECONDS < deadline)) || kill -KILL "$machine" 2>/dev/null || true
	sleep 0.1
}

# locked COMMAND…: runs a command while no other machine changes bridges of this network namespace, which is itself what is
# locked.
locked() { (flock 7 && "$@") 7</proc/self/ns/net; }

# connect PID: creates a link from each port to the bridge of its network, with the addresses that DHCP would assign.
connect() {
	local number=0 port
	while read -r port; do
		locked port_of "$1" "eth$number" "$port"
		number=$((number + 1))
	done < <(jq -c '.ports[]' <<<"$document")
}

# port_of PID INTERFACE PORT
port_of() {
	local pid=$1 interface=$2 port=$3 outside bridge address cidr gateway bits destination next
	bridge=$(bridge_of "$port")
	outside=$(outside_of "$port")
	ip link show "$bridge" >/dev/null 2>&1 || ip link add "$bridge" type bridge
	ip link set "$bridge" up
	ip link del "$outside" 2>/dev/null || true
	ip link add "$outside" mtu "$(jq -r .mtu <<<"$port")" type veth peer name "$interface" address "$(jq -r .mac_address <<<"$port")" netns "$pid"
	ip link set "$outside" master "$bridge" up
	inside() { nsenter -t "$pid" -n ip "$@"; }
	inside link set lo up
	inside link set "$interface" up
	while read -r address cidr gateway; do
		bits=${cidr#*/}
		inside address add "$address/$bits" dev "$interface"
		[[ $gateway != null ]] || continue
		# This namespace is the router of the network.
		overlaps "$cidr" "$bridge"
		ip address replace "$gateway/$bits" dev "$bridge"
		inside route replace default via "$gateway" 2>/dev/null || true
	done < <(jq -r '.addresses[] | "\(.address) \(.cidr) \(.gateway)"' <<<"$port")
	while read -r destination next; do
		inside route replace "$destination" via "$next" || true
	done < <(jq -r '.addresses[].routes[] | "\(.destination) \(.nexthop)"' <<<"$port")
}

# overlaps CIDR BRIDGE: from this namespace, two networks with the same addresses would be ambiguous.
overlaps() {
	local other
	other=$(ip -4 route show "$1" | awk -v bridge="$2" '$3 != bridge { print $3; exit }')
	[[ -z $other ]] || refuse "the subnet $1 overlaps one of another network, whose bridge is $other"
}

outside_of() { jq -r '"p-" + .id[0:11]' <<<"$1"; }

bridge_of() { jq -r '"n-" + .network_id[0:11]' <<<"$1"; }

switched_off() {
	rm -f "$directory/first"
	kill "$volumes" 2>/dev/null || true
	wait "$volumes" 2>/dev/null || true
	wait "$machine" 2>/dev/null || true
	kill "$serial" 2>/dev/null || true
	wait "$serial" 2>/dev/null || true
	exec 8>&-
	remove_cgroups
}

remove_cgroups() {
	local tries
	for ((tries = 0; tries < 50; tries++)); do
		find /sys/fs/cgroup -depth -type d -path "*/$cgroup*" -exec rmdir {} + 2>/dev/null || true
		[[ -n $(find /sys/fs/cgroup -maxdepth 2 -type d -name "$cgroup" -print -quit) ]] || return 0
		sleep 0.1
	done
}

# leave: removes the machine's links, and bridges that are no longer used.
leave() {
	local port
	# Bash would print that the job was killed, as the last line of the console, which is the fault of the server.
	[[ -z ${machine:-} ]] || { kill -KILL "$machine" && wait "$machine"; } 2>/dev/null || true
	[[ -z ${serial:-} ]] || kill "$serial" 2>/dev/null || true
	[[ -z ${volumes:-} ]] || { kill "$volumes" && wait "$volumes"; } 2>/dev/null || true
	while read -r port; do locked remove_port "$(outside_of "$port")" "$(bridge_of "$port")"; done < <(jq -c '.ports[]' <<<"$document" 2>/dev/null)
	remove_cgroups
}

# remove_port LINK BRIDGE: the kernel also removes the link when its namespace has ended, but later.
remove_port() {
	ip link del "$1" 2>/dev/null || true
	[[ -n $(ip -o link show master "$2" 2>/dev/null) ]] || ip link del "$2" 2>/dev/null || true
}
