# libvirt on a node: whether guests run on KVM, then libvirtd, whose guests outlive the Pod.
#   NODE, ADDRESS    name and address of the node, by which the libvirt of other nodes reach this one
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
# Guests move between nodes. libvirtd and QEMU take connections of those alone whose certificate is of this cloud, and each
# node makes itself one. It is in a directory of the node: QEMU outlives the Pod, and reads it when its guest moves.
keys=/etc/libvirt/ferrostack-keys
rm -rf $keys.new
mkdir -p $keys.new /etc/pki/CA /etc/pki/libvirt/private
chmod 0700 $keys.new
cat >/tmp/extensions <<-END
	subjectAltName = IP:$ADDRESS
	basicConstraints = critical, CA:FALSE
	keyUsage = critical, digitalSignature
	extendedKeyUsage = serverAuth, clientAuth
END
openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj "/CN=$NODE" \
	-keyout $keys.new/server-key.pem -out /tmp/request.pem 2>/dev/null
openssl x509 -req -in /tmp/request.pem -CA /opt/ferrostack/migration.crt -CAkey /opt/ferrostack/migration.key \
	-set_serial "0x$(openssl rand -hex 16)" -days 3650 -extfile /tmp/extensions -out $keys.new/server-cert.pem 2>/dev/null
cp /opt/ferrostack/migration.crt $keys.new/ca-cert.pem
cp $keys.new/server-key.pem $keys.new/client-key.pem
cp $keys.new/server-cert.pem $keys.new/client-cert.pem
cp $keys.new/ca-cert.pem /etc/pki/CA/cacert.pem
cp $keys.new/client-cert.pem /etc/pki/libvirt/clientcert.pem
cp $keys.new/client-key.pem /etc/pki/libvirt/private/clientkey.pem
chown -R nova:nova $keys.new
rm -rf $keys
mv $keys.new $keys
# Two nodes may have the same id of the machine, and a guest does not move to its own host.
[ -s /etc/libvirt/ferrostack-host ] || cat /proc/sys/kernel/random/uuid >/etc/libvirt/ferrostack-host
{
	cat /opt/ferrostack/libvirtd.conf
	echo "listen_addr = \"$ADDRESS\""
	echo "host_uuid = \"$(cat /etc/libvirt/ferrostack-host)\""
} >/etc/libvirt/libvirtd.conf
{
	cat /opt/ferrostack/qemu.conf
	echo "migration_address = \"$ADDRESS\""
	echo "migration_host = \"$ADDRESS\""
} >/etc/libvirt/qemu.conf
echo "$kind" >/run/libvirt/ferrostack-kind.new
mv /run/libvirt/ferrostack-kind.new /run/libvirt/ferrostack-kind
echo "guests run on $kind"
exec libvirtd --listen --config /etc/libvirt/libvirtd.conf
