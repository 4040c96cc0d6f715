//! Data directory of a flag or a variable.

use std::path::{Path, PathBuf};

use anyhow::Context;

use crate::cli::DataDirArg;
use crate::environment::Environment;
use crate::shell::quoted;

/// Data directory in the flag or in FERROSTACK_DATA_DIR, or the default one; always absolute.
///
/// # Errors
/// If none is given by a user without a home directory: nothing is written below the working directory unasked.
pub(crate) fn data_dir(arg: &DataDirArg, environment: &Environment) -> anyhow::Result<PathBuf> {
    let path = named_data_dir(arg, environment).or_else(|| environment.default_data_dir());
    let path = path.context(
        "HOME is not set, so that there is no default data directory: name one with --data-dir or FERROSTACK_DATA_DIR",
    )?;
    Ok(environment.working_dir.join(path))
}

/// The default directory of the simulated cluster of `openstack up`: apart from that of `up`, whose API server has no nodes.
pub(crate) fn openstack_data_dir(environment: &Environment) -> anyhow::Result<PathBuf> {
    let beside = data_dir(&DataDirArg::default(), environment)?;
    let mut name = beside.file_name().unwrap_or_default().to_owned();
    name.push("-openstack");
    Ok(beside.with_file_name(name))
}

/// As [`data_dir_flag`], for commands of `openstack`.
pub(crate) fn openstack_data_dir_flag(environment: &Environment, data: &Path) -> String {
    match openstack_data_dir(environment).is_ok_and(|default| default == data) {
        true => String::new(),
        false => format!(" --data-dir {}", quoted(data)),
    }
}

/// ` --data-dir PATH`, for commands to copy; empty for the default directory, found without a flag.
pub(crate) fn data_dir_flag(environment: &Environment, data: &Path) -> String {
    // With the variable, a command without the flag would use its directory.
    let is_default = environment.non_empty("FERROSTACK_DATA_DIR").is_none()
        && environment.default_data_dir().as_deref() == Some(data);
    match is_default {
        true => String::new(),
        false => format!(" --data-dir {}", quoted(data)),
    }
}

/// Data directory in the flag or in FERROSTACK_DATA_DIR; `None` if neither is set.
pub(crate) fn named_data_dir(arg: &DataDirArg, environment: &Environment) -> Option<PathBuf> {
    let variable = || environment.non_empty("FERROSTACK_DATA_DIR");
    arg.data_dir
        .clone()
        .or_else(|| variable().map(PathBuf::from))
}
