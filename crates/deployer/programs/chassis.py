"""Stands in for ovn-controller on imaginary hypervisors: chassis.py SOUTHBOUND SCHEMA MAPPINGS HOST:ZONE ...

Registers a chassis for every host, answers northd's "are you there", and claims a port where northd says it belongs, so
that ports become ACTIVE by Neutron's own way: OVN's databases and its events. No packet ever flows.
MAPPINGS: physical networks with bridges, such as public:br-ex; may be empty. ZONE may be empty, too.
"""
import sys
import time

from ovs import poller
from ovs.db import idl as ovs_idl

# A real hypervisor plugs an interface some time after Neutron bound its port. If it were claimed at once, the "up"
# would arrive before ML2 has committed the binding, and ML2 would retry ten times, half a second apart, within the PUT
# of the port.
CLAIM_AFTER = 1.0

COLUMNS = {
    'SB_Global': ['nb_cfg'],
    'Chassis': ['name', 'hostname', 'encaps', 'external_ids', 'other_config'],
    'Chassis_Private': ['name', 'chassis', 'nb_cfg', 'nb_cfg_timestamp'],
    'Encap': ['type', 'ip', 'options', 'chassis_name'],
    'HA_Chassis': ['chassis', 'priority'],
    'HA_Chassis_Group': ['ha_chassis'],
    'Gateway_Chassis': ['chassis', 'priority'],
    'Port_Binding': ['logical_port', 'type', 'parent_port', 'chassis', 'up', 'requested_chassis', 'ha_chassis_group',
                     'gateway_chassis'],
}


class Chassis:
    def __init__(self, remote, schema, mappings, hosts):
        helper = ovs_idl.SchemaHelper(location=schema)
        for table, columns in COLUMNS.items():
            helper.register_columns(table, columns)
        self.idl = ovs_idl.Idl(remote, helper)
        self.mappings = mappings
        self.hosts = hosts
        self.first_seen = {}  # port binding -> when a chassis was first requested for it

    def run(self):
        handled = due = None
        while True:
            self.idl.run()
            changed = self.idl.change_seqno != handled
            if self.idl.has_ever_connected() and (changed or (due is not None and time.monotonic() >= due)):
                seen = self.idl.change_seqno
                done, due = self.step()
                handled = seen if done else None
                continue
            wait = poller.Poller()
            self.idl.wait(wait)
            wait.timer_wait(5000 if due is None else max(1, int((due - time.monotonic()) * 1000)))
            wait.block()

    def step(self):
        """One transaction. Returns whether the database took it and when a claim falls due."""
        transaction = ovs_idl.Transaction(self.idl)
        due = None
        # Rows inserted in a transaction have no columns to read until it is committed, so registration is a separate
        # transaction.
        registered = self.register(transaction)
        if not registered:
            self.describe()
            self.answer()
            due = self.claim()
        status = transaction.commit_block()
        if status in (transaction.SUCCESS, transaction.UNCHANGED):
            return not registered, due
        if status != transaction.TRY_AGAIN:
            print('transaction failed:', transaction.status_to_string(status), transaction.get_error(), flush=True)
            time.sleep(0.2)
        return False, due

    def rows(self, table):
        return self.idl.tables[table].rows.values()

    def register(self, transaction):
        known = {row.name for row in self.rows('Chassis')}
        private = {row.name: row for row in self.rows('Chassis_Private')}
        missing = [(number, name, zone) for number, (name, zone) in enumerate(self.hosts, 1) if name not in known]
        for number, name, zone in missing:
            tunnel = transaction.insert(self.idl.tables['Encap'])
            tunnel.type, tunnel.ip, tunnel.chassis_name = 'geneve', f'127.0.1.{number}', name
            tunnel.options = {'csum': 'true'}
            row = transaction.insert(self.idl.tables['Chassis'])
            row.name = row.hostname = name
            row.encaps = [tunnel]
            row.external_ids, row.other_config = self.settings(zone)
            own = private.get(name)
            if own is None:
                own = transaction.insert(self.idl.tables['Chassis_Private'])
                own.name = name
            own.chassis = [row]
            print('registering', name, 'in', zone, flush=True)
        return bool(missing)

    def settings(self, zone):
        """external_ids and other_config. Neutron of zed reads the first; OVN's own ovn-controller writes the second."""
        options = f'enable-chassis-as-gw,availability-zones={zone}' if zone else 'enable-chassis-as-gw'
        settings = {'ovn-bridge-mappings': self.mappings, 'datapath-type': 'system',
                    'iface-types': 'geneve,internal,system,tap,vxlan', 'ovn-cms-options': options}
        return settings, {**settings, 'port-up-notif': 'true'}

    def describe(self):
        """Passes on physical networks that have come or gone."""
        zones = dict(self.hosts)
        for row in self.rows('Chassis'):
            if row.name in zones:
                wanted = self.settings(zones[row.name])
                if (row.external_ids, row.other_config) != wanted:
                    row.external_ids, row.other_config = wanted

    def answer(self):
        """Echoes nb_cfg, by which Neutron knows a chassis to be alive."""
        wanted = next((row.nb_cfg for row in self.rows('SB_Global')), 0)
        names = {name for name, _ in self.hosts}
        for row in self.rows('Chassis_Private'):
            if row.name in names and row.nb_cfg != wanted:
                row.nb_cfg = wanted
                row.nb_cfg_timestamp = int(time.time() * 1000)

    def claim(self):
        now = time.monotonic()
        due = None
        by_name = {row.logical_port: row for row in self.rows('Port_Binding')}
        for row in by_name.values():
            if row.type not in ('', 'chassisredirect', 'external'):
                continue
            where = place(row, by_name)
            if where is None:
                self.first_seen.pop(row.uuid, None)
            elif row.type == '' and not row.chassis:
                at = self.first_seen.setdefault(row.uuid, now) + CLAIM_AFTER
                if at > now:
                    due = at if due is None else min(due, at)
                    continue
            if uuid(first(row.chassis)) != uuid(where):
                row.chassis = [] if where is None else [where]
            if first(row.up) != (where is not None):
                row.up = [where is not None]
        for gone in self.first_seen.keys() - {row.uuid for row in by_name.values()}:
            del self.first_seen[gone]
        return due


def place(row, by_name):
    """The chassis a binding belongs to: a subport to its parent's, a gateway to the best of its group."""
    if row.type == '':
        if row.parent_port:
            parent = by_name.get(row.parent_port[0])
            return first(parent.chassis) if parent is not None else None
        return first(row.requested_chassis)
    group = row.ha_chassis_group[0].ha_chassis if row.ha_chassis_group else row.gateway_chassis
    candidates = [(member.priority, member.chassis[0]) for member in group if member.chassis]
    return max(candidates, key=lambda pair: pair[0])[1] if candidates else None


def first(values):
    return values[0] if values else None


def uuid(row):
    return None if row is None else row.uuid


if __name__ == '__main__':
    Chassis(*sys.argv[1:4], [tuple(host.split(':')) for host in sys.argv[4:]]).run()
