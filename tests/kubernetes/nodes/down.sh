# Stops the processes that `up` started and removes its files. Idempotent.

keep=
case ${1:-} in
'') ;;
--keep-images) keep=1 ;;
*) usage ;;
esac
images() { [[ -n $keep ]] || rm -rf "$ROOT/target/images"; }
[[ -d $STATE ]] || { images && exit 0; }
[[ -d $STATE/run ]] || die "$STATE was not made by '$PROGRAM up'"
STATE=$(cd "$STATE" && pwd)
exec 9>"$STATE/run/lock"
flock -w 60 9 || die "another 'up' or 'down' is at work in $STATE"

# end PID TICKS: kills the process with this id and start time, and waits for its end.
end() {
	local tries=0
	[[ $(started "$1") == "$2" ]] || return 0
	kill -KILL "$1" 2>/dev/null || true
	while [[ $(started "$1") == "$2" ]] && ((tries++ < 100)); do sleep 0.1; done
	((tries < 100)) || die "process $1 does not end"
}

for each in "$STATE"/run/forward*; do
	[[ ! -s $each ]] || end $(<"$each")
done
# Nodes first: machine 0 has the other ends of their links.
for n in $(machines | sort -rn); do
	read -r pid ticks <"$STATE/machine-$n/first"
	end "$pid" "$ticks"
done

# Cgroups, the deepest first; removal fails for a moment while their processes end.
remaining() { find /sys/fs/cgroup -maxdepth 2 -type d -name "$(cgroup '[0-9]')" -print -quit; }
for ((tries = 0; tries < 50; tries++)); do
	[[ -n $(remaining) ]] || break
	find /sys/fs/cgroup -depth -type d -path "*/$(cgroup '[0-9]')*" -exec rmdir {} + 2>/dev/null || true
	[[ -z $(remaining) ]] || sleep 0.2
done
left=$(remaining)

# Loop devices with files under STATE. They are found by inode, because the path is that in the pod that attached them.
file_system=$(stat -c %Hd:%Ld "$STATE")
while read -r device inode place; do
	[[ $place != "$file_system" || -z $(find "$STATE" -xdev -inum "$inode" -print -quit) ]] || losetup -d "$device"
done < <(losetup -n -l -O NAME,BACK-INO,BACK-MAJ:MIN 2>/dev/null)

if [[ -s $STATE/run/directories ]]; then
	sort -r "$STATE/run/directories" | while read -r directory; do rmdir "$directory" 2>/dev/null || true; done
fi
! grep -q " $STATE/" /proc/self/mountinfo || die "something is still mounted under $STATE"
[[ -z $left ]] || die "the cgroup $left is still in use"
rm -rf --one-file-system "$STATE"
images
