"""Plays the commands of a file with the `openstack` client of this interpreter: clients.py COMMANDS CLOUD ADMIN_CLOUD,
or with another program: clients.py COMMANDS CLOUD ADMIN_CLOUD PROGRAM.

Prints one JSON object a line: {"command", "ok", "note"}. Each command is as from the shell, only without the second that the
`openstack` client takes to start. The language of the file is told at its top.
"""
import importlib.metadata
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
import traceback

PATIENCE = 90  # seconds, of a `wait:` line
LONGEST = 300  # seconds, of a command of another program


def main(path, cloud, admin, program=None):
    run, release = (command_of(program), 0) if program else (command_here(), release_here())
    values = {'run': 'cli-%d' % os.getpid()}
    with open(path) as file:
        lines = [line.strip() for line in file]
    left_out = missing_services(run, cloud)
    for line in lines:
        least, line = re.match(r'(?:from (\d+): )?(.*)', line).groups()
        if not line or line.startswith('#') or least and release < int(least):
            continue
        if left_out and re.search(left_out, line):
            continue
        ok, note = play(line, cloud, admin, values, run)
        print(json.dumps({'command': line, 'ok': ok, 'note': note}), flush=True)


def missing_services(run, cloud):
    """What is in the commands that need a service which the cloud does not have."""
    _, types, _ = run(['--os-cloud', cloud, 'catalog', 'list', '-f', 'value', '-c', 'Type'])
    patterns = []
    if 'volume' not in types and 'block-storage' not in types:
        patterns.append(r'\bvolume\b|--boot-from-volume|\{root\}|\bserver\b.*\{run\}-3\b')
    if 'load-balancer' not in types:
        patterns.append('loadbalancer')
    # Where the catalogue cannot be read, every command tells why.
    return '|'.join(patterns) if types.strip() else ''


def play(line, cloud, admin, values, run):
    patience = time.monotonic() + (PATIENCE if line.startswith('wait: ') else 0)
    line = line.removeprefix('wait: ')
    if line.startswith('admin: '):
        cloud, line = admin, line.removeprefix('admin: ')
    name, command = re.match(r'(?:(\w+) := )?(.*)', line).groups()
    command, _, pattern = command.partition(' -> ')
    try:
        arguments = [argument.format(**values) for argument in shlex.split(command)]
    except KeyError as missing:
        return False, 'needs %s, which an earlier command was to give' % missing
    while True:
        status, out, err = run(['--os-cloud', cloud] + arguments)
        matches = not pattern or re.search(pattern.format(**values), out)
        if (status == 0 and matches) or time.monotonic() >= patience:
            break
        time.sleep(1)
    if status != 0:
        return False, complaint(err) or 'exit %s' % status
    if not matches:
        return False, 'expected %s, not %s' % (pattern, ' '.join(out.split())[:120])
    if name:
        values[name] = value_of(out, values['run'])
        if not values[name]:
            return False, 'prints nothing'
    return True, ''


def complaint(err):
    """The last line, or, of a program that tells where in itself an error arose, what it says before."""
    text, told, _ = re.sub(r'\x1b\[[0-9;]*m', '', err).partition('Location:')
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return ' '.join(lines if told else lines[-1:])[-300:]


def value_of(out, named):
    """The id of the JSON object of that name, or of the first one; otherwise the first word."""
    if out[:1] not in ('{', '['):
        return next(iter(out.split()), None)
    found, _ = json.JSONDecoder().raw_decode(out)
    found = found if isinstance(found, list) else [found]
    found.sort(key=lambda one: one.get('name') != named)
    return found and found[0].get('id')


def command_of(program):
    """What runs a command of the program: status, output and errors."""
    def run(arguments):
        try:
            ended = subprocess.run([program] + arguments, capture_output=True, text=True, timeout=LONGEST, stdin=subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return 1, '', 'has not ended after %d s' % LONGEST
        return ended.returncode, ended.stdout, ended.stderr
    return run


def command_here():
    """The same for the client of this interpreter, which is imported once, before the processes divide."""
    import openstack  # noqa: F401
    from openstackclient import shell
    return lambda arguments: forked(shell, arguments)


def release_here():
    return int(importlib.metadata.version('python-openstackclient').partition('.')[0])


def forked(shell, arguments):
    """One command in a process of its own: the client keeps sessions and versions."""
    with tempfile.TemporaryFile('w+') as out, tempfile.TemporaryFile('w+') as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            status = 1
            try:
                status = shell.main(arguments) or 0
            except SystemExit as left:
                status = left.code or 0
            except BaseException:  # what the client does not catch, its user sees as a traceback
                traceback.print_exc()
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status if isinstance(status, int) else 1)
        _, ended = os.waitpid(child, 0)
        out.seek(0)
        err.seek(0)
        return os.waitstatus_to_exitcode(ended), out.read(), err.read()


if __name__ == '__main__':
    main(*sys.argv[1:])
