"""What the steps of a cloud write to RabbitMQ and Keystone.

    accounts.py STEP STEPS.json

Run again it changes nothing. The account names and passwords are those of the Secret openstack-accounts; STEPS.json is
what crates/deployer/examples/objects.rs prints.
"""
import base64
import json
import re
import sys
import urllib.error
import urllib.request

RABBITMQ = "http://rabbitmq:15672/api"
KEYSTONE = "http://keystone:5000/v3"


class Api:
    def __init__(self, url, headers):
        self.url = url
        self.headers = {"Content-Type": "application/json", **headers}

    def call(self, method, path, body=None, none=()):
        """The answer as JSON with its headers; None for a status in `none`."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, self.headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
                return (json.loads(text) if text else {}), answer.headers
        except urllib.error.HTTPError as error:
            if error.code in none:
                return None, error.headers
            sys.exit(f"{method} {self.url}{path}: {error.code} {error.read().decode(errors='replace')[:300]}")

    def one(self, path, key, fields, **query):
        """The id of the object with these fields, which is created if it is not there."""
        name = key[:-1]
        search = "&".join(f"{field}={value}" for field, value in query.items())
        found = self.call("GET", f"{path}?{search}")[0][key]
        return (found[0] if found else self.call("POST", path, {name: fields})[0][name])["id"]


def broker(writes, passwords):
    account = base64.b64encode(f"ferrostack:{passwords['messaging-admin']}".encode()).decode()
    api = Api(RABBITMQ, {"Authorization": f"Basic {account}"})
    for line in writes:
        if match := re.fullmatch(r"RabbitMQ: virtual host (\S+)", line):
            api.call("PUT", f"/vhosts/{match[1]}", {})
        elif match := re.fullmatch(r"RabbitMQ: user (\S+), with all rights in (\S+)", line):
            api.call("PUT", f"/users/{match[1]}", {"password": passwords[f"messaging-{match[1]}"], "tags": ""})
            rights = {"configure": ".*", "write": ".*", "read": ".*"}
            api.call("PUT", f"/permissions/{match[2]}/{match[1]}", rights)
        else:
            sys.exit(f"not understood: {line}")


def login(passwords):
    domain = {"name": "Default"}
    user = {"name": "admin", "domain": domain, "password": passwords["identity-admin"]}
    body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}},
                     "scope": {"project": {"name": "admin", "domain": domain}}}}
    _, headers = Api(KEYSTONE, {}).call("POST", "/auth/tokens", body)
    return Api(KEYSTONE, {"X-Auth-Token": headers["X-Subject-Token"]})


def identities(writes, passwords):
    api = login(passwords)
    domain = {"domain_id": "default"}
    for line in writes:
        if match := re.fullmatch(r"Keystone: project (\S+)", line):
            api.one("/projects", "projects", {"name": match[1], **domain}, name=match[1], **domain)
        elif match := re.fullmatch(r"Keystone: role (\S+)", line):
            api.one("/roles", "roles", {"name": match[1]}, name=match[1])
        elif match := re.fullmatch(r"Keystone: user (\S+), with roles (\S+) and (\S+) in project (\S+)", line):
            fields = {"name": match[1], "password": passwords[f"identity-{match[1]}"], **domain}
            user = api.one("/users", "users", fields, name=match[1], **domain)
            project = api.one("/projects", "projects", {"name": match[4], **domain}, name=match[4], **domain)
            for name in (match[2], match[3]):
                role = api.one("/roles", "roles", {"name": name}, name=name)
                api.call("PUT", f"/projects/{project}/users/{user}/roles/{role}")
        elif match := re.fullmatch(r"Keystone: service (\S+) \((\S+)\)", line):
            api.one("/services", "services", {"type": match[1], "name": match[2]}, type=match[1])
        elif match := re.fullmatch(r"Keystone: endpoints (\S+) of (\S+) in (\S+): (.+)", line):
            service = api.one("/services", "services", {"type": match[2]}, type=match[2])
            for interface in match[4].split(", "):
                fields = {"service_id": service, "region_id": match[3], "interface": interface}
                endpoint = api.one("/endpoints", "endpoints", {**fields, "url": match[1]}, **fields)
                api.call("PATCH", f"/endpoints/{endpoint}", {"endpoint": {"url": match[1]}})
        else:
            sys.exit(f"not understood: {line}")


def main():
    step, path = sys.argv[1:]
    with open(path) as file:
        steps = json.load(file)["steps"]
    objects = [it for each in steps for it in each["objects"]]
    secret = next(it for it in objects if it["kind"] == "Secret" and it["metadata"]["name"] == "openstack-accounts")
    passwords = {key: base64.b64decode(value).decode() for key, value in secret["data"].items()}
    writes = next(it["writes"] for it in steps if it["name"] == step)
    {"broker-accounts": broker, "identities": identities}[step](writes, passwords)


main()
