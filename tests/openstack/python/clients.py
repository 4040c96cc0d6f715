"""Plays the commands of a file with the `openstack` client of this interpreter: clients.py COMMANDS CLOUD ADMIN_CLOUD.

Prints one JSON object a line: {"command", "ok", "note"}. Each command is as from the shell, only without the second that the
client takes to start. The language of the file is told at its top.
"""
import json
import os
import re
import shlex
import sys
import tempfile
import time
import traceback

import openstack  # noqa: F401  (imported once, before the processes divide)
from openstackclient import shell

PATIENCE = 90  # seconds, of a `wait:` line


def main(path, cloud, admin):
    values = {'run': 'cli-%d' % os.getpid()}
    with open(path) as file:
        lines = [line.strip() for line in file]
    for line in lines:
        if not line or line.startswith('#'):
            continue
        ok, note = play(line, cloud, admin, values)
        print(json.dumps({'command': line, 'ok': ok, 'note': note}), flush=True)


def play(line, cloud, admin, values):
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
        said = [text for text in err.splitlines() if text.strip()]
        return False, said[-1][:200] if said else 'exit %s' % status
    if not matches:
        return False, 'expected %s, not %s' % (pattern, ' '.join(out.split())[:120])
    if name:
        found = out.split()
        if not found:
            return False, 'prints nothing'
        values[name] = found[0]
    return True, ''


def run(arguments):
    """Status, output and errors of one command, in a process of its own: the client keeps sessions and versions."""
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
