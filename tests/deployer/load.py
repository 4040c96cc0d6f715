#!/usr/bin/env python3
"""Validates and loads what `openstack config` prints: `load.py DIRECTORY` with `files` and `options.json` in it."""
import json
import pathlib
import re
import subprocess
import sys

from oslo_config import cfg, generator

work = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(work))
import generate  # noqa: E402

# Sections that an option of Glance names; the validator does not know them.
NAMED = ["os_glance_staging_store", "os_glance_tasks_store"]


def split(text):
    """The files by their path: each begins with a comment line that names it."""
    files, current = {}, None
    for line in text.splitlines():
        found = re.match(r"# (/etc/\S+) \(", line)
        if found:
            current = files.setdefault(found[1], [])
        elif current is not None:
            current.append(line)
    return {path: "\n".join(lines) + "\n" for path, lines in files.items()}


def validate(path, namespaces):
    # It cannot have `backlog` of both oslo.service and Neutron; nothing that we set is in the former.
    namespaces = [namespace for namespace in namespaces if namespace != "oslo.service.wsgi"]
    command = ["oslo-config-validator", "--fatal-warnings", "--input-file", str(path)]
    for namespace in namespaces:
        command += ["--namespace", namespace]
    for group in NAMED:
        command += ["--exclude-group", group]
    done = subprocess.run(command, capture_output=True, text=True)
    output = done.stdout + done.stderr
    if done.returncode:
        raise SystemExit(f"oslo-config-validator on {path.name}:\n{output}")


def registered(namespaces):
    """A configuration with the options of the namespaces, as the services register them."""
    conf = cfg.ConfigOpts()
    # A service registers the options of oslo.limit, of which one is required, only if it uses them.
    conf._check_required_opts = lambda namespace=None: None
    for _, groups in generator._list_opts(namespaces):
        for group, options in groups:
            name = getattr(group, "name", group)
            for option in options:
                try:
                    conf.register_opt(option, group=None if name in (None, "DEFAULT") else name)
                except cfg.DuplicateOptError:
                    pass
    return conf


def text(value):
    """A loaded value in the form of the file."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return ",".join(f"{key}:{entry}" for key, entry in value.items())
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    return str(value)


def known(namespaces):
    names = {entry.name for entry in generate.importlib.metadata.entry_points(group="oslo.config.opts")}
    return [namespace for namespace in namespaces if namespace in names]


def load(service):
    """Validates and loads the files of one service; returns how many values were compared."""
    # Some modules read the global configuration while they are imported.
    cfg.CONF([], default_config_files=[], default_config_dirs=[], prog="load")
    files = split((work / "files").read_text())
    _, namespaces = generate.SERVICES[service["name"]]
    namespaces = known(namespaces)
    paths = []
    for path, content in files.items():
        if path.startswith(f"/etc/{service['name']}/"):
            paths.append(work / path.strip("/").replace("/", "_"))
            paths[-1].write_text(content)
    if len(paths) != 2:
        raise SystemExit(f"{service['name']}: {len(paths)} files")
    for path in paths:
        validate(path, namespaces)
    conf = registered(namespaces)
    arguments = [argument for path in paths for argument in ("--config-file", str(path))]
    conf(arguments, default_config_files=[], default_config_dirs=[], prog=service["name"])
    checked = 0
    for option in service["options"]:
        section, name = option["section"], option["name"]
        if section in NAMED:
            continue
        place = conf if section == "DEFAULT" else conf[section]
        # The options of an authentication plugin are registered by the plugin itself.
        if not hasattr(place, name):
            if name in generate.plugin("password"):
                continue
            raise SystemExit(f"{service['name']} does not load [{section}] {name}")
        loaded, written = text(place[name]), option["value"].replace(", ", ",")
        if loaded.replace(".0", "") != written.replace(".0", ""):
            raise SystemExit(f"{service['name']} [{section}] {name}: {written!r} was written, {loaded!r} is loaded")
        checked += 1
    return checked


def main():
    document = json.loads((work / "options.json").read_text())
    if len(sys.argv) > 2:
        [service] = [service for service in document["services"] if service["name"] == sys.argv[2]]
        checked = load(service)
        print(f"{service['name']}: {checked} of {len(service['options'])} options loaded as written")
        if checked < 10:
            raise SystemExit(f"only {checked} options were compared")
        return
    # A process for each: the projects register different options of the same name in one global configuration.
    for service in document["services"]:
        subprocess.run([sys.executable, __file__, str(work), service["name"]], check=True)


if __name__ == "__main__":
    main()
