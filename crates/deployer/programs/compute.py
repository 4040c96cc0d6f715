"""A nova-compute whose guests are imaginary: compute.py CLOUD

Everything but the hypervisor is Nova's own. CLOUD is the uid of the cloud: with the name of the host it gives the node the
identity that it has after every restart, when nothing on a disk tells it.
"""
import pathlib
import socket
import sys
import uuid

# First of all of Nova: it replaces parts of the standard library.
import nova.cmd.compute
import nova.service
from nova.compute import power_state
from nova.virt import fake

STATE = pathlib.Path('/var/lib/nova')


def main(cloud):
    identity = str(uuid.uuid5(uuid.NAMESPACE_URL, f'{cloud}/{socket.gethostname()}'))
    # Where Nova looks for it since 2023.1; it does not start a second time without.
    (STATE / 'compute_id').write_text(identity)
    started = STATE / 'started'
    started.unlink(missing_ok=True)
    # Under a name that Nova does not use: its class finds its parent by its name (super(FakeDriver, self)), and with ours
    # in its place it would call itself for ever.
    fake.Hypervisor = hypervisor(identity)
    announce(started)
    sys.argv = ['nova-compute']
    nova.cmd.compute.main()


def hypervisor(identity):
    """Nova's driver, with an identity of ours, and with guests that come back after a restart."""

    class Hypervisor(fake.FakeDriver):
        def get_available_resource(self, nodename):
            resources = super().get_available_resource(nodename)
            # Nova's own is random since 2023.1, and another one for a known host is rejected.
            return {**resources, 'uuid': identity} if resources else resources

        def get_nodenames_by_uuid(self, refresh=False):
            return {identity: name for name in self.get_available_nodes()}

        # Nova calls it for each guest that ran (resume_guests_state_on_host_boot).
        def resume_state_on_host_boot(self, context, instance, *rest, **named):
            self.remember(instance, power_state.RUNNING)

        def power_on(self, context, instance, *rest, **named):
            self.remember(instance, power_state.SHUTDOWN)
            return super().power_on(context, instance, *rest, **named)

        def remember(self, instance, state):
            if instance.uuid in self.instances:
                return
            flavor = instance.flavor
            self.resources.claim(vcpus=flavor.vcpus, mem=flavor.memory_mb, disk=flavor.root_gb)
            self.instances[instance.uuid] = fake.FakeInstance(instance.name, state, instance.uuid)

    return Hypervisor


def announce(started):
    """Makes a file when the service has its records in the cell and in Placement, and takes messages."""
    start = nova.service.Service.start

    def starting(service):
        start(service)
        started.touch()

    nova.service.Service.start = starting


if __name__ == '__main__':
    main(sys.argv[1])
