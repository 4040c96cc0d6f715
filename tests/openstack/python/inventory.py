"""Every resource of a project, one a line, sorted: inventory.py CLOUD. For comparing before and after a test."""
import sys

import openstack


def main(cloud):
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
    print('\n'.join(sorted(f'{kind} {item.id} {item.name}' for kind, items in found.items() for item in items)))


if __name__ == '__main__':
    main(sys.argv[1])
