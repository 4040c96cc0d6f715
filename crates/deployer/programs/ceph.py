"""Whether the pools of a Ceph can be used: ceph.py USER FIELD=POOL…

Each problem is one line: the field of the parameters, and what to do. What can be used is not changed.
"""
import json
import sys
import time

import rados

CONFIGURATION = '/etc/ceph/ceph.conf'
# Seconds for an answer of the monitors, and of the disks behind a pool.
PATIENCE = '15'
# The pool whose size is that of a hypervisor.
SIZED = 'storage.guests.pool'
# An object that no program uses; it is there for a moment.
PROBE = 'ferrostack.probe'


def main(user, pools):
    cluster = rados.Rados(conffile=CONFIGURATION, rados_id=user)
    for option in ('client_mount_timeout', 'rados_mon_op_timeout', 'rados_osd_op_timeout'):
        cluster.conf_set(option, PATIENCE)
    try:
        cluster.connect()
    except (rados.PermissionDeniedError, rados.PermissionError) as error:
        return [f'storage.ceph.secretName: the Ceph takes no key of client.{user} like this one ({error}): it has to be that of '
                f'`ceph auth get client.{user}`']
    except rados.Error as error:
        return [f'storage.ceph.monitors: none of {cluster.conf_get("mon_host")} answers in {PATIENCE} s ({error}): they have to be '
                'reachable from Pods']
    try:
        problems = [problem for field, pool in pools if (problem := tried(cluster, user, field, pool))]
        return problems or [problem for field, pool in pools if field == SIZED and (problem := sized(cluster, field, pool))]
    finally:
        cluster.shutdown()


def tried(cluster, user, field, pool):
    """Why a pool cannot be used."""
    try:
        with cluster.open_ioctx(pool) as content:
            content.write_full(PROBE, b'')
            content.remove_object(PROBE)
    except rados.ObjectNotFound:
        return f'{field}: the Ceph has no pool {pool}: `ceph osd pool create {pool}` and `rbd pool init {pool}` make it'
    except (rados.PermissionDeniedError, rados.PermissionError):
        return (f'{field}: client.{user} may not write to the pool {pool}: its caps have to hold mon "profile rbd" and osd '
                f'"profile rbd pool={pool}" (`ceph auth caps`)')
    except rados.Error as error:
        return f'{field}: the pool {pool} does not answer in {PATIENCE} s ({error}): `ceph health detail` tells why'
    return None


def sized(cluster, field, pool):
    """Why Nova would have no hypervisor: it asks for the size of the pool, which monitors have from a manager."""
    question = json.dumps({'prefix': 'df', 'format': 'json'})
    end = time.monotonic() + int(PATIENCE)
    while True:
        status, answer, error = cluster.mon_command(question, b'')
        if status == 0 and any(it['name'] == pool for it in json.loads(answer)['pools']):
            return None
        if time.monotonic() > end:
            return (f'{field}: the Ceph does not tell the size of the pool {pool} ({error or "ceph df has no line of it"}): '
                    'it needs a manager that runs (`ceph mgr stat`)')
        time.sleep(1)


if __name__ == '__main__':
    found = main(sys.argv[1], [it.split('=', 1) for it in sys.argv[2:]])
    for line in found:
        print(line, file=sys.stderr)
    sys.exit(bool(found))
