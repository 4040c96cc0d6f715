//! Private namespaces for devices, mounts and addresses.

use std::ffi::OsString;
use std::process::Command;

use anyhow::{Context, bail};

/// Variable that is set for the program inside the namespaces.
const INSIDE: &str = "FERROSTACK_NAMESPACES_OF_ITS_OWN";
/// Preparation inside: the loopback device, the address of the metadata service, and an empty `/dev/disk`.
const PREPARE: &str = "ip link set lo up && ip address add 169.254.169.254/32 dev lo && mkdir -p /dev/disk && \
    mount -t tmpfs tmpfs /dev/disk && mkdir /dev/disk/by-id && exec \"$@\"";

/// True inside the namespaces.
pub(crate) fn is_inside() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Runs this program again, with its arguments and further ones, in new namespaces of mounts and of the network.
///
/// # Errors
/// Without root, or if the program fails.
pub(crate) fn run_inside(further: &[OsString]) -> anyhow::Result<()> {
    if !rustix::process::geteuid().is_root() {
        bail!("root is needed: drivers mount, and disks are loop devices");
    }
    let program = std::env::current_exe()?;
    let ended = Command::new("unshare")
        .args(["--mount", "--net", "--propagation", "private"])
        .args(["sh", "-c", PREPARE, "sh"])
        .arg(program)
        .args(std::env::args_os().skip(1))
        .args(further)
        .env(INSIDE, "yes")
        .status()
        .context("unshare")?;
    if !ended.success() {
        bail!("it failed in its namespaces: {ended}");
    }
    Ok(())
}
