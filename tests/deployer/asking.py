"""Asks a cloud ten times a second until FILE.end exists.

    asking.py FILE                (the cloud `cloud` of OS_CLIENT_CONFIG_FILE)
    asking.py FILE --changes      also creates and deletes: servers, ports, networks, images, application credentials

At most eight requests wait for their answers at a time: on a machine that is too slow for ten a second, fewer are sent.

Writes a line to FILE when the first request was answered, and at the end how many were sent and how many failed; what failed is in
FILE.failed. FILE.answers has a line for each request: when it was sent, the seconds until its answer, the service, what was asked, and what
was wrong, or `ok`. FILE.servers has, for each server, when it was asked for and the seconds until it was seen ACTIVE.

Each request has a connection of its own and is sent once: a client that keeps connections, or that asks again, hides failures.
"""
import collections
import concurrent.futures
import itertools
import os
import sys
import threading
import time

import openstack.config
import requests

PAUSE = 0.1
# Requests that wait for an answer at a time: where a machine is too slow for ten a second, there are fewer.
AT_ONCE = 8
# How long an answer may take.
PATIENCE = 120
# How long a server may take until it is ACTIVE, and everything to be gone at the end.
SLOW = 600
# A token lives an hour.
TOKEN = 900
PREFIX = "asking-"
SERVERS = 6


class Cloud:
    def __init__(self):
        config = openstack.config.loader.OpenStackConfig().get_one("cloud")
        self.auth = config.auth
        self.verify = config.get_requests_verify_args()[0]
        self.urls = {"identity": self.auth["auth_url"].rstrip("/").removesuffix("/v3") + "/v3"}
        answer = self.log_in()
        token = answer.json()["token"]
        self.token, self.until = answer.headers["X-Subject-Token"], time.monotonic() + TOKEN
        self.project, self.user = token["project"]["id"], token["user"]["id"]
        found = {it["type"]: end["url"].rstrip("/") for it in token["catalog"] for end in it["endpoints"] if end["interface"] == "public"}
        self.urls |= {name: found[name] for name in ("compute", "placement")}
        self.urls |= {name: found[name].removesuffix(version) + version for name, version in (("network", "/v2.0"), ("image", "/v2"))}
        if "volumev3" in found:
            self.urls["volume"] = found["volumev3"]
        host = found["compute"].split("//")[1].split(":")[0]
        self.urls |= {"dashboard": f"https://{host}", "console": f"https://{host}:6080"}

    def log_in(self):
        auth = self.auth
        user = {"name": auth["username"], "password": auth["password"], "domain": {"name": auth["user_domain_name"]}}
        project = {"name": auth["project_name"], "domain": {"name": auth["project_domain_name"]}}
        body = {"auth": {"identity": {"methods": ["password"], "password": {"user": user}}, "scope": {"project": project}}}
        answer = self.send("POST", self.urls["identity"] + "/auth/tokens", {}, json=body)
        expect(answer, 201)
        return answer

    def issue(self):
        return self.log_in().headers["X-Subject-Token"]

    def send(self, method, url, headers, **more):
        headers = {"Connection": "close", **headers}
        return requests.request(method, url, headers=headers, verify=self.verify, timeout=PATIENCE, allow_redirects=False, **more)

    def ask(self, service, method, path, status=200, **more):
        headers = {"X-Auth-Token": self.token, **more.pop("headers", {})}
        answer = self.send(method, self.urls[service] + path, headers, **more)
        expect(answer, *([status] if isinstance(status, int) else status))
        return answer

    def renew(self):
        if time.monotonic() > self.until:
            self.until = time.monotonic() + TOKEN
            self.token = self.issue()


def expect(answer, *statuses):
    if answer.status_code not in statuses:
        raise RuntimeError(f"{answer.request.method} {answer.url}: {answer.status_code} {answer.text[:300]!r}")


