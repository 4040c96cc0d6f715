"""Tries former logins at the stores of a cloud: each has to be refused.

    refused.py MARIADB RABBITMQ

The addresses are in the command since policies follow it; logins are in a file, and are never printed."""

import json
import os
import socket
import struct
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

ROOT = os.environ.get("ROTATION_ROOT", "")
TIMEOUT = 20


class Unknown(Exception):
    """A store has not said whether it accepts a login."""


def database(address, login):
    host, port = address.rsplit(":", 1)
    with tempfile.NamedTemporaryFile("w", suffix=".cnf") as options:
        options.write(
            f"[client]\nhost = {host}\nport = {port}\nprotocol = tcp\n"
            f"user = {login['user']}\npassword = {login['password']}\n"
        )
        options.flush()
        command = ["mariadb", f"--defaults-file={options.name}"]
        command += [f"--connect-timeout={TIMEOUT}", "--execute=SELECT 1"]
        done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return False
    # Access denied, in each of its forms.
    if "ERROR 1045 " in done.stderr or "ERROR 1698 " in done.stderr:
        return True
    raise Unknown(done.stderr.strip())


def frames(connection):
    """Methods of the broker: class, number and the rest of each."""
    stream = connection.makefile("rb")
    while True:
        head = stream.read(7)
        if len(head) < 7:
            raise Unknown("the broker has closed the connection")
        kind, _, size = struct.unpack(">BHI", head)
        if kind not in (1, 8):
            raise Unknown("the broker does not speak AMQP 0-9-1")
        body = stream.read(size)
        stream.read(1)
        if kind == 1:
            group, number = struct.unpack(">HH", body[:4])
            yield (group, number), body[4:]


def broker(address, login):
    """The start of AMQP 0-9-1: the broker answers a login with Tune, or with Close and a code."""

    def short(text):
        return bytes([len(text)]) + text

    def long(text):
        return struct.pack(">I", len(text)) + text

    host, port = address.rsplit(":", 1)
    ability = long(short(b"authentication_failure_close") + b"t\x01")
    properties = long(short(b"capabilities") + b"F" + ability)
    plain = f"\0{login['user']}\0{login['password']}".encode()
    answer = struct.pack(">HH", 10, 11) + properties + short(b"PLAIN") + long(plain) + short(b"en_US")
    with socket.create_connection((host, int(port)), TIMEOUT) as connection:
        connection.sendall(b"AMQP\x00\x00\x09\x01")
        for method, rest in frames(connection):
            if method == (10, 10):
                connection.sendall(struct.pack(">BHI", 1, 0, len(answer)) + answer + b"\xce")
            elif method == (10, 30):
                return False
            elif method == (10, 50):
                code = struct.unpack(">H", rest[:2])[0]
                if code == 403:
                    return True
                raise Unknown(f"the broker has closed the connection with {code}")
    raise Unknown("the broker has not answered")


def identity(address, login):
    user = {"name": login["user"], "domain": {"id": "default"}, "password": login["password"]}
    body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}}}
    request = urllib.request.Request(
        f"{address}/auth/tokens", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=TIMEOUT):
            return False
    except urllib.error.HTTPError as error:
        if error.code == 401:
            return True
        raise Unknown(f"it answers with {error.code}")


STORES = {
    "database": ("MariaDB", database),
    "messaging": ("RabbitMQ", broker),
    "identity": ("Keystone", identity),
}


def main():
    with open(f"{ROOT}/etc/rotation/former.json") as file:
        former = json.load(file)
    wrong = []
    for login in former["logins"]:
        store, is_refused = STORES[login["store"]]
        who = f"{store}: {login['user']}"
        try:
            if not is_refused(former["addresses"][login["store"]], login):
                wrong.append(f"{who} can still log in with the former password")
        except (OSError, Unknown) as error:
            wrong.append(f"{who}: it is not known whether the former password is refused: {error}")
    if wrong:
        sys.exit("; ".join(wrong))


main()
