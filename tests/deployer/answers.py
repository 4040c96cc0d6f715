"""How a cloud answered while it was changed: answers.py FILE PHASES

FILE: that of asking.py. PHASES has a line for each part of the time: its name, when it began, and when it ended, in seconds since 1970.
"""
import collections
import sys


def rows(path):
    with open(path) as file:
        return [line.rstrip("\n").split("\t") for line in file]


def line(name, seconds, answers):
    failed = sum(it[4] != "ok" for it in answers)
    longest = max(answers, key=lambda it: float(it[1]), default=None)
    times = sorted(float(it[1]) for it in answers)
    most = f"{times[int(len(times) * 0.99)]:.1f} s" if times else ""
    slowest = f"{float(longest[1]):.1f} s ({longest[3]})" if longest else ""
    print(f"{name:<14} {seconds:>9} {len(answers):>9} {failed:>9}  {most:>9}  {slowest}")


def main(path, marks):
    answers = rows(path + ".answers")
    head = ("", "seconds", "requests", "failures", "99 of 100", "longest answer")
    print(f"{head[0]:<14} {head[1]:>9} {head[2]:>9} {head[3]:>9}  {head[4]:>9}  {head[5]}")
    for name, began, ended in (it.split() for it in open(marks)):
        began, ended = float(began), float(ended)
        line(name, f"{ended - began:.0f}", [it for it in answers if began <= float(it[0]) < ended])
    line("all", "", answers)
    services = collections.defaultdict(list)
    for it in answers:
        services[it[2]].append(it)
    for name in sorted(services):
        line(name, "", services[name])
    servers = [float(it[1]) for it in rows(path + ".servers")]
    if servers:
        print(f"{len(servers)} servers became ACTIVE, the slowest after {max(servers):.1f} s, half of them within {sorted(servers)[len(servers) // 2]:.1f} s")


main(*sys.argv[1:])