class Log:
    """What was asked, and what became of it."""

    def __init__(self, path):
        self.lock = threading.Lock()
        self.answers = open(path + ".answers", "w")
        self.servers = open(path + ".servers", "w")
        self.count, self.failed = 0, []

    def answer(self, began, seconds, service, name, wrong=None):
        with self.lock:
            self.count += 1
            if wrong:
                self.failed.append(f"{time.strftime('%H:%M:%S')} {name}: {wrong}")
            print(f"{began:.3f}", f"{seconds:.3f}", service, name, (wrong or "ok").replace("\n", " "), sep="\t", file=self.answers, flush=True)

    def active(self, began, seconds):
        with self.lock:
            print(f"{began:.3f}", f"{seconds:.3f}", sep="\t", file=self.servers, flush=True)

    def wrong(self, service, name, text):
        """Something that no answer tells: a server in ERROR."""
        self.answer(time.time(), 0, service, name, text)


# What is read, by name: the service and the path.
READS = {"servers": ("compute", "/servers"), "networks": ("network", "/networks"), "flavors": ("compute", "/flavors"), "images": ("image", "/images")}
MORE = {
    "ports": ("network", "/ports"),
    "routers": ("network", "/routers"),
    "servers-detail": ("compute", "/servers/detail"),
    "hypervisors": ("compute", "/os-hypervisors"),
    "providers": ("placement", "/resource_providers"),
    "catalog": ("identity", "/auth/catalog"),
    "login-page": ("dashboard", "/auth/login/"),
    "console-page": ("console", "/vnc_lite.html"),
}


class Reads:
    """A token and lists, in turns."""

    def __init__(self, cloud, more):
        get = lambda service, path: (service, lambda: cloud.ask(service, "GET", path))
        every = {**READS, **more, "project": ("identity", f"/projects/{cloud.project}")}
        if "volume" in cloud.urls:
            every |= {"volumes": ("volume", "/volumes/detail")}
        self.every = [("token", "identity", cloud.issue)] + [(name, *get(*it)) for name, it in every.items()]
        self.turns = itertools.cycle(self.every)

    def first(self):
        """Each of them once; what fails ends the program."""
        for _, _, request in self.every:
            request()

    def next(self, _):
        return next(self.turns)


