"""The lives of Services of type LoadBalancer, for tests/openstack/services, which describes them.

    services.py run --cloud CLOUD --name NAME --work DIR --kubectl PATH --binary PATH [--go PATH]
    services.py scrub --cloud CLOUD --name NAME --work DIR --kubectl PATH
"""
import argparse
import json
import os
import signal
import subprocess
import sys
import time

from clients import command_here

PREFIX = 'loadbalancer.openstack.org/'
INTERNAL = 'service.beta.kubernetes.io/openstack-internal-load-balancer'
PATIENCE = 120 * int(os.environ.get('FERROSTACK_PATIENCE', '1'))  # seconds, of everything that has to come about
AT_ONCE = 4  # kinds of Services that are made at the same time
UNINITIALIZED = 'node.cloudprovider.kubernetes.io/uninitialized'


class Wrong(Exception):
    pass


def say(text):
    print('  %s' % text, flush=True)


class World:
    def __init__(self, options):
        self.options = options
        self.client = command_here()
        self.balancer = 'kube_service_%s_%s_' % (options.name, options.name)

    # The clients.

    def cloud(self, *arguments):
        """A command of the `openstack` client, and what it prints as JSON."""
        text = self.text(*arguments, '-f', 'json')
        return json.loads(text) if text.strip() else None

    def text(self, *arguments):
        status, out, err = self.client(['--os-cloud', self.options.cloud, *arguments])
        if status != 0:
            raise Wrong('openstack %s: %s' % (' '.join(arguments), err.strip().splitlines()[-1:]))
        return out

    def kubectl(self, *arguments, given=None):
        done = subprocess.run([self.options.kubectl, '-n', self.options.name, *arguments], input=given, text=True,
                              capture_output=True, timeout=PATIENCE + 60)
        if done.returncode != 0:
            raise Wrong('kubectl %s: %s' % (' '.join(arguments), done.stderr.strip()))
        return done.stdout

    def get(self, *arguments):
        return json.loads(self.kubectl('get', *arguments, '-o', 'json'))

    def apply(self, *objects):
        self.kubectl('apply', '-f', '-', given=json.dumps({'apiVersion': 'v1', 'kind': 'List', 'items': objects}))

    def change(self, name, **fields):
        self.kubectl('patch', 'service', name, '--type=merge', '-p', json.dumps(fields))

    def annotate(self, name, **values):
        named = {key if '/' in key else PREFIX + key.replace('_', '-'): value for key, value in values.items()}
        self.change(name, metadata={'annotations': named})

    # The cluster.

    def service(self, name, ports, annotations=None, **spec):
        named = {key if '/' in key else PREFIX + key: value for key, value in (annotations or {}).items()}
        return {'apiVersion': 'v1', 'kind': 'Service',
                'metadata': {'name': name, 'namespace': self.options.name, 'annotations': named},
                'spec': {'type': 'LoadBalancer', 'selector': {'app': name}, 'ports': ports, **spec}}

    def node(self, name):
        """A Node as a kubelet registers it, which is ready as soon as its controllers have initialised it."""
        self.kubectl('create', '-f', '-', given=json.dumps({
            'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': name},
            'spec': {'taints': [{'key': UNINITIALIZED, 'value': 'true', 'effect': 'NoSchedule'}]}}))

    def initialised(self, name):
        node = self.get('node', name)
        assert_that(node['spec'].get('providerID', '').startswith('openstack:///'), node['spec'])
        assert_that(not any(it['key'] == UNINITIALIZED for it in node['spec'].get('taints', [])), node['spec'])
        return [it['address'] for it in node['status']['addresses'] if it['type'] == 'InternalIP'][0]

    def ready(self, name):
        now = time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime())
        condition = {'type': 'Ready', 'status': 'True', 'reason': 'KubeletReady', 'message': '', 'lastHeartbeatTime': now,
                     'lastTransitionTime': now}
        self.kubectl('patch', 'node', name, '--subresource=status', '--type=strategic', '-p',
                     json.dumps({'status': {'conditions': [condition]}}))

    def ingress(self, name):
        status = self.get('service', name)['status'].get('loadBalancer', {}).get('ingress')
        assert_that(status, '%s has no address' % name)
        return status[0]

    def event(self, name, reason, words):
        events = self.get('events.events.k8s.io')['items']
        notes = [it.get('note', '') for it in events if it['reason'] == reason and it['regarding']['name'] == name]
        assert_that(any(words in note for note in notes), '%s of %s: %s' % (reason, name, notes))

    # What the client sees.

    def tree(self, name):
        """The load balancer of a Service as the client lists it, ACTIVE, with its listeners, pools and members."""
        shown = self.cloud('loadbalancer', 'show', self.balancer + name)
        assert_that(shown['provisioning_status'] == 'ACTIVE', shown['provisioning_status'])
        tree = json.loads(self.text('loadbalancer', 'status', 'show', shown['id']))['loadbalancer']
        return shown, {it['name'].split('_')[1]: it for it in tree['listeners']}

    def listener(self, id):
        return self.cloud('loadbalancer', 'listener', 'show', id)

    def pool(self, listener):
        return self.cloud('loadbalancer', 'pool', 'show', listener['pools'][0]['id'])

    def members(self, listener):
        return self.cloud('loadbalancer', 'member', 'list', listener['pools'][0]['id'])

    def ids(self):
        """What must stay when another manager continues: ids, and addresses."""
        found = {}
        for kind in ['', 'listener', 'pool']:
            for it in self.cloud(*['loadbalancer', kind, 'list'] if kind else ['loadbalancer', 'list']):
                found['%s %s' % (kind or 'load balancer', it['name'])] = it['id']
        for it in self.cloud('floating', 'ip', 'list'):
            found['floating IP %s' % it['Floating IP Address']] = it['ID']
        for it in self.get('services')['items']:
            found['address of %s' % it['metadata']['name']] = json.dumps(it['status'].get('loadBalancer', {}).get('ingress'))
        return found


