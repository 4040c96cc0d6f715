# The volumes of a machine that runs: a file for each, as a loop device in the machine's /dev with a link by its serial number.

# Volumes outlive machines and go from one to another: their files are beside the directory of all machines.
store() { echo "${FERROSTACK_MACHINE_VOLUMES:-$(dirname "$PWD").volumes}"; }

# answer_for_volumes PID: takes and gives back the volumes of the machine with this first process (docs/project/simulator.md). For ever.
answer_for_volumes() {
	local at=$PWD/volumes inside=/proc/$1/root/dev files file id
	files=$(store)
	declare -A devices=() seen=()
	# Until the machine has a root of its own, this is the one of the host.
	while [[ "/proc/$1/root" -ef / ]]; do
		kill -0 "$1" 2>/dev/null || return 0
		sleep 0.1
	done
	mkdir -p "$inside/disk/by-id" "$at"
	# Of an earlier start of the machine.
	rm -f "$at"/*.ready
	trap 'give_all_back; exit' TERM
	touch "$at/answers"
	while :; do
		for file in "$at"/*.json; do
			[[ -e $file ]] || continue
			id=$(basename "$file" .json)
			# The file is replaced when the volume has grown.
			[[ ${seen[$id]:-} == $(stat -c %i "$file" 2>/dev/null) ]] || take_volume "$file"
		done
		for id in "${!devices[@]}"; do [[ -e $at/$id.json ]] || give_back "$id"; done
		sleep 0.2 &
		wait $!
	done
}

# take_volume FILE: makes its disk, or makes it larger.
take_volume() {
	local size serial number
	seen[$id]=$(stat -c %i "$1") || return 0
	read -r size serial < <(jq -r '"\(.size_gib) \(.serial)"' "$1") || return 0
	mkdir -p "$files"
	# A file never becomes smaller: that would lose data.
	truncate -s ">${size}G" "$files/$id" || { fail_volume "the disk of $size GiB cannot be made"; return; }
	if [[ -n ${devices[$id]:-} ]]; then
		losetup -c "${devices[$id]}"
	else
		devices[$id]=$(losetup --find --show "$files/$id") || { unset "devices[$id]"; fail_volume "there is no loop device"; return; }
		number=${devices[$id]#/dev/loop}
		rm -f "$inside/loop$number"
		mknod -m 660 "$inside/loop$number" b 7 "$number"
		ln -sf "/dev/loop$number" "$inside/disk/by-id/virtio-$serial"
	fi
	touch "$at/$id.ready"
}

# give_back ID: takes a disk away, unless a file system on it is mounted.
give_back() {
	local id=$1 device=${devices[$1]}
	if grep -qs " 7:${device#/dev/loop} " /proc/[0-9]*/mountinfo; then
		# Once for each time that it is asked for.
		[[ -z ${seen[$id]:-} ]] || fail_volume "the machine has a file system of it mounted"
		seen[$id]=
		return
	fi
	remove_disk "$id"
	rm -f "$at/$id.ready"
}

# remove_disk ID
remove_disk() {
	local device=${devices[$1]}
	find "$inside/disk/by-id" -lname "$device" -delete 2>/dev/null || true
	rm -f "$inside/${device#/dev/}"
	losetup -d "$device" || true
	unset "devices[$1]" "seen[$1]"
}

# give_all_back: the machine is switched off. What it has still mounted goes with its last process.
give_all_back() {
	local id
	for id in "${!devices[@]}"; do remove_disk "$id"; done
}

# fail_volume WHY: the answer about the volume `id`.
fail_volume() {
	echo "$1" >"$at/.failed"
	mv "$at/.failed" "$at/$id.failed"
}