class Changes:
    """Reads, of more services, and between them what is created and deleted."""

    # Of a hundred requests, which are ten seconds.
    PLACES = {
        3: "server", 53: "server-delete", 13: "server-state", 38: "server-state", 63: "server-state", 88: "server-state",
        5: "port", 30: "port-delete", 55: "port", 80: "port-delete", 17: "network", 67: "network-delete",
        21: "image", 71: "image-delete", 27: "credential", 77: "credential-delete",
    }
    SERVICE = {"server": "compute", "port": "network", "network": "network", "image": "image", "credential": "identity"}

    def __init__(self, cloud, log):
        self.cloud, self.log = cloud, log
        self.reads = Reads(cloud, MORE)
        self.credentials = f"/users/{cloud.user}/application_credentials"
        self.flavor = cloud.ask("compute", "GET", "/flavors").json()["flavors"][0]["id"]
        self.image = cloud.ask("image", "GET", "/images?name=probe").json()["images"][0]["id"]
        self.network = self.network_with_subnet()
        self.number = itertools.count()
        self.lock = threading.Lock()
        # What is there, in the order of its creation. Of a server also when it was asked for, and whether it is ACTIVE.
        self.there = collections.defaultdict(collections.OrderedDict)

    def network_with_subnet(self):
        name = PREFIX + "ports"
        network = self.cloud.ask("network", "POST", "/networks", 201, json={"network": {"name": name}}).json()["network"]["id"]
        subnet = {"name": name, "network_id": network, "ip_version": 4, "cidr": "10.77.0.0/16"}
        self.cloud.ask("network", "POST", "/subnets", 201, json={"subnet": subnet})
        return network

    def first(self):
        self.reads.first()

    def next(self, place):
        what = self.PLACES.get(place % 100)
        if not what:
            return self.reads.next(place)
        kind, _, end = what.partition("-")
        with self.lock:
            there = self.there[kind]
            if end == "state":
                found = next((pair for pair in there.items() if not pair[1]["active"]), None)
                do = self.look
            elif end == "delete":
                key = next((key for key, it in there.items() if it["active"]), None)
                found = key and (kind, there.pop(key) and key)
                do = self.delete
            else:
                found = None if kind == "server" and len(there) >= SERVERS else (kind, f"{PREFIX}{kind}-{next(self.number)}")
                do = self.create
        # Where there is nothing to do, a read takes the turn.
        return (what, self.SERVICE[kind], lambda: do(*found)) if found else self.reads.next(place)

    def create(self, kind, name):
        cloud, began = self.cloud, time.time()
        if kind == "server":
            body = {"name": name, "flavorRef": self.flavor, "imageRef": self.image, "networks": [{"uuid": self.network}]}
            answer = cloud.ask("compute", "POST", "/servers", 202, json={"server": body}).json()["server"]
        elif kind == "port":
            answer = cloud.ask("network", "POST", "/ports", 201, json={"port": {"name": name, "network_id": self.network}}).json()["port"]
        elif kind == "network":
            answer = cloud.ask("network", "POST", "/networks", 201, json={"network": {"name": name}}).json()["network"]
        elif kind == "image":
            body = {"name": name, "disk_format": "raw", "container_format": "bare"}
            answer = cloud.ask("image", "POST", "/images", 201, json=body).json()
            binary = {"Content-Type": "application/octet-stream"}
            cloud.ask("image", "PUT", f"/images/{answer['id']}/file", 204, headers=binary, data=b"x" * 10000)
        else:
            body = {"application_credential": {"name": name, "secret": name}}
            answer = cloud.ask("identity", "POST", self.credentials, 201, json=body).json()["application_credential"]
        with self.lock:
            self.there[kind][answer["id"]] = {"active": kind != "server", "began": began}

    def delete(self, kind, key):
        path = self.credentials if kind == "credential" else f"/{kind}s"
        self.cloud.ask(self.SERVICE[kind], "DELETE", f"{path}/{key}", 204)

    def look(self, key, it):
        """Whether a server has become ACTIVE."""
        server = self.cloud.ask("compute", "GET", f"/servers/{key}").json()["server"]
        took = time.time() - it["began"]
        with self.lock:
            if it["active"]:
                return
            it["active"] = server["status"] == "ACTIVE"
            lost = server["status"] == "ERROR" or took > SLOW and not it["active"]
            if lost:
                self.there["server"].pop(key, None)
        if lost:
            self.log.wrong("compute", "server", f"{key} is {server['status']}: {server.get('fault', {}).get('message', '')}")
        elif it["active"]:
            self.log.active(it["began"], took)

    def remove(self):
        """Everything of it goes, when all servers are ACTIVE; what does not is wrong."""
        until = time.monotonic() + SLOW
        while waiting := [pair for pair in self.there["server"].items() if not pair[1]["active"]]:
            for pair in waiting:
                self.look(*pair)
            time.sleep(1)
        for kind in ("server", "port", "image", "credential", "network"):
            while ids := self.left(kind):
                for key in ids:
                    self.cloud.ask(self.SERVICE[kind], "DELETE", f"{self.credentials if kind == 'credential' else f'/{kind}s'}/{key}", (204, 404, 409))
                if time.monotonic() > until:
                    self.log.wrong(self.SERVICE[kind], kind, f"not deleted: {ids}")
                    break
                time.sleep(1)

    def left(self, kind):
        path, key = (self.credentials, "application_credentials") if kind == "credential" else (f"/{kind}s", f"{kind}s")
        found = self.cloud.ask(self.SERVICE[kind], "GET", path).json()[key]
        return [it["id"] for it in found if (it["name"] or "").startswith(PREFIX)]


def main():
    path, changes = sys.argv[1], "--changes" in sys.argv
    cloud = Cloud()
    log = Log(path)
    turns = Changes(cloud, log) if changes else Reads(cloud, {})
    turns.first()

    def ask(name, service, request):
        began, start, wrong = time.time(), time.monotonic(), None
        try:
            cloud.renew()
            request()
        except Exception as error:  # whatever a client would see
            wrong = repr(error)
        log.answer(began, time.monotonic() - start, service, name, wrong)

    with open(path, "w") as file, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        print("answered", file=file, flush=True)
        free = threading.Semaphore(AT_ONCE)
        count, due = 0, time.monotonic()
        while not os.path.exists(path + ".end"):
            free.acquire()
            pool.submit(ask, *turns.next(count)).add_done_callback(lambda _: free.release())
            count += 1
            due = max(due + PAUSE, time.monotonic())
            time.sleep(max(0, due - time.monotonic()))
        pool.shutdown()
        if changes:
            turns.remove()
        print(log.count, len(log.failed), file=file)
    with open(path + ".failed", "w") as file:
        file.writelines(line + "\n" for line in log.failed)


main()
