#!/usr/bin/env python3
"""Writes the option tables of a release: `generate.py DIRECTORY`, on a machine with the release's Debian packages.

One JSON file for each service, an option on each line. The tables hold what a configuration file is checked against: type,
limits, choices, earlier names. The descriptions, which are texts of the projects, stand apart in help.txt: a line for each option with
service, section, name and the text as a JSON string.
"""
import ast
import importlib.metadata
import importlib.util
import json
import pathlib
import subprocess
import sys
import textwrap

from keystoneauth1 import loading

# Those of each project's own generator file (etc/oslo-config-generator and the like), and of the libraries that the
# project loads without naming them there. Namespaces that a release does not have are left out.
MIDDLEWARE = ["oslo.middleware.cors", "oslo.middleware.healthcheck", "oslo.middleware.http_proxy_to_wsgi"]
RPC = ["oslo.messaging", "oslo.privsep", "oslo.service.periodic_task", "oslo.service.service", "oslo.versionedobjects"]
TOKENS = ["keystonemiddleware.auth_token", "oslo.policy", "oslo.log", "osprofiler"]
SERVICES = {
    "keystone": ("keystone", ["keystone", "oslo.cache", "oslo.log", "oslo.messaging", "oslo.db", "oslo.policy",
                              "oslo.middleware", "osprofiler"]),
    "glance": ("glance", ["glance.api", "glance.store", "glance.multi_store", "castellan.config", "oslo.concurrency",
                          "oslo.messaging", "oslo.db", "oslo.reports", "oslo.limit", *TOKENS, *MIDDLEWARE]),
    "placement": ("openstack-placement", ["placement.conf", "oslo.middleware.cors",
                                          "oslo.middleware.http_proxy_to_wsgi", *TOKENS]),
    "nova": ("nova", ["nova.conf", "os_vif", "oslo.middleware", "oslo.concurrency", "oslo.limit", "oslo.reports", *TOKENS,
                      *RPC]),
    "neutron": ("neutron", ["neutron", "neutron.agent", "neutron.db", "neutron.experimental", "neutron.extensions",
                            "neutron.ml2", "neutron.ml2.ovn", "nova.auth", "ironic.auth", "placement.auth",
                            "designate.auth", "oslo.cache", "oslo.db", "oslo.concurrency", "oslo.reports",
                            "oslo.service.sslutils", "oslo.service.wsgi", *TOKENS, *MIDDLEWARE, *RPC]),
    "cinder": ("cinder", ["cinder", "castellan.config", "oslo.concurrency", "oslo.db", "oslo.reports", "oslo.service.wsgi", *TOKENS,
                          *MIDDLEWARE, *RPC]),
    # Of the provider of OVN as well, which reads the same file.
    "octavia": ("octavia", ["octavia", "octavia.api.drivers.ovn", "oslo.db", "oslo.reports", *TOKENS, *MIDDLEWARE, *RPC]),
}
# Horizon's settings are Python: those of its files of defaults, and these of its settings.py.
DASHBOARD = ("openstack_auth", "horizon", "openstack_dashboard")
LANGUAGES = ("LANGUAGES", "LANGUAGE_CODE", "LANGUAGE_COOKIE_NAME", "SESSION_EXPIRE_AT_BROWSER_CLOSE")
TYPES = {
    "string value": "string", "integer value": "integer", "boolean value": "boolean", "floating point value": "float",
    "list value": "list", "dict value": "dict", "port value": "port", "uri value": "uri", "multi valued": "multi",
    "host address value": "host", "host domain value": "host", "hostname value": "string", "ip address value": "address", "range value": "range",
    "IP address value": "address",
    "unknown value": "string", "IPv4 zone prefix": "integer", "IPv6 zone prefix": "integer",
}
# Types of Neutron that take multiples of a number only.
PREFIXES = {"IPv4 zone prefix": range(8, 25, 8), "IPv6 zone prefix": range(4, 125, 4)}