def assert_that(holds, otherwise):
    if not holds:
        raise Wrong(str(otherwise))


def eventually(what, check, patience=PATIENCE):
    end = time.monotonic() + patience
    while True:
        try:
            return check()
        except (Wrong, KeyError, IndexError) as wrong:
            if time.monotonic() > end:
                raise Wrong('%s: %s: %s' % (what, type(wrong).__name__, wrong)) from wrong
        time.sleep(1)


def tcp(port, name=None, **more):
    return {'name': name or 'p%s' % port, 'protocol': 'TCP', 'port': port, **more}


def udp(port):
    return {'name': 'u%s' % port, 'protocol': 'UDP', 'port': port}


# The kinds of Services: each has what it is created with, what holds then, a change, and what holds after that.

def two_ports(world):
    yield [world.service('two-ports', [tcp(80), tcp(443)])]

    def created():
        shown, listeners = world.tree('two-ports')
        assert_that(shown['description'] == 'Kubernetes external service %s/two-ports from cluster %s' % (
            world.options.name, world.options.name), shown['description'])
        ports = {it['port']: it['nodePort'] for it in world.get('service', 'two-ports')['spec']['ports']}
        for index, port in [('0', 80), ('1', 443)]:
            listener = world.listener(listeners[index]['id'])
            assert_that((listener['protocol'], listener['protocol_port']) == ('TCP', port), listener)
            members = {(it['address'], it['protocol_port']) for it in world.members(listeners[index])}
            assert_that(members == {(address, ports[port]) for address in world.addresses}, members)
        floating = world.cloud('floating', 'ip', 'show', world.ingress('two-ports')['ip'])
        assert_that(floating['port_id'] == shown['vip_port_id'], floating)
        return listeners['0']['id']
    world.kept_listener = yield created
    world.change('two-ports', spec={'ports': [tcp(80), tcp(8443)]})

    def changed():
        _, listeners = world.tree('two-ports')
        ports = {world.listener(it['id'])['protocol_port']: it['id'] for it in listeners.values()}
        assert_that(set(ports) == {80, 8443}, ports)
        assert_that(ports[80] == world.kept_listener, 'the listener of port 80 was made anew')
    yield changed


def datagrams(world):
    yield [world.service('udp', [udp(53)], {'enable-health-monitor': 'true'})]

    def created():
        _, listeners = world.tree('udp')
        assert_that(world.pool(listeners['0'])['protocol'] == 'UDP', listeners)
        monitor = listeners['0']['pools'][0]['health_monitor']
        assert_that(monitor['type'] == 'UDP-CONNECT', monitor)
    yield created
    world.annotate('udp', enable_health_monitor='false')

    def changed():
        _, listeners = world.tree('udp')
        assert_that('health_monitor' not in listeners['0']['pools'][0], listeners)
    yield changed


