"""Compares the results of clients.py: clients_table.py DIRECTORY CLIENT... with files CLIENT-real and CLIENT-simulated.

Prints a line for each command that does not work everywhere, and how many do. Exit 1 if one works on the real cloud and
not on the simulated one, or, without results of a real cloud, fails at all.
"""
import json
import os
import sys


def main(directory, *clients):
    results = {(client, cloud): read(os.path.join(directory, '%s-%s' % (client, cloud)))
               for client in clients for cloud in ('real', 'simulated')}
    present = [key for key, found in results.items() if found]
    # Not every client runs every command.
    own = {client: list(dict.fromkeys(command for key in present if key[0] == client for command in results[key]))
           for client in clients}
    # Nor does every cloud have the services of every command: those of the real one are compared.
    for client in clients:
        if results[client, 'real']:
            own[client] = [command for command in own[client] if command in results[client, 'real']]
    commands = list(dict.fromkeys(command for client in clients for command in own[client]))
    width = max(map(len, commands), default=7)
    width = min(width, 90)
    bad = 0
    print('command'.ljust(width), *('%s/%s' % key for key in present))
    for command in commands:
        found = {key: results[key].get(command, (False, 'not reached')) for key in present if command in own[key[0]]}
        if all(ok for ok, _ in found.values()):
            continue
        words = {key: 'ok' if ok else 'fails' for key, (ok, _) in found.items()}
        cells = [words.get(key, '').ljust(len('/'.join(key))) for key in present]
        print(command[:width].ljust(width), *cells)
        for client in clients:
            simulated = found.get((client, 'simulated'), (True, ''))
            if not simulated[0] and found.get((client, 'real'), (True, ''))[0]:
                bad += 1
        for key in found:
            if not found[key][0]:
                print('    %s/%s: %s' % (*key, found[key][1]))
    for key in present:
        good = sum(ok for ok, _ in results[key].values())
        print('%s/%s: %d of %d commands work' % (*key, good, len(own[key[0]])))
    sys.exit(1 if bad or not present else 0)


def read(path):
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        lines = [json.loads(line) for line in file]
    # The same command may occur twice; it works if it works each time.
    found = {}
    for line in lines:
        ok, note = found.get(line['command'], (True, ''))
        found[line['command']] = (ok and line['ok'], note or line['note'])
    return found


if __name__ == '__main__':
    main(*sys.argv[1:])
