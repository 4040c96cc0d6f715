"""Several nova-compute services from one import: computes.py CONFIG_DIR LOG_DIR HOST ...

Anti-affinity and availability zones go by service host, so every imaginary hypervisor has to be a nova-compute of its
own. Loading Nova takes each some 3 seconds of a core and 140 MB; forked after that, they share both.
"""
import gc
import os
import signal
import sys

WATCHED = {signal.SIGTERM, signal.SIGINT, signal.SIGCHLD}


def main(config_dir, log_dir, hosts):
    # Blocked before the start, so that the end of a child is never missed.
    signal.pthread_sigmask(signal.SIG_BLOCK, WATCHED)
    import nova.cmd.compute
    import nova.compute.manager
    import nova.virt.fake  # noqa: F401  loaded by name later; shared by being here already
    # Objects that exist now are never collected: a collection in a child must not touch, and so copy, their pages.
    gc.collect()
    gc.freeze()
    children = [serve(nova.cmd.compute, config_dir, log_dir, host) for host in hosts]
    # The parent waits for signals without eventlet's loop, which would wake up a hundred times a second.
    while True:
        # A SIGCHLD may also be that of a program that an import ran.
        if signal.sigwait(WATCHED) != signal.SIGCHLD:
            status = 0
            break
        if any(os.waitpid(child, os.WNOHANG)[0] for child in children):
            status = 'ERROR: a nova-compute ended by itself, see nova-compute-*.log'
            break
    for child in children:
        try:
            os.kill(child, signal.SIGTERM)
        except ProcessLookupError:
            pass
    sys.exit(status)


def serve(compute, config_dir, log_dir, host):
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    signal.pthread_sigmask(signal.SIG_UNBLOCK, WATCHED)
    log = os.open(f'{log_dir}/nova-compute-{host}.log', os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    sys.argv = ['nova-compute', '--config-file', f'{config_dir}/nova.conf', '--config-file', f'{config_dir}/{host}.conf']
    status = 1
    try:
        compute.main()
        status = 0
    finally:
        # Not sys.exit: that would run the parent's exit handlers.
        sys.stderr.flush()
        os._exit(status)


if __name__ == '__main__':
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
