"""Octavia's API (as a WSGI file) and its driver agent (as a program) with the driver of OVN, whose library finds the sockets of the
agent in /var/run/octavia alone: here they are in FERROSTACK_OCTAVIA_SOCKETS, as [driver_agent] says.
"""
import os
import sys

from octavia_lib.api.drivers import driver_lib

directory = os.environ['FERROSTACK_OCTAVIA_SOCKETS']
driver_lib.DriverLibrary.__init__.__defaults__ = tuple(f'{directory}/octavia-{name}.sock' for name in ('status', 'stats', 'get'))

if __name__ == '__main__':
    from octavia.cmd import driver_agent
    sys.exit(driver_agent.main())
else:
    from octavia.api.app import setup_app
    application = setup_app()
