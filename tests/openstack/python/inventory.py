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
        'volume': c.block_storage.volumes(),
        'snapshot': c.block_storage.snapshots(),
        'network': neutron.networks(project_id=project),
        'subnet': neutron.subnets(project_id=project),
        'port': neutron.ports(project_id=project),
        'router': neutron.routers(project_id=project),
        'trunk': neutron.trunks(project_id=project),
        'floating ip': neutron.ips(project_id=project),
        'security group': neutron.security_groups(project_id=project),
        'load balancer': c.load_balancer.load_balancers(project_id=project),
        'listener': c.load_balancer.listeners(project_id=project),
        'pool': c.load_balancer.pools(project_id=project),
        'health monitor': c.load_balancer.health_monitors(project_id=project),
        'application credential': c.identity.application_credentials(c.current_user_id),
        'image': c.image.images(owner=project),
    }
    print('\n'.join(sorted(f'{kind} {item.id} {item.name}' for kind, items in found.items() for item in items)))


if __name__ == '__main__':
    main(sys.argv[1])