def proxy(world):
    yield [world.service('proxy', [tcp(80)], {'proxy-protocol': 'v2'})]

    def created():
        _, listeners = world.tree('proxy')
        assert_that(world.pool(listeners['0'])['protocol'] == 'PROXYV2', listeners)
        assert_that(world.ingress('proxy')['ipMode'] == 'Proxy', 'ipMode')
    yield created
    world.annotate('proxy', proxy_protocol=None)

    def changed():
        _, listeners = world.tree('proxy')
        assert_that(world.pool(listeners['0'])['protocol'] == 'TCP', listeners)
        assert_that(len(world.members(listeners['0'])) == 2, 'members')
    yield changed


def internal(world):
    yield [world.service('internal', [tcp(80)], {INTERNAL: 'true'})]

    def created():
        shown, _ = world.tree('internal')
        assert_that(world.ingress('internal')['ip'] == shown['vip_address'], shown)
        assert_that(not world.cloud('floating', 'ip', 'list', '--port', shown['vip_port_id']), 'it has a floating IP')
    yield created
    world.annotate('internal', **{INTERNAL: 'false'})

    def changed():
        shown, _ = world.tree('internal')
        floating = world.cloud('floating', 'ip', 'list', '--port', shown['vip_port_id'])
        assert_that(world.ingress('internal')['ip'] == floating[0]['Floating IP Address'], floating)
    yield changed


def ranges(world):
    yield [world.service('ranges', [tcp(80)], loadBalancerSourceRanges=['10.0.0.0/8', '192.0.2.0/24'])]

    def cidrs(*wanted):
        _, listeners = world.tree('ranges')
        listener = world.listener(listeners['0']['id'])
        assert_that(set(listener['allowed_cidrs'].split()) == set(wanted), listener['allowed_cidrs'])
    yield lambda: cidrs('10.0.0.0/8', '192.0.2.0/24')
    world.change('ranges', spec={'loadBalancerSourceRanges': ['198.51.100.0/24']})
    yield lambda: cidrs('198.51.100.0/24')


def kept(world):
    """A floating IP that is there before the Service, and after it."""
    world.given = world.cloud('floating', 'ip', 'create', 'public')
    address = world.given['floating_ip_address']
    yield [world.service('kept', [tcp(80)], {'keep-floatingip': 'true'}, loadBalancerIP=address)]

    def created():
        shown, _ = world.tree('kept')
        assert_that(world.ingress('kept')['ip'] == address, address)
        assert_that(world.cloud('floating', 'ip', 'show', address)['port_id'] == shown['vip_port_id'], 'not attached')
    yield created
    world.annotate('kept', connection_limit='7', timeout_client_data='1000')

    def changed():
        _, listeners = world.tree('kept')
        listener = world.listener(listeners['0']['id'])
        assert_that((listener['connection_limit'], listener['timeout_client_data']) == (7, 1000), listener)
    yield changed


def affinity(world):
    yield [world.service('affinity', [tcp(80)], sessionAffinity='ClientIP')]

    def created():
        _, listeners = world.tree('affinity')
        persistence = world.pool(listeners['0'])['session_persistence']
        assert_that('SOURCE_IP' in str(persistence), persistence)
    yield created
    world.change('affinity', spec={'sessionAffinity': 'None', 'sessionAffinityConfig': None})

    def changed():
        _, listeners = world.tree('affinity')
        persistence = world.pool(listeners['0'])['session_persistence']
        assert_that('SOURCE_IP' not in str(persistence), persistence)
    yield changed


def local(world):
    yield [world.service('local', [tcp(80), udp(53)], externalTrafficPolicy='Local')]

    def monitored():
        port = world.get('service', 'local')['spec']['healthCheckNodePort']
        _, listeners = world.tree('local')
        for listener in listeners.values():
            monitor = world.cloud('loadbalancer', 'healthmonitor', 'show', listener['pools'][0]['health_monitor']['id'])
            assert_that((monitor['type'], monitor['url_path']) == ('HTTP', '/healthz'), monitor)
            for member in world.members(listener):
                shown = world.cloud('loadbalancer', 'member', 'show', listener['pools'][0]['id'], member['id'])
                assert_that(shown['monitor_port'] == port, shown)
    yield monitored
    world.change('local', spec={'externalTrafficPolicy': 'Cluster'})

    def changed():
        _, listeners = world.tree('local')
        assert_that(not any('health_monitor' in it['pools'][0] for it in listeners.values()), listeners)
    yield changed


