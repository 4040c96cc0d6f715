"""Puts hosts into availability zones: zones.py MARK REGION HOST:ZONE ...

A zone is a host aggregate of a name with MARK, so that none of others is touched. Run again it does what is missing.
The account of Nova logs in with the password in OS_PASSWORD.
"""
import os
import sys

from keystoneauth1 import adapter, session
from keystoneauth1.identity import v3

KEYSTONE = 'http://keystone:5000/v3'


class Nova:
    def __init__(self, region):
        login = v3.Password(KEYSTONE, username='nova', password=os.environ['OS_PASSWORD'], user_domain_name='Default',
                            project_name='service', project_domain_name='Default')
        self.nova = adapter.Adapter(session.Session(login), service_type='compute', interface='internal',
                                    region_name=region)

    def aggregates(self):
        return {each['name']: each for each in self.nova.get('/os-aggregates').json()['aggregates']}

    def create(self, name, zone):
        body = {'aggregate': {'name': name, 'availability_zone': zone}}
        # Without hosts: they are not in the answer to a creation.
        return {'hosts': [], **self.nova.post('/os-aggregates', json=body).json()['aggregate']}

    def act(self, aggregate, action, body):
        self.nova.post(f'/os-aggregates/{aggregate["id"]}/action', json={action: body})


def main(mark, region, hosts):
    nova = Nova(region)
    there = nova.aggregates()
    for zone in dict.fromkeys(zone for _, zone in hosts):
        name = f'{mark}-{zone}'
        aggregate = there.get(name) or nova.create(name, zone)
        if aggregate['availability_zone'] != zone:
            nova.act(aggregate, 'set_metadata', {'metadata': {'availability_zone': zone}})
        for host in [host for host, of in hosts if of == zone and host not in aggregate['hosts']]:
            nova.act(aggregate, 'add_host', {'host': host})
            print(f'{host} is in {zone}', flush=True)


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2], [tuple(host.split(':')) for host in sys.argv[3:]])