# A name alone, where `host` takes an address of either family as well.
HOSTNAME = "^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$"


def generated(namespaces):
    """The groups as the generator prints them, or None where namespaces collide."""
    command = ["oslo-config-generator", "--format", "json"]
    for namespace in namespaces:
        command += ["--namespace", namespace]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return json.loads(done.stdout)["options"]
    if "DuplicateOptError" in done.stderr:
        return None
    raise SystemExit(f"{' '.join(command)}: {done.stderr}")


def options(namespaces):
    """The groups of all namespaces. A namespace that another one repeats with differences is asked for on its own."""
    known = {entry.name for entry in importlib.metadata.entry_points(group="oslo.config.opts")}
    wanted = [namespace for namespace in namespaces if namespace in known]
    groups = generated(wanted)
    if groups is None:
        groups = {}
        for namespace in wanted:
            for name, group in (generated([namespace]) or {}).items():
                merged = groups.setdefault(name, {**group, "opts": []})
                have = {option["dest"] for option in merged["opts"]}
                merged["opts"] += [option for option in group["opts"] if option["dest"] not in have]
    return groups


def limits(namespaces):
    """What values the type of an option takes, as far as the generator does not print it: by section and name."""
    from oslo_config import cfg, generator, types

    if "cinder" in namespaces:
        # It adds arguments of the command line, before these are read.
        importlib.import_module("cinder.opts")
    # Some modules read the global configuration while they are imported.
    cfg.CONF([], default_config_files=[], default_config_dirs=[], prog="generate")
    found = []
    for _, groups in generator._list_opts(namespaces):
        for group, registered in groups:
            section = getattr(group, "name", group) or "DEFAULT"
            for option in registered:
                kind, entry = option.type, {}
                if isinstance(kind, types.List) and kind.bounds:
                    entry["bounds"] = True
                if getattr(kind, "regex", None):
                    entry["pattern"] = kind.regex.pattern
                if getattr(kind, "schemes", None):
                    entry["schemes"] = sorted(kind.schemes)
                if getattr(kind, "max_length", None):
                    entry["max_length"] = kind.max_length
                if entry:
                    found.append((section, option.dest, entry))
    return found


def limited(namespaces):
    """`limits` of a process of its own: the projects register different options of the same name."""
    known = {entry.name for entry in importlib.metadata.entry_points(group="oslo.config.opts")}
    wanted = [namespace for namespace in namespaces if namespace in known]
    command = [sys.executable, __file__, "--limits", *wanted]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return {(section, name): entry for section, name, entry in json.loads(done.stdout.splitlines()[-1])}


def line(option, limit):
    kind = TYPES.get(option["type"])
    if kind is None:
        raise SystemExit(f"unknown type of {option['name']}: {option['type']}")
    entry = {"type": kind}
    for key in ("min", "max"):
        if option[key] is not None:
            entry[key] = option[key]
    choices = [choice[0] for choice in option["choices"] or []]
    if option["type"] == "hostname value":
        entry["pattern"] = HOSTNAME
    if option["type"] in PREFIXES:
        choices = list(PREFIXES[option["type"]])
    if choices:
        entry["choices"] = choices
    # The default of the machine that runs the generator can hold its paths, processors and host name; then the project
    # gives a sample.
    default = option["default"] if option["sample_default"] is None else option["sample_default"]
    if isinstance(default, (bool, int, float, str, list)) and default not in ("", []) and not option["secret"]:
        entry["default"] = default
    earlier = [[old["group"] or "", old["name"] or option["name"]] for old in option["deprecated_opts"]]
    if earlier:
        entry["earlier"] = earlier
    for key, flag in (("deprecated", "deprecated_for_removal"), ("secret", "secret"), ("required", "required"),
                      ("mutable", "mutable")):
        if option[flag]:
            entry[key] = True
    return {**entry, **limit}