def http(world):
    yield [world.service('http', [tcp(80, appProtocol='http'), tcp(22)],
                         {'x-forwarded-for': 'true', 'port-protocols': 'app-protocol'})]

    def protocols(*wanted):
        _, listeners = world.tree('http')
        found = [world.listener(listeners[index]['id']) for index in '01']
        seen = [(it['protocol'], 'X-Forwarded-For' in str(it['insert_headers'])) for it in found]
        assert_that(seen == list(wanted), seen)
    yield lambda: protocols(('HTTP', True), ('TCP', False))
    world.annotate('http', port_protocols='22=HTTP')
    yield lambda: protocols(('TCP', False), ('HTTP', True))


def shared(world):
    """A second Service on the load balancer of the first."""
    def owner():
        return world.get('service', 'owner')['metadata']['annotations'][PREFIX + 'load-balancer-id']
    yield [world.service('owner', [tcp(80)])]
    id = eventually('the load balancer of owner', owner)
    eventually('the address of owner', lambda: world.ingress('owner'))
    world.apply(world.service('guest', [tcp(81)], {'load-balancer-id': id}))

    def created():
        shown = world.cloud('loadbalancer', 'show', id)
        assert_that(shown['provisioning_status'] == 'ACTIVE', shown)
        listeners = world.cloud('loadbalancer', 'listener', 'list', '--loadbalancer', id)
        assert_that({it['protocol_port'] for it in listeners} == {80, 81}, listeners)
        assert_that(world.ingress('guest') == world.ingress('owner'), 'two addresses')
    yield created
    world.change('guest', spec={'ports': [tcp(82)]})

    def changed():
        listeners = world.cloud('loadbalancer', 'listener', 'list', '--loadbalancer', id)
        assert_that({it['protocol_port'] for it in listeners} == {80, 82}, listeners)
    yield changed


KINDS = [two_ports, datagrams, proxy, internal, ranges, kept, affinity, local, http, shared]


def furnish(world):
    """Network, router and three servers; two of them are nodes."""
    network = world.cloud('network', 'create', 'nodes')
    world.subnet = world.cloud('subnet', 'create', 'nodes', '--network', network['id'], '--subnet-range', '10.7.0.0/24')['id']
    world.cloud('router', 'create', 'nodes')
    world.text('router', 'set', 'nodes', '--external-gateway', 'public')
    world.text('router', 'add', 'subnet', 'nodes', world.subnet)
    image = world.cloud('image', 'list')[0]['ID']
    world.nodes = ['%s-%s' % (world.options.name, index) for index in range(3)]
    for name in world.nodes:
        # Until it is active, Nova has not made its port, which belongs to what the project has before the test.
        world.cloud('server', 'create', name, '--flavor', 'm1.tiny', '--image', image, '--network', network['id'], '--wait')


def inventory(world):
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'inventory.py')
    done = subprocess.run([sys.executable, '-W', 'ignore', path, world.options.cloud], text=True, capture_output=True)
    if done.returncode != 0:
        raise Wrong(done.stderr)
    return set(done.stdout.splitlines())


def join(world, index):
    name = world.nodes[index]
    world.node(name)
    address = eventually('node %s' % name, lambda: world.initialised(name))
    world.ready(name)
    return address


class Manager:
    """A cloud controller manager, until it is stopped."""

    def __init__(self, world, program, kubeconfig, log):
        work = world.options.work
        flags = ['--cloud-config', work + '/cloud.conf', '--kubeconfig', kubeconfig, '--cluster-name', world.options.name,
                 '--configure-cloud-routes=false', '--leader-elect-lease-duration=6s', '--leader-elect-renew-deadline=4s',
                 '--leader-elect-retry-period=1s']
        self.log = open(os.path.join(work, log), 'a')
        self.process = subprocess.Popen([*program, *flags], stdout=self.log, stderr=self.log, start_new_session=True)
        world.manager = self

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()


