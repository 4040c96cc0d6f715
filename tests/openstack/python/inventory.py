"""Every resource of a project, one a line, sorted: inventory.py CLOUD [whole|json]. For comparing before and after a test.

With "whole", each line has every field that only a change of the resource changes. With "json", all of them are one
object, by their kinds, with every field.
"""
import json
import sys

import openstack

# States, times and counters, which also change by themselves; and the servers in a server group.
VOLATILE = {'location', 'updated_at', 'revision_number', 'status', 'operating_status', 'progress', 'member_ids'}


def line(kind, item, whole):
    if not whole:
        return f'{kind} {item.id} {item.name}'
    fields = {key: value for key, value in item.to_dict().items() if key not in VOLATILE}
    return f'{kind} {item.id} {json.dumps(fields, sort_keys=True, default=str)}'


def main(cloud, form=''):
    c = openstack.connect(cloud=cloud)
    project = c.current_project_id
    neutron = c.network
    found = {
        'server': c.compute.servers(),
        'server group': c.compute.server_groups(),
        'keypair': c.compute.keypairs(),
        'network': neutron.networks(project_id=project),
        'subnet': neutron.subnets(project_id=project),
        'port': neutron.ports(project_id=project),
        'router': neutron.routers(project_id=project),
        'trunk': neutron.trunks(project_id=project),
        'subnet pool': neutron.subnet_pools(project_id=project),
        'floating ip': neutron.ips(project_id=project),
        'security group': neutron.security_groups(project_id=project),
        'application credential': c.identity.application_credentials(c.current_user_id),
        'image': c.image.images(owner=project),
    }
    # Not every cloud has these services.
    if c.has_service('block-storage'):
        found['volume'] = c.block_storage.volumes()
        found['snapshot'] = c.block_storage.snapshots()
    if c.has_service('load-balancer'):
        found['load balancer'] = c.load_balancer.load_balancers(project_id=project)
        found['listener'] = c.load_balancer.listeners(project_id=project)
        found['pool'] = c.load_balancer.pools(project_id=project)
        found['health monitor'] = c.load_balancer.health_monitors(project_id=project)
    if form == 'json':
        print(json.dumps({kind: [item.to_dict() for item in items] for kind, items in found.items()}, default=str))
        return
    whole = form == 'whole'
    print('\n'.join(sorted(line(kind, item, whole) for kind, items in found.items() for item in items)))


if __name__ == '__main__':
    main(*sys.argv[1:])
