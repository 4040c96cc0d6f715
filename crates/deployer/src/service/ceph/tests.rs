use std::process::Command;

/// A Ceph whose user may not write to `private`, without a pool `nowhere`, and with a manager that knows `known`.
const RADOS: &str = "
import json

class Error(Exception): pass
class ObjectNotFound(Error): pass
class PermissionError(Error): pass
class PermissionDeniedError(Error): pass

class Pool:
    def __init__(self, name): self.name = name
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def remove_object(self, name): pass
    def write_full(self, name, data):
        if self.name == 'private': raise PermissionDeniedError('no caps')

class Rados:
    def __init__(self, conffile, rados_id): pass
    def conf_set(self, name, value): pass
    def connect(self): pass
    def shutdown(self): pass
    def mon_command(self, question, data): return 0, json.dumps({'pools': [{'name': 'known'}]}).encode(), ''
    def open_ioctx(self, name):
        if name == 'nowhere': raise ObjectNotFound('none')
        return Pool(name)
";

/// Success and lines of the program with these pools.
fn tried(pools: &[&str]) -> (bool, String) {
    let directory = tempfile::tempdir().unwrap();
    let program = include_str!("../../../programs/ceph.py").replace("'15'", "'0'");
    std::fs::write(directory.path().join("rados.py"), RADOS).unwrap();
    std::fs::write(directory.path().join("ceph.py"), program).unwrap();
    let done = Command::new("python3")
        .args(["-B", "ceph.py", "openstack"])
        .args(pools)
        .current_dir(&directory)
        .output()
        .unwrap();
    let lines = String::from_utf8(done.stderr).unwrap();
    (done.status.success(), lines)
}

#[test]
fn each_pool_that_cannot_be_used_is_told_with_its_field() {
    let (succeeded, lines) = tried(&[
        "storage.volumes.pool=private",
        "storage.images.pool=nowhere",
        "storage.guests.pool=known",
    ]);
    assert!(!succeeded);
    let starts = [
        "storage.volumes.pool: client.openstack may not write to the pool private",
        "storage.images.pool: the Ceph has no pool nowhere",
    ];
    assert_eq!(lines.lines().count(), starts.len(), "{lines}");
    for (line, start) in lines.lines().zip(starts) {
        assert!(line.starts_with(start), "{line}");
    }
}

#[test]
fn a_ceph_that_tells_no_sizes_is_told_before_nova_has_no_hypervisor() {
    let all = ["storage.volumes.pool=unknown", "storage.guests.pool=known"];
    assert_eq!(tried(&all), (true, String::new()));
    let (succeeded, lines) = tried(&["storage.guests.pool=unknown"]);
    let start = "storage.guests.pool: the Ceph does not tell the size of the pool unknown";
    assert!(!succeeded && lines.starts_with(start), "{lines}");
}
