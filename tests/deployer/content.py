"""What users have in a cloud, before and after it is changed.

    content.py make               (the cloud `cloud` of OS_CLIENT_CONFIG_FILE)
    content.py record FILE        writes everything that is there, as the APIs answer it
    content.py compare FILE       what was recorded is there as it was, in all that was recorded; else it is printed, with exit code 1
    content.py log-in             each of its users has a token, and sees its project's servers
    content.py remove

What another release adds to an answer is no difference.
"""
import hashlib
import json
import os
import sys
import time

import openstack

PREFIX = "before-"
PASSWORD = os.environ.get("CONTENT_PASSWORD", "")
PROJECTS = 2
USERS = 3  # of each project
SERVERS = 2
PORTS = 3

# Lists of everything, by the service: what of an object is compared is all but these fields.
PASSING = {"updated", "updated_at", "last_active_at", "OS-EXT-STS:task_state"}
LISTS = {
    "identity": {"domains": "/domains", "projects": "/projects", "users": "/users", "roles": "/roles", "services": "/services",
                 "endpoints": "/endpoints", "role_assignments": "/role_assignments"},
    "image": {"images": "/v2/images"},
    "network": {name: f"/v2.0/{name.replace('_', '-')}" for name in (
        "networks", "subnets", "ports", "routers", "floatingips", "security_groups", "security_group_rules", "address_scopes", "trunks")},
    "compute": {"servers": "/servers/detail?all_tenants=1", "flavors": "/flavors/detail?is_public=None", "keypairs": "/os-keypairs",
                "server_groups": "/os-server-groups?all_projects=1", "aggregates": "/os-aggregates"},
    "placement": {"resource_providers": "/resource_providers"},
}


def session(cloud, service):
    return getattr(cloud, service)


def get(cloud, service, path):
    api = session(cloud, service)
    url = path
    if service in ("image", "network"):
        # Some clients have the version in the URL of the endpoint.
        version = path.split("/")[1]
        root = api.get_endpoint().rstrip("/").removesuffix(f"/{version}")
        url = root + path
    answer = api.get(url)
    if answer.status_code != 200:
        raise SystemExit(f"{service} {path}: {answer.status_code} {answer.text[:300]}")
    return answer.json()


def everything(cloud):
    """Each object, by its kind and id."""
    found = {}
    for service, lists in LISTS.items():
        for kind, path in lists.items():
            for it in get(cloud, service, path)[kind]:
                # Objects of some lists are one level deeper, and have no id.
                it = it.get("keypair", it) if kind == "keypairs" else it
                key = it.get("id") or it.get("uuid") or it.get("name") or json.dumps(it, sort_keys=True)
                found[f"{kind} {key}"] = it
    for provider in get(cloud, "placement", "/resource_providers")["resource_providers"]:
        for of in ("inventories", "usages", "allocations"):
            answer = get(cloud, "placement", f"/resource_providers/{provider['uuid']}/{of}")
            answer.pop("resource_provider_generation", None)
            found[f"{of} {provider['uuid']}"] = answer
        found[f"resource_providers {provider['uuid']}"].pop("generation", None)
    for image in cloud.image.images():
        if image.name.startswith(PREFIX):
            content = cloud.image.download_image(image, stream=False)
            found[f"content {image.id}"] = {"sha256": hashlib.sha256(content.content).hexdigest()}
    return found


def differences(before, now, path):
    """Where what is in `before` is otherwise now."""
    if isinstance(before, dict) and isinstance(now, dict):
        for key, value in before.items():
            if key in PASSING:
                continue
            if key not in now:
                yield f"{path}.{key} is gone"
            else:
                yield from differences(value, now[key], f"{path}.{key}")
    elif isinstance(before, list) and isinstance(now, list):
        # The order of a list in an answer means nothing.
        left = list(now)
        for value in before:
            same = next((it for it in left if not list(differences(value, it, ""))), None)
            if same is None:
                yield f"{path} has no {value!r} in {now!r}"
            else:
                left.remove(same)
        if left:
            yield f"{path} also has {left!r}"
    elif before != now:
        yield f"{path}: {before!r} has become {now!r}"


def compare(cloud, path):
    with open(path) as file:
        before = json.load(file)
    now = everything(cloud)
    found = []
    for key, value in before.items():
        found += [f"{key} is gone"] if key not in now else differences(value, now[key], key)
    print(f"{len(before)} resources", *found, sep="\n")
    sys.exit(1 if found else 0)


