"""A nova-compute whose guests are imaginary: compute.py CLOUD

Everything but the hypervisor is Nova's own. CLOUD is the uid of the cloud: with the name of the host it gives the node the
identity that it has after every restart, when nothing on a disk tells it.
"""
import pathlib
import socket
import sys
import time
import uuid

# First of all of Nova: it replaces parts of the standard library.
import nova.cmd.compute
import nova.compute.manager
import nova.service
from nova.compute import power_state, vm_states
from nova.virt import fake

STATE = pathlib.Path('/var/lib/nova')
# How long the service waits at its end for builds that have begun, in seconds: within the grace of its Pod.
ENDING = 25


def main(cloud):
    identity = str(uuid.uuid5(uuid.NAMESPACE_URL, f'{cloud}/{socket.gethostname()}'))
    # Where Nova looks for it since 2023.1; it does not start a second time without.
    (STATE / 'compute_id').write_text(identity)
    started = STATE / 'started'
    # The directory lives as long as the Pod: in a new one the service before has ended in order.
    crashed = started.exists()
    started.unlink(missing_ok=True)
    keep_builds(nova.compute.manager.ComputeManager, crashed)
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

        # A guest that is stopped is not resumed, and is there as well.
        def get_info(self, instance, *rest, **named):
            if instance.vm_state == vm_states.STOPPED:
                self.remember(instance, power_state.SHUTDOWN)
            return super().get_info(instance, *rest, **named)

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


def keep_builds(manager, crashed):
    """A service that restarts loses no server that is being built.

    Without this, servers whose build had begun would end in ERROR, and so, for a while, would those that wait in the queue of the
    host, which the broker keeps, and which the new service builds.
    """
    under_way = set()
    build, cleanup = manager._do_build_and_run_instance, manager.cleanup_host

    def building(self, context, instance, *rest, **named):
        under_way.add(instance.uuid)
        try:
            return build(self, context, instance, *rest, **named)
        finally:
            under_way.discard(instance.uuid)

    def ending(self):
        until = time.monotonic() + ENDING
        while under_way and time.monotonic() < until:
            time.sleep(0.1)
        cleanup(self)

    manager._do_build_and_run_instance = building
    manager.cleanup_host = ending
    if not crashed:
        manager._error_out_instances_whose_build_was_interrupted = lambda *_: None


def announce(started):
    """Makes a file when the service has its records in the cell and in Placement, and takes messages."""
    start = nova.service.Service.start

    def starting(service):
        start(service)
        started.touch()

    nova.service.Service.start = starting


if __name__ == '__main__':
    main(sys.argv[1])
