"""nova-compute beside a libvirt in another Pod, whose terminals it does not see.

Nova gives out the console of a guest when it sees the terminal of its first serial port, and adds what it reads from that to
the file into which QEMU writes, too. Here the file is read, and nothing else.
"""
import sys

# First of all of Nova: it replaces parts of the standard library.
import nova.cmd.compute
from nova.virt.libvirt import driver


def console(self, context, instance):
    # A guest that is not there is named.
    self._host.get_guest(instance)
    return self._get_console_output_file(instance, self._get_console_log_path(instance))


if __name__ == '__main__':
    driver.LibvirtDriver.get_console_output = console
    sys.argv = ['nova-compute']
    nova.cmd.compute.main()