def plugin(name):
    table = {}
    for option in loading.get_plugin_options(name):
        entry = {"type": "string"}
        if option.secret:
            entry["secret"] = True
        table[option.dest] = entry
    return table


def described(text):
    """A description without the blanks around it and at the ends of its lines."""
    lines = [line.rstrip() for line in textwrap.dedent(text or "").strip().splitlines()]
    return "\n".join(lines)


def descriptions(service, groups, auth):
    """A line of help.txt for each option of a service that has a text."""
    lines = []
    for section, group in groups.items():
        texts = {option["dest"]: option["help"] for option in group["opts"]}
        if "auth_type" in texts:
            texts = {**auth, **texts}
        for name, text in texts.items():
            if described(text):
                lines.append(f"{service} {section} {name} {json.dumps(described(text))}")
    return sorted(lines)


def assigned(path):
    """What a module assigns in capital letters, with the type of what it assigns; `any` where that is computed."""
    types = {}
    for node in ast.parse(path.read_text()).body:
        if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
            continue
        name, value = node.targets[0].id, node.value
        if not name.isupper():
            continue
        if isinstance(value, ast.Call) and getattr(value.func, "id", "") == "_":
            value = value.args[0]
        kind = type(value.value if isinstance(value, ast.Constant) else value)
        types[name] = {bool: "boolean", int: "integer", str: "string", ast.List: "list", ast.Tuple: "list",
                       ast.Dict: "map"}.get(kind, "any")
    return types


def dashboard(out):
    """The settings of Horizon. Nothing of it is loaded: it would need a configuration of Django."""
    found = {}
    for package in DASHBOARD:
        directory = pathlib.Path(importlib.util.find_spec(package).submodule_search_locations[0])
        found.update(assigned(directory / "defaults.py"))
    settings = assigned(directory / "settings.py")
    found.update({name: settings[name] for name in LANGUAGES})
    version = importlib.metadata.version("horizon")
    lines = [f"  {json.dumps(name)}: {json.dumps(kind)}" for name, kind in sorted(found.items())]
    text = f'{{"service": "horizon", "version": {json.dumps(version)}, "settings": {{\n' + ",\n".join(lines) + "}}\n"
    (out / "horizon.json").write_text(text)


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    dashboard(out)
    auth = plugin("password")
    auth_texts = {option.dest: option.help for option in loading.get_plugin_options("password")}
    texts = []
    for service, (distribution, namespaces) in SERVICES.items():
        try:
            version = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            # Images of earlier releases have neither Cinder nor Octavia.
            continue
        groups = options(namespaces)
        limit = limited(namespaces)
        texts += descriptions(service, groups, auth_texts)
        sections = {}
        for name, group in sorted(groups.items()):
            table = {option["dest"]: line(option, limit.get((name, option["dest"]), {})) for option in group["opts"]}
            # Cinder registers the options of this login in the moment in which it uses them.
            if (service, name) == ("cinder", "service_user"):
                table.setdefault("auth_type", {"type": "string"})
            # An authentication section takes the options of the plugin that auth_type names.
            if "auth_type" in table:
                table = {**auth, **table}
            sections[name] = dict(sorted(table.items()))
        text = [f'{{"service": {json.dumps(service)}, "version": {json.dumps(version)}, "sections": {{']
        for index, (name, table) in enumerate(sections.items()):
            text.append(f"{json.dumps(name)}: {{")
            lines = [f"  {json.dumps(dest)}: {json.dumps(entry)}" for dest, entry in table.items()]
            text.append(",\n".join(lines))
            text.append("}" + ("," if index + 1 < len(sections) else ""))
        text.append("}}")
        (out / f"{service}.json").write_text("\n".join(text) + "\n")
    (out / "help.txt").write_text("\n".join(texts) + "\n")


if __name__ == "__main__":
    if sys.argv[1] == "--limits":
        print(json.dumps(limits(sys.argv[2:])))
    else:
        main()
