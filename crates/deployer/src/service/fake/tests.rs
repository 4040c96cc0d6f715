use std::path::Path;
use std::process::Command;

/// What the program needs of Nova: a manager whose builds take a moment, and that notes what is done.
const NOVA: [(&str, &str); 9] = [
    ("nova/__init__.py", ""),
    ("nova/cmd/__init__.py", ""),
    ("nova/cmd/compute.py", ""),
    ("nova/service.py", "class Service:\n    pass\n"),
    ("nova/compute/__init__.py", ""),
    ("nova/compute/power_state.py", "RUNNING, SHUTDOWN = 1, 4\n"),
    ("nova/compute/vm_states.py", "STOPPED = 'stopped'\n"),
    (
        "nova/compute/manager.py",
        "import threading, time
begun = threading.Event()
class ComputeManager:
    def _do_build_and_run_instance(self, context, instance, image):
        begun.set()
        time.sleep(0.5)
        print('built', instance.uuid, flush=True)
    def cleanup_host(self):
        print('ended', flush=True)
    def _error_out_instances_whose_build_was_interrupted(self, context, handled, nodes):
        print('ERROR', flush=True)
",
    ),
    (
        "nova/virt/fake.py",
        "import types
class FakeInstance:
    def __init__(self, name, state, uuid):
        self.state = state
class FakeDriver:
    def __init__(self):
        self.instances = {}
        self.resources = types.SimpleNamespace(claim=lambda **_: None)
    def get_info(self, instance, use_cache=True):
        return self.instances[instance.uuid].state
",
    ),
];

const RESTART: &str = "import sys, threading, types
import compute
manager = compute.nova.compute.manager.ComputeManager
compute.keep_builds(manager, sys.argv[1] == 'crashed')
it = manager()
server = types.SimpleNamespace(uuid='server')
build = threading.Thread(target=it._do_build_and_run_instance, args=(None, server, None))
build.start()
compute.nova.compute.manager.begun.wait()
it.cleanup_host()
it._error_out_instances_whose_build_was_interrupted(None, set(), [])
";

const STOPPED: &str = "import types
import compute
it = compute.hypervisor('uuid')()
flavor = types.SimpleNamespace(vcpus=1, memory_mb=64, root_gb=1)
print(it.get_info(types.SimpleNamespace(uuid='a', name='a', vm_state='stopped', flavor=flavor)))
";

fn ran(directory: &Path, script: &str, how: &str) -> String {
    let done = Command::new("python3")
        .args(["-B", "-c", script, how])
        .env("PYTHONPATH", directory)
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{stderr}");
    String::from_utf8(done.stdout).unwrap()
}

/// The program beside these modules.
fn prepared() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (path, text) in NOVA.into_iter().chain([
        ("nova/virt/__init__.py", ""),
        ("compute.py", include_str!("../../../programs/compute.py")),
    ]) {
        let path = directory.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    directory
}

#[test]
fn a_hypervisor_that_restarts_loses_no_server_that_is_built() {
    let directory = prepared();
    let restarted = |how| ran(directory.path(), RESTART, how);
    // Replaced in order: what has begun is finished, and what waits in the queue is left to it.
    assert_eq!(restarted("replaced"), "built server\nended\n");
    // After a crash nobody knows what was lost.
    assert_eq!(restarted("crashed"), "built server\nended\nERROR\n");
}

#[test]
fn a_server_that_is_stopped_stays_so_when_its_hypervisor_restarts() {
    let directory = prepared();
    assert_eq!(ran(directory.path(), STOPPED, ""), "4\n");
}