def make(cloud):
    identity, network, compute = cloud.identity, cloud.network, cloud.compute
    member = identity.find_role("member")
    flavor = compute.find_flavor("tiny") or compute.create_flavor(name="tiny", ram=64, disk=1, vcpus=1)
    image = cloud.image.create_image("probe", data=os.urandom(65536), disk_format="raw", container_format="bare", visibility="public", wait=True, validate_checksum=False)
    outside = network.create_network(name=PREFIX + "public", is_router_external=True, provider_network_type="flat", provider_physical_network="public")
    network.create_subnet(name=PREFIX + "public", network_id=outside.id, ip_version=4, cidr="203.0.113.0/24", is_dhcp_enabled=False)
    for number in range(PROJECTS):
        name = f"{PREFIX}{number}"
        project = identity.create_project(name=name, domain_id="default", description="made before")
        for user in range(USERS):
            user = identity.create_user(name=f"{name}-{user}", password=PASSWORD, domain_id="default", email="someone@example.org", default_project_id=project.id)
            identity.assign_project_role_to_user(project, user, member)
        own = of(cloud, name + "-0", name)
        own.image.create_image(name, data=os.urandom(100_000), disk_format="raw", container_format="bare", wait=True, validate_checksum=False)
        net = own.network.create_network(name=name, description="of a project")
        own.network.set_tags(net, ["Tag", "another"])
        subnet = own.network.create_subnet(name=name, network_id=net.id, ip_version=4, cidr=f"10.{60 + number}.0.0/24", dns_nameservers=["192.0.2.53"])
        router = own.network.create_router(name=name, external_gateway_info={"network_id": outside.id})
        own.network.add_interface_to_router(router, subnet_id=subnet.id)
        group = own.network.create_security_group(name=name)
        own.network.create_security_group_rule(security_group_id=group.id, direction="ingress", protocol="tcp", port_range_min=22, port_range_max=22)
        ports = [own.network.create_port(name=f"{name}-{port}", network_id=net.id, security_groups=[group.id]) for port in range(PORTS)]
        own.network.create_ip(floating_network_id=outside.id, port_id=ports[0].id)
        own.compute.create_keypair(name=name)
        own.compute.create_server_group(name=name, policies=["soft-anti-affinity"])
        servers = [
            own.compute.create_server(name=f"{name}-{server}", flavor_id=flavor.id, image_id=image.id, networks=[{"port": ports[server].id}], metadata={"made": "before"})
            for server in range(SERVERS)
        ]
        for server in servers:
            own.compute.wait_for_server(server, wait=300)
        own.compute.stop_server(servers[-1])
        own.compute.wait_for_server(servers[-1], "SHUTOFF", interval=2, wait=300)
        until = time.monotonic() + 120
        while any(own.network.get_port(port).status != "ACTIVE" for port in ports[:SERVERS - 1]):
            if time.monotonic() > until:
                raise SystemExit("the port of a server is not ACTIVE")
            time.sleep(1)


def of(cloud, user, project):
    """The same cloud for another user."""
    names = {"username": user, "password": PASSWORD, "project_name": project, "user_domain_name": "Default", "project_domain_name": "Default"}
    return openstack.connect(auth={"auth_url": cloud.config.auth["auth_url"], **names}, verify=cloud.config.get_requests_verify_args()[0],
                             region_name=cloud.config.region_name, identity_api_version="3", interface="public")


def log_in(cloud):
    count = 0
    for number in range(PROJECTS):
        for user in range(USERS):
            own = of(cloud, f"{PREFIX}{number}-{user}", f"{PREFIX}{number}")
            names = sorted(it.name for it in own.compute.servers())
            if names != [f"{PREFIX}{number}-{server}" for server in range(SERVERS)]:
                raise SystemExit(f"a user of {PREFIX}{number} sees the servers {names}")
            count += 1
    print(f"{count} users have logged in, each with the servers of its project")


def remove(cloud):
    compute, network, identity = cloud.compute, cloud.network, cloud.identity
    ours = lambda all: [it for it in all if (it.name or "").startswith(PREFIX)]
    servers = ours(compute.servers(all_projects=True))
    for server in servers:
        compute.delete_server(server)
    for server in servers:
        compute.wait_for_delete(server, wait=300)
    for address in network.ips():
        network.delete_ip(address)
    for router in ours(network.routers()):
        for port in network.ports(device_id=router.id):
            if port.device_owner == "network:router_interface":
                network.remove_interface_from_router(router, port_id=port.id)
        network.delete_router(router)
    for port in ours(network.ports()):
        network.delete_port(port)
    for each in ours(network.networks()):
        network.delete_network(each)
    for image in cloud.image.images():
        if image.name == "probe" or image.name.startswith(PREFIX):
            cloud.image.delete_image(image)
    for group in ours(network.security_groups()):
        network.delete_security_group(group)
    for user in ours(identity.users()):
        identity.delete_user(user)
    for project in ours(identity.projects()):
        identity.delete_project(project)


def main(command, *path):
    cloud = openstack.connect(cloud="cloud")
    if command == "record":
        with open(path[0], "w") as file:
            json.dump(everything(cloud), file, indent=1)
    else:
        {"make": make, "compare": compare, "log-in": log_in, "remove": remove}[command](cloud, *path)


main(*sys.argv[1:])
