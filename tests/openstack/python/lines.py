"""Runs the commands of standard input with the `openstack` client of this interpreter, which is loaded once: lines.py DIRECTORY

Each line is `CLOUD NAME ARGUMENT ...`. The id that a command prints is the content of the file NAME in the directory; a
command that prints none has the name `-`.
"""
import os
import shlex
import sys

from clients import command_here


def main(directory):
    run = command_here()
    for line in sys.stdin:
        cloud, name, *arguments = shlex.split(line)
        wanted = [] if name == '-' else ['-f', 'value', '-c', 'id']
        status, out, err = run(['--os-cloud', cloud] + arguments + wanted)
        if status != 0:
            # Not the arguments: a password may be among them.
            words = ' '.join(word for word in arguments[:3] if not word.startswith('-'))
            sys.exit('openstack %s (%s): %s' % (words, name, err.strip().rpartition('\n')[2]))
        if name != '-':
            with open(os.path.join(directory, name), 'w') as file:
                file.write(out)


if __name__ == '__main__':
    main(*sys.argv[1:])
