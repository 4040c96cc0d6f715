#!/usr/bin/env python3
"""Validates and loads what `openstack config` prints: `load.py DIRECTORY`, with `files` and `options.json` in each of its
directories. A process for each service loads its modules once."""
import contextlib
import io
import json
import logging
import pathlib
import re
import subprocess
import sys

from oslo_config import cfg, generator, validator

work = pathlib.Path(sys.argv[1])
sys.path.insert(0, str(work))
import generate  # noqa: E402

# It warns of each name of a group that it writes otherwise.
logging.getLogger("oslo_config.generator").setLevel(logging.ERROR)
# Sections that an option of the service names, and logins of Cinder's that it registers late; the validator does not know them.
NAMED = {"glance": ["os_glance_staging_store", "os_glance_tasks_store", "rbd"], "cinder": ["rbd", "fake", "service_user", "nova"]}


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


def validate(path, service, namespaces):
    # It cannot have `backlog` of both oslo.service and Neutron; nothing that we set is in the former.
    namespaces = [namespace for namespace in namespaces if namespace != "oslo.service.wsgi"]
    arguments = ["validator", "--fatal-warnings", "--input-file", str(path)]
    for namespace in namespaces:
        arguments += ["--namespace", namespace]
    for group in NAMED.get(service, []):
        arguments += ["--exclude-group", group]
    output = io.StringIO()
    # It tells what it found by the log.
    handler = logging.StreamHandler(output)
    logging.getLogger().addHandler(handler)
    # Those of the namespace that is left out.
    unknown = {option.dest for _, groups in generator._list_opts(["oslo.service.wsgi"]) for _, options in groups for option in options}
    before, sys.argv = sys.argv, arguments
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        found = validator.main()
    sys.argv = before
    logging.getLogger().removeHandler(handler)
    if found:
        if not output.getvalue():
            raise SystemExit(f"oslo-config-validator rejects {path}, and does not say why")
        lines = (line for line in output.getvalue().splitlines() if line.split(" ")[0].removeprefix("DEFAULT/") not in unknown)
        return [f"oslo-config-validator on {path.parent.name}/{path.name}: {line}" for line in lines]
    return []


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


def load(place, service):
    """Validates and loads the files of one service of a spec; returns how many values were compared, and what is wrong."""
    if service["name"] == "cinder":
        # It adds arguments of the command line, before these are read.
        generate.importlib.import_module("cinder.opts")
    # Some modules read the global configuration while they are imported.
    cfg.CONF([], default_config_files=[], default_config_dirs=[], prog="load")
    files = split((place / "files").read_text())
    _, namespaces = generate.SERVICES[service["name"]]
    namespaces = known(namespaces)
    paths = []
    for path, content in files.items():
        if path.startswith(f"/etc/{service['name']}/"):
            paths.append(place / path.strip("/").replace("/", "_"))
            paths[-1].write_text(content)
    if len(paths) != 2:
        raise SystemExit(f"{service['name']}: {len(paths)} files")
    problems = [problem for path in paths for problem in validate(path, service["name"], namespaces)]
    conf = registered(namespaces)
    arguments = [argument for path in paths for argument in ("--config-file", str(path))]
    conf(arguments, default_config_files=[], default_config_dirs=[], prog=service["name"])
    checked = 0
    for option in service["options"]:
        section, name = option["section"], option["name"]
        if section in NAMED.get(service["name"], []):
            continue
        group = conf if section == "DEFAULT" else conf[section]
        where = f"{place.name}: {service['name']} [{section}] {name}"
        try:
            # Some lists have to be in brackets.
            loaded, written = (it.replace(", ", ",").strip("[]") for it in (text(group[name]), option["value"]))
        except cfg.NoSuchOptError:
            # The options of an authentication plugin are registered by the plugin itself.
            if name not in generate.plugin("password"):
                problems.append(f"{where} is not loaded")
            continue
        except cfg.ConfigFileValueError as error:
            problems.append(f"{where}: {option['value']!r} is rejected: {error.msg if hasattr(error, 'msg') else error}")
            continue
        if loaded.replace(".0", "") != written.replace(".0", ""):
            problems.append(f"{where}: {written!r} was written, {loaded!r} is loaded")
        checked += 1
    if checked < 10:
        raise SystemExit(f"only {checked} options of {service['name']} were compared")
    return checked, problems


def main():
    specs = sorted(place.parent for place in work.glob("*/options.json"))
    documents = [json.loads((place / "options.json").read_text())["services"] for place in specs]
    if len(sys.argv) > 2:
        checked, every, problems = 0, 0, []
        for place, services in zip(specs, documents):
            # A cloud without volumes has no Cinder.
            service = next((service for service in services if service["name"] == sys.argv[2]), None)
            if service is None:
                continue
            compared, wrong = load(place, service)
            checked, problems = checked + compared, problems + wrong
            every += len(service["options"])
        print(f"{sys.argv[2]}: {checked} of {every} options of {len(specs)} clouds loaded as written")
        raise SystemExit("\n".join(problems) if problems else 0)
    # A process for each: the projects register different options of the same name in one global configuration.
    names = sorted({service["name"] for services in documents for service in services})
    done = [subprocess.run([sys.executable, __file__, str(work), name]) for name in names]
    raise SystemExit(max(it.returncode for it in done))


if __name__ == "__main__":
    main()
