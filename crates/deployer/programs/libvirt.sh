# libvirt on a node: whether guests run on KVM, then libvirtd, whose guests outlive the Pod.
set -eu
# Guests inherit the cgroup of libvirtd. In that of the Pod they would end with it.
for tasks in /node/cgroup/cgroup.procs /node/cgroup/*/cgroup.procs; do
	[ -e "$tasks" ] || continue
	root=${tasks%/*}
	# The files of version 2 beside the hierarchies of version 1.
	[ ! -e "$root/cgroup.controllers" ] || [ "$root" = /node/cgroup ] || continue
	guests=$root/ferrostack-guests
	mkdir -p "$guests"
	# A new cpuset has neither processors nor memory.
	for list in cpuset.cpus cpuset.mems; do
		[ ! -e "$guests/$list" ] || [ -n "$(cat "$guests/$list")" ] || [ ! -e "$root/$list" ] || cat "$root/$list" >"$guests/$list"
	done
	echo $$ >"$guests/cgroup.procs"
done
# /dev/kvm may be there and guests die on it: a kernel has to get as far as looking for its disk.
kvm() {
	[ -c /dev/kvm ] && timeout 60 qemu-system-x86_64 -accel kvm -cpu host -m 128 -nodefaults -display none -serial stdio -no-reboot \
		-kernel /vmlinuz -append 'console=ttyS0 panic=-1' </dev/null 2>/dev/null | grep -q 'Kernel panic'
}
kind=qemu
# Without what the shell says of a QEMU that was ended by a signal.
if kvm 2>/dev/null; then
	kind=kvm
	# That of the container; QEMU is no user of root.
	chmod 0666 /dev/kvm
else
	# That of the container, too. libvirt asks QEMU for what it can again and again, for seconds each time, if QEMU itself finds
	# a KVM that the user of guests may not use.
	rm -f /dev/kvm
fi
mkdir -p /etc/libvirt /var/lib/libvirt/qemu
cp /opt/ferrostack/qemu.conf /etc/libvirt/qemu.conf
echo "$kind" >/run/libvirt/ferrostack-kind.new
mv /run/libvirt/ferrostack-kind.new /run/libvirt/ferrostack-kind
echo "guests run on $kind"
exec libvirtd --config /opt/ferrostack/libvirtd.conf
