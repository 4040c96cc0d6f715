# Machines: processes in separate namespaces. Machine 0 has the control plane and the bridge that connects all machines;
# the others are nodes. A machine ends, with all of its processes, when its first process is killed.

NETWORK=10.250.0
PODS=10.244.0.0/16
SERVICES=10.96.0.0/12
DNS=10.96.0.10
API=https://$NETWORK.1:6443

say() { printf '%s: %s\n' "$PROGRAM" "$*"; }
die() {
	say "$*" >&2
	exit 1
}

# stage NAME: prints the time since the previous stage.
began=${EPOCHREALTIME/./}
last=$began
stage() {
	local now=${EPOCHREALTIME/./}
	printf '%-50s %7.1f s\n' "$1" "$(((now - last) / 1000))e-3"
	last=$now
}

# address N: the address of machine N.
address() { if (($1 == 0)); then echo "$NETWORK.1"; else echo "$NETWORK.1$1"; fi; }

# started PID: the start time of the process, in ticks since boot, which distinguishes processes with the same id.
started() {
	local stat
	stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 1
	stat=${stat##*) }
	[[ ${stat:0:1} != [ZX] ]] || return 1
	cut -d' ' -f20 <<<"$stat"
}

# first N: the host's id of the first process of machine N, if the machine runs.
first() {
	local pid ticks
	read -r pid ticks 2>/dev/null <"$STATE/machine-$1/first" || return 1
	[[ $(started "$pid") == "$ticks" ]] && echo "$pid"
}

machines() {
	local file
	for file in "$STATE"/machine-*/first; do
		[[ ! -e $file ]] || { file=${file%/first}; echo "${file##*-}"; }
	done | sort -n
}

# on N COMMAND…: runs a command on machine N, in its namespaces and cgroups, in the root directory.
on() { (
	local n=$1 pid procs
	shift
	pid=$(first "$n") || die "machine $n does not run: $PROGRAM up"
	for procs in /sys/fs/cgroup/*/"$(cgroup "$n")"/cgroup.procs /sys/fs/cgroup/"$(cgroup "$n")"/first/cgroup.procs; do
		[[ ! -e $procs ]] || echo "$BASHPID" >"$procs"
	done
	if ((n == 0)); then
		exec nsenter -t "$pid" -m -n -p "$@"
	else
		exec nsenter -t "$pid" -m -n -p -u -i -C "$@"
	fi
); }

# cgroup N: the name of machine N's cgroup, unique per state directory.
cgroup() { echo "node-$(cksum <<<"$STATE" | cut -d' ' -f1)-$1"; }

# runs N PROGRAM: whether a process with that name runs on machine N.
runs() { [[ -n $(on "$1" pgrep -x "${2:0:15}" 2>/dev/null) ]]; }

# start N NAME COMMAND…: starts a process on machine N unless it runs; its output is appended to a file in STATE/log.
start() {
	local n=$1 name=$2
	shift 2
	runs "$n" "$(basename "$1")" && return
	(on "$n" setsid "$@" >>"$STATE/log/$name-$n.log" 2>&1 </dev/null 9>&- &)
}

# until_true SECONDS WHAT LOG COMMAND…: waits until a command succeeds; on a timeout the end of the log is printed.
until_true() {
	local tries=$(($1 * 5)) what=$2 log=$3
	shift 3
	until "$@" >/dev/null 2>&1; do
		((tries-- > 0)) || {
			[[ ! -s $log ]] || tail -n 8 "$log" >&2
			die "$what: not within the time given; its log is $log"
		}
		sleep 0.2
	done
}

# runs_on_the_host NAME: whether the process NAME that was started on this host runs.
runs_on_the_host() {
	local pid ticks
	read -r pid ticks 2>/dev/null <"$STATE/run/$1" && [[ $(started "$pid") == "$ticks" ]]
}

# put FILE: writes standard input to the file if it differs. kube-proxy exits when its configuration is written.
put() {
	local text
	text=$(cat)
	[[ -f $1 && $(<"$1") == "$text" ]] || printf '%s\n' "$text" >"$1"
}

kubectl() { "$TOOLS/kubectl" --kubeconfig "$STATE/kubeconfig" "$@"; }
