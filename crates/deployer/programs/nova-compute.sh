# nova-compute on a node, when its libvirt answers.
#   nova-compute.sh MODE    what guests see as their processor (compute.libvirt.cpuMode)
set -eu
until [ -S /run/libvirt/libvirt-sock ] && [ -s /run/libvirt/ferrostack-kind ]; do sleep 1; done
OS_LIBVIRT__VIRT_TYPE=$(cat /run/libvirt/ferrostack-kind)
export OS_LIBVIRT__VIRT_TYPE
if [ "$1 $OS_LIBVIRT__VIRT_TYPE" = "HostPassthrough qemu" ]; then
	echo "compute.libvirt.cpuMode: HostPassthrough needs KVM, on which no guest starts on $OS_DEFAULT__HOST" >&2
	exit 1
fi
# QEMU gets the key of the Ceph from libvirtd, which keeps it under a name.
if [ -s /etc/ceph/key ]; then
	virsh --quiet secret-define /etc/ceph/secret.xml
	virsh --quiet secret-set-value "$(sed -n 's/.*<uuid>\(.*\)<\/uuid>.*/\1/p' /etc/ceph/secret.xml)" --file /etc/ceph/key
fi
mkdir -p /var/lib/nova/instances /var/lib/nova/tmp
exec python3 /opt/ferrostack/nova-compute.py
