#!/usr/bin/env python3
"""Renders the files of clouds with random options: `specs.py RELEASE COUNT SEED TABLES BINARY DIRECTORY`.

TABLES: the directory with the options of each release (crates/deployer/options). BINARY: ferrostack. In DIRECTORY/spec-N are
`cloud.yaml` with the parameters, and what `openstack config` makes of them: `files`, `options.json`. Values keep to what the
tables say, so that a service which does not load one shows a gap in them. Options that only the controller sets are left out.
"""
import json
import pathlib
import random
import re
import subprocess
import sys

OPTIONS = 30  # for each service
# Options of the authentication plugin: the validator does not know them in every section, and most are the controller's.
PLUGIN = {
    "auth_url", "default_domain_id", "default_domain_name", "domain_id", "domain_name", "project_domain_id", "project_domain_name",
    "project_id", "project_name", "system_scope", "trust_id", "user_domain_id", "user_domain_name", "user_id", "username",
}
# Sections of Glance that the validator does not know, since an option names them.
UNKNOWN = ("os_glance_staging_store", "os_glance_tasks_store")


def value(option, rand):
    """A value that the table accepts; None if it cannot say one."""
    kind, default = option["type"], option.get("default")
    if option.get("choices"):
        choices = [it for it in option["choices"] if it not in (None, "")]
        return rand.choice(choices) if choices else None
    if kind == "boolean":
        return rand.random() < 0.5
    if kind in ("integer", "port"):
        least = max(int(option.get("min", 0)), 1 if kind == "port" else -(2**31))
        most = min(int(option.get("max", 2**31 - 1)), 65535 if kind == "port" else 2**31 - 1)
        return rand.choice((least, most, rand.randint(least, most)))
    if kind == "float":
        least = float(option.get("min", 0.0))
        return round(rand.uniform(least, min(float(option.get("max", least + 100)), least + 100)), 2)
    if option.get("pattern"):
        return default if isinstance(default, str) and re.search(option["pattern"], default) else None
    if kind == "string":
        return f"text {rand.randint(0, 999)}"
    if kind == "uri":
        scheme = rand.choice(option.get("schemes") or ("https",))
        return f"{scheme}://host-{rand.randint(0, 999)}.example:8080/path"
    if kind == "host":
        return rand.choice(("192.0.2.7", "2001:db8::7", f"host-{rand.randint(0, 999)}.example"))
    if kind == "address":
        return rand.choice(("192.0.2.7", "2001:db8::7"))
    if kind == "range":
        return f"{rand.randint(1, 40)}-{rand.randint(41, 90)}"
    # What the entries of a list or a map may be is in no table.
    if isinstance(default, list) and default and all(isinstance(it, str) for it in default):
        return rand.sample(default, rand.randint(1, len(default)))
    if isinstance(default, dict) and default:
        return default
    return None


def spec(release, tables, rand):
    services = {}
    for path in sorted(tables.glob("*.json")):
        table = json.loads(path.read_text())
        # The validator counts these as deprecated, also where an option has kept its name.
        earlier = {tuple(old) for options in table.get("sections", {}).values() for it in options.values() for old in it.get("earlier", [])}
        every = [
            (section, name, option)
            for section, options in table.get("sections", {}).items()
            for name, option in options.items()
            if not option.get("deprecated") and not option.get("secret") and section not in UNKNOWN and name not in PLUGIN and (section, name) not in earlier
        ]
        config = {}
        for section, name, option in rand.sample(every, min(OPTIONS, len(every))):
            chosen = value(option, rand)
            if chosen is not None:
                config.setdefault(section, {})[name] = chosen
        if config:
            services[table["service"]] = {"config": config}
    document = {"release": release, "region": f"Region{rand.randint(1, 9)}", "network": {"mtu": rand.randint(1280, 9000)}, "services": services}
    if rand.random() < 0.7:
        document["network"]["physical"] = [{"name": "public"}, {"name": "physnet1", "vlans": f"{rand.randint(1, 99)}:{rand.randint(100, 4094)}"}]
    if rand.random() < 0.7:
        document["compute"] = {"driver": "Fake", "fake": {"hypervisors": rand.randint(2, 9), "zones": ["az1", "az2"][: rand.randint(1, 2)]}}
    if "cinder" in services:
        document["storage"] = {"volumes": {"driver": "Fake"}}
    if "octavia" in services:
        services["octavia"]["enabled"] = True
    if rand.random() < 0.5:
        document["exposure"] = {"mode": "Edge", "host": "cloud.example.org", "addresses": ["192.0.2.10"]}
    return document


def rendered(binary, path, *arguments):
    command = [binary, "openstack", "config", "-f", str(path), *arguments]
    return subprocess.run(command, capture_output=True, text=True)


# The line of an option that is the controller's.
OURS = re.compile(r" services\.(\w+)\.config\.(\S+)\.(\w+): (?:this option cannot be set|set \S+ instead)")


def without_ours(document, refusal):
    """Removes the options that `refusal` names as the controller's; any other refusal is a failure."""
    for line in refusal.splitlines()[1:]:
        found = OURS.search(line)
        if not found:
            raise SystemExit(f"an option is rejected that its table allows: {line.strip()}")
        service, section, name = found.groups()
        del document["services"][service]["config"][section][name]


def main():
    release, count, seed, tables, binary, directory = sys.argv[1:]
    rand = random.Random(int(seed))
    for number in range(int(count)):
        place = pathlib.Path(directory) / f"spec-{number:02}"
        place.mkdir(parents=True)
        document, path = spec(release, pathlib.Path(tables) / release, rand), place / "cloud.yaml"
        path.write_text(json.dumps(document, indent=1) + "\n")
        done = rendered(binary, path)
        if done.returncode:
            without_ours(document, done.stderr)
            path.write_text(json.dumps(document, indent=1) + "\n")
            done = rendered(binary, path)
        if done.returncode:
            raise SystemExit(f"spec {number} of seed {seed} is rejected: {done.stderr}")
        (place / "files").write_text(done.stdout)
        (place / "options.json").write_text(rendered(binary, path, "-o", "json").stdout)


if __name__ == "__main__":
    main()
