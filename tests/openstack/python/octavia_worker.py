"""octavia-worker with three upstream fixes that Debian 12's Octavia (11.0.0) and oslo.log lack.

A load balancer created as a whole tree (listeners, pools and monitors in the POST) becomes ACTIVE there while its
children stay PENDING_CREATE for ever, and so immutable: without a job board, ControllerWorker.run_flow hands the
arguments of the flow (`listeners`) to the engine, and the part of the flow that would be for the listeners misses a
task. Later releases do as below.

oslo.log gives logging the locks of eventlet as soon as any library has imported it. Octavia's threads are native, and one
that waits for such a lock is never woken ("cannot switch to a different thread"): the worker hangs, and load balancers stay
PENDING_UPDATE. Later releases do so only where eventlet has replaced the threads.

FERROSTACK_OPENSTACK_OCTAVIA=debian leaves all of it as it is, for testing against clouds that have it.
"""
import sys

from octavia.cmd import octavia_worker
from octavia.common import constants
from octavia.controller.worker.v2 import controller_worker
from octavia.controller.worker.v2.flows import load_balancer_flows
from octavia.controller.worker.v2.tasks import amphora_driver_tasks, network_tasks
from oslo_log import log
from taskflow.listeners import logging

create_listeners_flow = load_balancer_flows.LoadBalancerFlows._create_listeners_flow


def run_flow(self, func, *args, store=None, **kwargs):
    engine = self.tf_engine.taskflow_load(func(*args, **kwargs), store=store)
    with logging.DynamicLoggingListener(engine, log=controller_worker.LOG):
        engine.run()


def with_network_configs(self):
    """The flow of the listeners, with what plugging the amphorae's networks requires in front of it."""
    tasks = create_listeners_flow(self)
    plug = next(n for n, task in enumerate(tasks) if isinstance(task, amphora_driver_tasks.AmphoraePostNetworkPlug))
    tasks.insert(plug, network_tasks.GetAmphoraeNetworkConfigs(
        requires=constants.LOADBALANCER_ID, provides=constants.AMPHORAE_NETWORK_CONFIG))
    return tasks


if __name__ == '__main__':
    log._fix_eventlet_logging = lambda: None
    controller_worker.ControllerWorker.run_flow = run_flow
    load_balancer_flows.LoadBalancerFlows._create_listeners_flow = with_network_configs
    sys.exit(octavia_worker.main())