def ours(world):
    return Manager(world, [world.options.binary, '--log=info', 'cloud-controller-manager', '--secure-port=0'],
                   world.kubeconfig, 'ours.log')


def gos(world):
    work = world.options.work
    return Manager(world, [world.options.go, '--cloud-provider=openstack', '--v=2', '--secure-port=0', '--cert-dir=' + work],
                   os.environ['KUBECONFIG'], 'go.log')


def permitted(world):
    """A kubeconfig with the permissions of the manifests, and nothing else."""
    with open(world.options.work + '/manifests.yaml') as file:
        documents = file.read().split('\n---\n')
    roles = [text for text in documents if 'kind: DaemonSet' not in text]
    subprocess.run([world.options.kubectl, 'apply', '-f', '-'], input='\n---\n'.join(roles), text=True, check=True,
                   capture_output=True)
    token = subprocess.run([world.options.kubectl, '-n', 'kube-system', 'create', 'token', 'cloud-controller-manager',
                            '--duration=1h'], text=True, check=True, capture_output=True).stdout.strip()
    config = json.loads(subprocess.run([world.options.kubectl, 'config', 'view', '--raw', '--flatten', '-o', 'json'], text=True,
                                       check=True, capture_output=True).stdout)
    config['users'] = [{'name': config['users'][0]['name'], 'user': {'token': token}}]
    path = world.options.work + '/ours.kubeconfig'
    with open(path, 'w') as file:
        json.dump(config, file)
    return path


def lives(world, before):
    kinds = {kind.__name__.replace('_', '-'): kind(world) for kind in KINDS}
    names = list(kinds)
    for group in [names[start:start + AT_ONCE] for start in range(0, len(names), AT_ONCE)]:
        world.apply(*[one for name in group for one in next(kinds[name])])
        results = dict.fromkeys(group)
        for phase in ['made', 'changed']:
            checks = {name: kinds[name].send(results[name]) for name in group}
            results = {name: eventually('%s, %s' % (name, phase), check) for name, check in checks.items()}
            say('%s: %s' % (phase, ', '.join(group)))

    def member_count(count):
        for name in ['two-ports', 'udp', 'local']:
            _, listeners = world.tree(name)
            for listener in listeners.values():
                members = world.members(listener)
                assert_that(len(members) == count, '%s has %s' % (name, members))
    world.addresses.add(join(world, 2))
    eventually('members of the new node', lambda: member_count(3))
    world.kubectl('delete', 'node', world.nodes[2])
    eventually('members of the node that went', lambda: member_count(2))
    say('a node came and went')

    _, listeners = world.tree('two-ports')
    id = listeners['0']['id']
    world.text('loadbalancer', 'listener', 'set', id, '--connection-limit', '9')

    # Nothing tells the manager; it reads the lists again when the Service changes.
    world.annotate('two-ports', timeout_client_data='50001')

    def repaired():
        assert_that(world.listener(id)['connection_limit'] == -1, 'connection_limit')
        world.event('two-ports', 'UpdatedLoadBalancer', 'connection_limit was 9, and is set to -1')
    eventually('the listener that was changed by hand', repaired)
    say('a change by hand was repaired')


