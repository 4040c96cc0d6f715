"""Whether the pools of a Ceph can be used: ceph.py USER FIELD=POOL…

Each problem is one line: the field of the parameters, and what to do. What can be used is not changed.
"""
import sys

import rados

CONFIGURATION = '/etc/ceph/ceph.conf'
# Seconds for an answer of the monitors, and of the disks behind a pool.
PATIENCE = '15'
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
        return [problem for field, pool in pools if (problem := tried(cluster, user, field, pool))]
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


if __name__ == '__main__':
    found = main(sys.argv[1], [it.split('=', 1) for it in sys.argv[2:]])
    for line in found:
        print(line, file=sys.stderr)
    sys.exit(bool(found))
