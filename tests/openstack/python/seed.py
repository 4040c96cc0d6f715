"""What a new cloud holds: seed.py identity | hypervisors | resources | finish. Every stage can be repeated.

seed.py deployed: the same on a cloud of `ferrostack openstack up` (AUTH_URL, CACERT), as far as it has the services. It
has its own catalog, accounts of services, zones and hypervisors.
"""
import os
import subprocess
import sys
import time

import openstack

STATE = os.environ['STATE']
HOSTS = int(os.environ['HOSTS'])
IP = '127.0.0.1'
AUTH_URL = os.environ.get('AUTH_URL', 'http://%s:5000/v3' % IP)
CACERT = os.environ.get('CACERT')
REGION = 'RegionOne'
ADMIN_PROJECT_USERS = ('glance', 'placement', 'nova', 'neutron', 'cinder', 'octavia')
CATALOG = (  # type, name, URL; the services' usual ones: some carry a version or the project, some do not
    ('identity', 'keystone', 'http://%s:5000/v3/'),
    ('image', 'glance', 'http://%s:9292'),
    ('placement', 'placement', 'http://%s:8778'),
    ('compute', 'nova', 'http://%s:8774/v2.1'),
    ('network', 'neutron', 'http://%s:9696'),
    ('volumev3', 'cinderv3', 'http://%s:8776/v3/$(project_id)s'),
    ('load-balancer', 'octavia', 'http://%s:9876'),
)
FLAVORS = (  # id, name, vCPUs, MB of memory, GB of disk: the simulated cloud's, and one for amphorae
    ('1', 'm1.tiny', 1, 512, 1), ('2', 'm1.small', 1, 2048, 20), ('3', 'm1.medium', 2, 4096, 40),
    ('4', 'm1.large', 4, 8192, 80), ('5', 'm1.xlarge', 8, 16384, 160), ('amphora', 'amphora', 1, 256, 2),
)
IMAGES = (  # name, tags, visibility
    ('ubuntu-24.04', ('ubuntu', 'lts'), 'public'),
    ('ubuntu-24.04-kubernetes', ('ubuntu', 'kubernetes', 'k8s-v1.34.2'), 'public'),
    ('flatcar-stable', ('flatcar', 'kubernetes'), 'public'),
    ('cirros', ('cirros', 'test'), 'public'),
    ('amphora', ('amphora',), 'private'),
)
VOLUME_TYPES = {  # name: extra specifications
    'standard': {'volume_backend_name': 'fake'},
    'fast': {'volume_backend_name': 'fake'},
    'shared': {'volume_backend_name': 'fake', 'multiattach': '<is> True'},
}
# Low enough that a test can exceed every limit, high enough for one server with its network.
LIMITED_COMPUTE = {'instances': 2, 'cores': 3, 'ram': 6144, 'key_pairs': 2, 'server_groups': 1, 'server_group_members': 2}
LIMITED_VOLUME = {'volumes': 2, 'gigabytes': 10, 'snapshots': 1}
LIMITED_NETWORK = {'networks': 2, 'subnets': 2, 'ports': 6, 'routers': 1, 'floating_ips': 1, 'security_groups': 3,
                   'security_group_rules': 12, 'trunk': 1}
LIMITED_BALANCER = {'load_balancer': 1, 'listener': 1, 'pool': 1, 'member': 2, 'health_monitor': 1}


def identity():
    """Projects, users, roles, the catalog, and the file by which clients find it all."""
    accounts(ADMIN_PROJECT_USERS)
    catalog()
    write_clouds(application_credential())


def deployed():
    accounts(())
    write_clouds(application_credential())
    admin = connect('admin')
    projects = {p.name: p.id for p in admin.identity.projects()}
    flavors(admin.compute)
    images(admin.image)
    external_network(admin.network)
    limits(admin, projects)


def accounts(of_services):
    write_clouds(application=None)
    password = secret('password')
    api = connect('admin').identity
    projects = {p.name: p for p in api.projects()}
    for name in ('service', 'demo', 'limited'):
        if name not in projects:
            projects[name] = api.create_project(name=name, domain_id='default')
    roles = {r.name: r for r in api.roles()}
    for name in ('admin', 'member', 'reader', 'service'):
        if name not in roles:
            roles[name] = api.create_role(name=name)
    users = {u.name: u for u in api.users()}

    def account(user, project, *granted):
        if user not in users:
            users[user] = api.create_user(name=user, password=password, domain_id='default',
                                          default_project_id=projects[project].id)
            for role in granted:
                api.assign_project_role_to_user(projects[project], users[user], roles[role])

    for name in of_services:
        # The role `service` makes their tokens service tokens (service_token_roles).
        account(name, 'service', 'admin', 'service')
    account('demo', 'demo', 'member', 'reader')
    account('reader', 'demo', 'reader')
    account('limited', 'limited', 'member', 'reader')


