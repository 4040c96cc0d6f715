"""Backs up a cloud to a volume, or loads a backup of it. Runs in a Pod of the cloud.

    backup.py backup | check | load [DATABASE REPORT]

/etc/backup/cloud.json says of which cloud and how. A backup is a directory of the volume: it has its name when all of it is written,
was read back and is on the disk. What fails is one line on standard error, and the status 1.
"""

import base64
import datetime
import gzip
import hashlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(os.environ.get("BACKUP_ROOT", "/"))
VOLUME = ROOT / "backups"
REPORT = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else ROOT / "dev/termination-log"
# How a backup is laid out.
FORMAT = 1
SUMS = "SHA256SUMS"
CLOUD, SQL, OVN, KEYS = "cloud.json", "databases.sql.gz", "ovn-nb.db", "keys.cms"
BLOCK = 1 << 20
# The longest row, in bytes: the server takes less.
PACKET = "--max-allowed-packet=1G"
# The last statement of a load, and its answer: without it the client has not read to the end.
END = "the end of the backup is reached"
# One load at a time: the Pod of a lost node may still be at it. The session holds the lock.
ALONE = """DELIMITER //
BEGIN NOT ATOMIC
IF COALESCE(GET_LOCK('ferrostack-restore', 30), 0) <> 1 THEN
SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'another load is at it';
END IF;
END//
DELIMITER ;
"""


def die(text):
    print(text, file=sys.stderr)
    sys.exit(1)


def run(words, **streams):
    done = subprocess.run(words, stderr=subprocess.PIPE, check=False, **streams)
    if done.returncode:
        die(f"{pathlib.Path(words[0]).name} has failed: {last(done.stderr)}")
    return done.stdout


def ended(process, said):
    """Waits for a program whose words are in a file."""
    if process.wait():
        said.seek(0)
        die(f"{process.args[0]} has failed: {last(said.read())}")


def last(said):
    lines = [it for it in said.decode(errors="replace").splitlines() if it.strip()]
    return "; ".join(lines[-3:])[-500:] or "it says nothing"


def digest(path):
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            found.update(block)
    return found.hexdigest()


