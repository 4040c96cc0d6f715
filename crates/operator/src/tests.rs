//! Tests that measure memory: each runs in a process of its own, without the allocations of other tests.

use std::process::Command;

/// Names the test that a process is for.
const VARIABLE: &str = "FERROSTACK_TEST_ALONE";

/// True if this process runs `test` alone, named with its modules. Otherwise starts such a process, which has to pass.
pub(crate) fn is_alone(test: &str) -> bool {
    if std::env::var(VARIABLE).is_ok_and(|name| name == test) {
        return true;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).env(VARIABLE, test);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "{text}");
    false
}

/// The largest memory of this process until now, in MiB.
pub(crate) fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.unwrap().trim().trim_end_matches(" kB");
    kib.parse::<usize>().unwrap() >> 10
}