def handed_over(world):
    """The Go manager continues with what ours made, and ours with what that made."""
    def settled():
        ids = world.ids()
        assert_that(all(it['provisioning_status'] == 'ACTIVE' for it in world.cloud('loadbalancer', 'list')), 'pending')
        assert_that(not any(value == 'null' for value in ids.values()), ids)
        return ids

    def compare(before, what):
        after = eventually('load balancers that are ACTIVE', settled)
        changes = sorted('%s: %s, then %s' % (key, before.get(key), after.get(key))
                         for key in before.keys() | after.keys() if before.get(key) != after.get(key))
        assert_that(not changes, '%s changed:\n%s' % (what, '\n'.join(changes)))

    def touched(log, count, words):
        with open(os.path.join(world.options.work, log)) as file:
            seen = file.read().count(words)
        assert_that(seen >= count, '%s of %s in %s' % (seen, count, log))
    def plain():
        _, listeners = world.tree('http')
        seen = [world.listener(it['id'])['protocol'] for it in listeners.values()]
        assert_that(seen == ['HTTP', 'HTTP'], seen)
    # The Go manager does not have this annotation, and would want other listeners.
    world.annotate('http', port_protocols=None)
    eventually('listeners without port-protocols', plain)
    services = [it['metadata']['name'] for it in world.get('services')['items']]
    before = eventually('load balancers that are ACTIVE', settled)
    world.manager.stop()
    gos(world)
    # It says so of each Service, whether or not it changed anything.
    eventually('the Go manager on ours', lambda: touched('go.log', len(services), 'Ensured load balancer'), 2 * PATIENCE)
    compare(before, 'the Go manager')
    say('the Go manager continued with %s Services of ours' % len(services))
    world.apply(world.service('go-tcp', [tcp(80), tcp(443)]), world.service('go-udp', [udp(53)]),
                world.service('go-internal', [tcp(80)], {INTERNAL: 'true'}))
    for name in ['go-tcp', 'go-udp', 'go-internal']:
        eventually('the address of %s' % name, lambda: world.ingress(name), 2 * PATIENCE)
    before = eventually('load balancers that are ACTIVE', settled)
    world.manager.stop()
    ours(world)

    def adopted():
        for name in ['go-tcp', 'go-udp', 'go-internal']:
            shown, _ = world.tree(name)
            assert_that('ferrostack-service=' in str(shown['tags']), shown['tags'])
    eventually('load balancers of the Go manager that are adopted', adopted)
    compare(before, 'ours')
    say('ours continued with 3 Services of the Go manager, and with those that it had')


def run(world):
    world.kubectl('create', 'namespace', world.options.name)
    world.kubeconfig = permitted(world)
    furnish(world)
    before = inventory(world)
    ours(world)
    try:
        world.addresses = {join(world, 0), join(world, 1)}
        say('two nodes are initialised')
        lives(world, before)
        if world.options.go:
            handed_over(world)
        world.kubectl('delete', 'services', '--all', '--timeout=%ss' % PATIENCE)
        floating = world.cloud('floating', 'ip', 'show', world.given['id'])
        assert_that(floating['port_id'] is None, 'the kept floating IP is attached')
        world.text('floating', 'ip', 'delete', world.given['id'])
        left = inventory(world) ^ before
        assert_that(not left, 'left in the cloud: %s' % sorted(left))
        say('deleted: nothing is left')
        say('skipped: TLS, which needs Barbican')
    finally:
        world.manager.stop()


def scrub(world):
    """Deletes everything, whatever there is."""
    def quietly(action, *arguments, **named):
        try:
            return action(*arguments, **named)
        except Exception as wrong:
            print(wrong, flush=True)
    names = [it['metadata']['name'] for it in (quietly(world.get, 'services') or {'items': []})['items']]
    for name in names:
        quietly(world.kubectl, 'patch', 'service', name, '--type=merge', '-p', '{"metadata":{"finalizers":null}}')
    quietly(world.kubectl, 'delete', 'namespace', world.options.name, '--wait=false')
    quietly(world.kubectl, 'delete', 'node', '--ignore-not-found', *['%s-%s' % (world.options.name, it) for it in range(3)])
    for it in quietly(world.cloud, 'loadbalancer', 'list') or []:
        # It may be changed at the moment.
        quietly(eventually, 'deletion', lambda id=it['id']: world.text('loadbalancer', 'delete', '--cascade', '--wait', id))
    for it in quietly(world.cloud, 'server', 'list') or []:
        quietly(world.text, 'server', 'delete', '--wait', it['ID'])
    for it in quietly(world.cloud, 'floating', 'ip', 'list') or []:
        quietly(world.text, 'floating', 'ip', 'delete', it['ID'])
    for it in quietly(world.cloud, 'subnet', 'list', '--network', 'nodes') or []:
        quietly(world.text, 'router', 'remove', 'subnet', 'nodes', it['ID'])
    quietly(world.text, 'router', 'delete', 'nodes')
    quietly(world.text, 'network', 'delete', 'nodes')


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('action', choices=['run', 'scrub'])
    for name in ['cloud', 'name', 'work', 'kubectl', 'binary', 'go']:
        parser.add_argument('--' + name)
    options = parser.parse_args()
    world = World(options)
    try:
        {'run': run, 'scrub': scrub}[options.action](world)
    except Wrong as wrong:
        sys.exit('tests/openstack/services: %s' % wrong)


if __name__ == '__main__':
    main()
