"""Octavia's API for uWSGI: balancers:application

Octavia goes on without a provider that does not load, as when OVN's database is away at its start: then no load balancer can be made
until somebody restarts it. Here the process ends instead, and is started again.
"""
from octavia.api.drivers import driver_factory
from octavia.wsgi.api import application

if 'ovn' not in driver_factory.get_providers():
    raise RuntimeError('the provider of OVN is not loaded')

__all__ = ['application']