def catalog():
    api = connect('admin').identity
    services = {s.type: s for s in api.services()}
    known = {(e.service_id, e.interface) for e in api.endpoints()}
    for kind, name, url in CATALOG:
        if kind not in services:
            services[kind] = api.create_service(type=kind, name=name)
        for interface in ('public', 'internal', 'admin'):
            if (services[kind].id, interface) not in known:
                api.create_endpoint(service_id=services[kind].id, interface=interface, region_id=REGION, url=url % IP)


def application_credential():
    """The id of demo's; its secret is chosen here, as keystone would never tell it again."""
    demo = connect('demo')
    user = demo.current_user_id
    for found in demo.identity.application_credentials(user):
        if found.name == 'demo-app':
            return found.id
    return demo.identity.create_application_credential(
        user, 'demo-app', secret=secret('password'), description='of tests/openstack').id


def write_clouds(application):
    password = secret('password')
    end = f'    region_name: {REGION}\n    interface: public\n    identity_api_version: 3\n'
    if CACERT:
        end += f'    cacert: {CACERT}\n'

    def cloud(name, user, project):
        return (f'  {name}:\n    auth:\n      auth_url: {AUTH_URL}\n      username: {user}\n'
                f'      password: {password}\n      project_name: {project}\n      user_domain_name: Default\n'
                f'      project_domain_name: Default\n{end}')

    text = 'clouds:\n' + cloud('admin', 'admin', 'admin') + cloud('demo', 'demo', 'demo')
    text += cloud('demo-reader', 'reader', 'demo') + cloud('limited', 'limited', 'limited')
    if application:
        text += (f'  demo-app:\n    auth_type: v3applicationcredential\n    auth:\n      auth_url: {AUTH_URL}\n'
                 f'      application_credential_id: {application}\n      application_credential_secret: {password}\n{end}')
    # Renamed atomically, so that concurrent readers see either the old or the new file.
    part = clouds_file() + '.part'
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 'w') as file:
        file.write(text)
    os.rename(part, clouds_file())


def hypervisors():
    """Waits until every one of them has reported to Nova and to Placement."""
    cloud = connect('admin')
    until('every nova-compute', lambda: HOSTS <= sum(
        s.binary == 'nova-compute' and s.state == 'up' for s in cloud.compute.services()))
    until('every resource provider', lambda: HOSTS <= len(
        cloud.placement.get('/resource_providers').json()['resource_providers']))


def resources():
    admin = connect('admin')
    projects = {p.name: p.id for p in admin.identity.projects()}
    zones(admin.compute)
    flavors(admin.compute)
    images(admin.image)
    volume_types(admin.block_storage)
    external_network(admin.network)
    amphora_network(admin, projects)
    put(admin.block_storage, '/os-quota-sets/' + projects['limited'], json={'quota_set': LIMITED_VOLUME})
    limits(admin, projects)


def limits(admin, projects):
    put(admin.compute, '/os-quota-sets/' + projects['limited'], json={'quota_set': LIMITED_COMPUTE})
    admin.network.update_quota(projects['limited'], **LIMITED_NETWORK)
    for user in ('demo', 'limited'):
        keypair(connect(user).compute)


def zones(nova):
    existing = {a.name: a for a in nova.aggregates()}
    for zone in ('az1', 'az2'):
        if zone not in existing:
            existing[zone] = nova.create_aggregate(name=zone, availability_zone=zone)
    for number in range(1, HOSTS + 1):
        aggregate = existing['az%d' % ((number - 1) % 2 + 1)]
        host = 'cmp%d' % number
        if host not in (aggregate.hosts or []):
            nova.add_host_to_aggregate(aggregate, host)


def flavors(nova):
    known = {f.name for f in nova.flavors()}
    for identifier, name, vcpus, ram, disk in FLAVORS:
        if name not in known:
            nova.create_flavor(id=identifier, name=name, vcpus=vcpus, ram=ram, disk=disk, is_public=True)