def settled(path):
    """On the disk: a volume may go with its node."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def client():
    return f"--defaults-file={ROOT / 'etc/accounts/client.cnf'}"


def dump(cloud, path):
    """All databases as of one moment."""
    words = ["mariadb-dump", client(), PACKET, "--single-transaction", "--quick", "--hex-blob", "--routines", "--triggers", "--databases", *cloud["databases"]]
    with gzip.open(path, "wb", compresslevel=3) as into, tempfile.TemporaryFile() as said:
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=said)
        shutil.copyfileobj(process.stdout, into, BLOCK)
        ended(process, said)


def is_whole(path):
    """True if a dump has its end: mariadb-dump writes it when all of it is written."""
    tail = b""
    try:
        with gzip.open(path, "rb") as file:
            while block := file.read(BLOCK):
                tail = (tail + block)[-200:]
    except (OSError, EOFError):
        return False
    return b"-- Dump completed" in tail


def keys(cloud, path):
    """Passwords and keys as Secrets for kubectl, encrypted to the certificate: no Pod has the key that opens them."""
    items = []
    for name, metadata in cloud["secrets"].items():
        files = [it for it in (ROOT / "keys" / name).iterdir() if not it.name.startswith(".")]
        data = {it.name: base64.b64encode(it.read_bytes()).decode() for it in sorted(files)}
        items.append({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data})
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()
    words = ["openssl", "cms", "-encrypt", "-binary", "-aes-256-gcm", "-outform", "PEM", "-out", str(path), str(ROOT / "etc/backup/certificate.pem")]
    run(words, input=text)


def backup(cloud):
    now = datetime.datetime.now(datetime.timezone.utc)
    name = cloud["name"] + (now.strftime("-%Y%m%d-%H%M%S") if cloud["stamped"] else "")
    place = VOLUME / name
    if place.exists():
        there, _ = read(place)
        if there["operation"] != cloud["operation"]:
            die(f"the volume has a backup {name} already: give this one another name")
        return report(cloud, place)
    # Other clouds may be at theirs.
    unfinished = f".part-{cloud['uid']}-"
    for old in [it for it in VOLUME.iterdir() if it.name.startswith(unfinished)]:
        shutil.rmtree(old, ignore_errors=True)
    part = VOLUME / f"{unfinished}{socket.gethostname()}"
    part.mkdir()
    dump(cloud, part / SQL)
    (part / OVN).write_bytes(run(["ovsdb-client", "--timeout=60", "backup", cloud["northbound"], "OVN_Northbound"], stdout=subprocess.PIPE))
    keys(cloud, part / KEYS)
    versions = {it: run([it, "--version"], stdout=subprocess.PIPE).decode().splitlines()[0] for it in ("mariadb-dump", "ovsdb-client")}
    taken = now.isoformat(timespec="seconds")
    about = {**cloud, "name": name, "format": FORMAT, "taken": taken, "versions": versions}
    (part / CLOUD).write_text(json.dumps(about, indent=1, sort_keys=True) + "\n")
    parts = (CLOUD, SQL, OVN, KEYS)
    (part / SUMS).write_text("".join(f"{digest(part / it)}  {it}\n" for it in parts))
    for it in (*parts, SUMS):
        settled(part / it)
    settled(part)
    # Read back before it has its name.
    read(part)
    os.rename(part, place)
    settled(VOLUME)
    report(cloud, place, prune(cloud, place))


def prune(cloud, newest):
    """Removes the oldest backups of this cloud beyond those that are kept. What cannot be read is left to people."""
    found = []
    for place in VOLUME.iterdir():
        try:
            about = json.loads((place / CLOUD).read_text())
            if about["uid"] == cloud["uid"] and place != newest and not place.name.startswith("."):
                found.append((str(about["taken"]), place))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    gone = []
    for _, place in sorted(found, reverse=True)[max(cloud["keep"] - 1, 0):]:
        # Killed in the middle, it has no name of a backup.
        left = VOLUME / f".part-{cloud['uid']}-{len(gone)}"
        os.rename(place, left)
        settled(VOLUME)
        shutil.rmtree(left)
        gone.append(place.name)
    return gone


def report(cloud, place, removed=()):
    """What the controller tells of it: the kubelet takes it from this file."""
    size = sum(it.stat().st_size for it in place.iterdir())
    about = {"backup": place.name, "digest": digest(place / SUMS), "size": size, "removed": list(removed)}
    # The kubelet takes 4096 bytes.
    while len(text := json.dumps(about)) > 4000 and about["removed"]:
        about["removed"].pop()
    REPORT.write_text(text)
    print(text)


def read(place):
    """Reads all of a backup, and what it says of itself."""
    name = place.name
    try:
        lines = (place / SUMS).read_text().splitlines()
        sums = {path: sum for sum, _, path in (it.partition("  ") for it in lines)}
    except (OSError, ValueError) as error:
        die(f"the backup {name} has no sums of its parts: {error}")
    for part in (CLOUD, SQL, OVN, KEYS):
        path = place / part
        if part not in sums or not path.is_file():
            die(f"the backup {name} is not whole: {part} is missing")
        if digest(path) != sums[part]:
            die(f"the backup {name} is broken: {part} is not what was written")
    if not is_whole(place / SQL):
        die(f"the backup {name} is broken: {SQL} has no end")
    try:
        return json.loads((place / CLOUD).read_text()), sums
    except ValueError as error:
        die(f"the backup {name} is broken: {CLOUD}: {error}")


def check(cloud):
    """Whether a backup can be loaded into this cloud."""
    name = cloud["name"]
    place = VOLUME / name
    if "/" in name or name.startswith(".") or not place.is_dir():
        there = sorted(it.name for it in VOLUME.iterdir() if (it / SUMS).is_file() and not it.name.startswith("."))
        die(f"there is no backup {name} on the volume; there are: {', '.join(there[-20:]) or 'none'}")
    about, _ = read(place)
    if about["format"] != FORMAT:
        die(f"the backup {name} is of format {about['format']}; this version reads {FORMAT}")
    if about["uid"] != cloud["uid"]:
        die(
            f"the backup {name} is of another cloud: of {about['cloud']} with the uid {about['uid']}, and this one has {cloud['uid']}. "
            f"Its keys come first: a cloud is made with the Secrets in {KEYS}"
        )
    if about["release"] != cloud["release"]:
        die(f"the backup {name} is of {about['release']}, and the cloud of {cloud['release']}: a cloud takes backups of its own release")
    other = sorted(key for key, sum in about["keys"].items() if cloud["keys"].get(key) != sum)
    if other:
        die(f"passwords or keys are not those of the backup {name}: {', '.join(other[:10])}. Put those of its {KEYS} into their Secrets first")
    if about["databases"] != cloud["databases"]:
        die(f"the backup {name} has the databases {', '.join(about['databases'])}, and the cloud {', '.join(cloud['databases'])}")
    return place


def load(cloud):
    """Loads a backup in place of what is there. Whoever is interrupted begins again."""
    place = check(cloud)
    words = ["mariadb", client(), PACKET, "--binary-mode", "--skip-column-names"]
    drop = "".join(f"DROP DATABASE IF EXISTS `{database}`;\n" for database in cloud["databases"])
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as answers, gzip.open(place / SQL, "rb") as sql:
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=answers, stderr=said)
        try:
            process.stdin.write((ALONE + drop).encode())
            shutil.copyfileobj(sql, process.stdin, BLOCK)
            process.stdin.write(f"\nSELECT '{END}';\n".encode())
            process.stdin.close()
        except BrokenPipeError:
            pass
        ended(process, said)
        answers.seek(0)
        if END.encode() not in answers.read(BLOCK):
            die(f"mariadb has not read all of {SQL}")
    with open(place / OVN, "rb") as networks:
        run(["ovsdb-client", "--timeout=300", "restore", cloud["northbound"], "OVN_Northbound"], stdin=networks)
    # Services would take from the cache what is no longer so.
    host, _, port = cloud["cache"].rpartition(":")
    with socket.create_connection((host, int(port)), 30) as cache:
        cache.sendall(b"flush_all\r\n")
        if not cache.recv(64).startswith(b"OK"):
            die("memcached does not empty itself")
    report(cloud, place)


def main():
    try:
        act()
    except OSError as error:
        die(error)


def act():
    cloud = json.loads((ROOT / "etc/backup/cloud.json").read_text())
    if sys.argv[1] == "backup":
        backup(cloud)
    elif sys.argv[1] == "check":
        report(cloud, check(cloud))
    else:
        load(cloud)


main()