def images(glance):
    known = {i.name for i in glance.images()}
    for name, tags, visibility in IMAGES:
        if name in known:
            continue
        image = glance.create_image(name=name, disk_format='raw', container_format='bare', visibility=visibility,
                                    min_disk=0, min_ram=0, tags=list(tags), os_distro=name.split('-')[0])
        # No hypervisor reads it. Its first bytes must not look like another format to Glance or Cinder.
        put(glance, '/images/%s/file' % image.id, data=name.encode().ljust(65536, b'\n'),
            headers={'Content-Type': 'application/octet-stream'})
        for tag in tags:
            put(glance, '/images/%s/tags/%s' % (image.id, tag))


def volume_types(cinder):
    known = {t.name for t in cinder.types()}
    for name, specifications in VOLUME_TYPES.items():
        if name not in known:
            cinder.create_type(name=name, extra_specs=specifications)


def external_network(neutron):
    network = neutron.find_network('public') or neutron.create_network(
        name='public', is_router_external=True, is_default=True, provider_network_type='flat', provider_physical_network='public')
    # Loopback addresses, so that floating IPs can be bound on this machine (`simulate guests`).
    if not neutron.find_subnet('public-subnet'):
        neutron.create_subnet(network_id=network.id, name='public-subnet', ip_version=4, cidr='127.24.0.0/20',
                              gateway_ip='127.24.0.1', enable_dhcp=False,
                              allocation_pools=[{'start': '127.24.0.10', 'end': '127.24.15.250'}])


def amphora_network(cloud, projects):
    """Octavia's own network; what octavia.conf needs to know of it goes into a file."""
    owner = projects['service']
    neutron = cloud.network
    network = neutron.find_network('amphorae') or neutron.create_network(name='amphorae', project_id=owner)
    if not neutron.find_subnet('amphorae'):
        neutron.create_subnet(network_id=network.id, project_id=owner, name='amphorae', ip_version=4,
                              cidr='10.250.0.0/16', enable_dhcp=False, gateway_ip=None)
    group = neutron.find_security_group('amphorae', project_id=owner) or neutron.create_security_group(
        name='amphorae', project_id=owner)
    put(cloud.compute, '/os-quota-sets/' + owner, json={
        'quota_set': {'instances': -1, 'cores': -1, 'ram': -1, 'server_groups': -1}})
    with open(STATE + '/data/octavia/ids', 'w') as file:
        file.write('%s %s %s\n' % (projects['admin'], network.id, group.id))


def keypair(nova):
    private = STATE + '/data/demo-key'
    if not os.path.exists(private):
        subprocess.check_call(['ssh-keygen', '-q', '-t', 'ed25519', '-N', '', '-C', 'demo', '-f', private])
    if not nova.find_keypair('demo-key'):
        with open(private + '.pub') as file:
            nova.create_keypair(name='demo-key', public_key=file.read().strip())


def finish():
    """Octavia's quota, and a last look: what answers slowest after a start."""
    admin = connect('admin')
    until('cinder-volume', lambda: 2 <= sum(
        s['binary'] == 'cinder-volume' and s['state'] == 'up'
        for s in admin.block_storage.get('/os-services').json()['services']))
    until('octavia', lambda: list(admin.load_balancer.providers()))
    limited = admin.identity.find_project('limited').id
    put(admin.load_balancer, '/lbaas/quotas/' + limited, json={'quota': LIMITED_BALANCER})


def put(service, path, **request):
    """For what openstacksdk of this release has no method for. Its answers are not checked otherwise."""
    answer = service.put(path, **request)
    if answer.status_code >= 300:
        sys.exit('PUT %s: %d %s' % (path, answer.status_code, answer.text))


def connect(cloud):
    os.environ['OS_CLIENT_CONFIG_FILE'] = clouds_file()
    return openstack.connect(cloud=cloud)


def clouds_file():
    return STATE + '/clouds.yaml'


def secret(name):
    with open(os.path.join(STATE, name)) as file:
        return file.read().strip()


def until(what, ready, seconds=180):
    end = time.monotonic() + seconds
    problem = 'not yet'
    while time.monotonic() < end:
        try:
            if ready():
                return
        except openstack.exceptions.SDKException as error:  # still starting
            problem = error
        time.sleep(0.5)
    sys.exit('waited %d s for %s: %s' % (seconds, what, problem))


if __name__ == '__main__':
    {f.__name__: f for f in (identity, hypervisors, resources, finish, deployed)}[sys.argv[1]]()
