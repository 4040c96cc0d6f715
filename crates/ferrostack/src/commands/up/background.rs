//! Another process that continues a command in the background.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::Context;

use crate::commands::logs;
use crate::environment::Environment;

/// Starts the same command without --detach, in a new process group, out of reach of Ctrl-C in this terminal. The
/// output goes to [`logs::FILE`] in the data directory.
///
/// # Errors
/// If the file cannot be written, or the process cannot be started.
pub(crate) fn start(data: &Path, environment: &Environment) -> anyhow::Result<Child> {
    let log = data.join(logs::FILE);
    let output = OpenOptions::new()
        .create(true)
        .write(true)
        .truncate(true)
        .mode(0o600)
        .open(&log)
        .with_context(|| format!("cannot write {}", log.display()))?;
    let errors = output.try_clone()?;
    let program = environment.executable.as_ref();
    let program = program.context("the path of this program is not known")?;
    Command::new(program)
        .args(of_started(&environment.arguments))
        .stdin(Stdio::inherit())
        .stdout(output)
        .stderr(errors)
        .process_group(0)
        .spawn()
        .context("it cannot be started in the background")
}

/// Arguments of the started process, without a further start in the background and without the timeout of this process.
fn of_started(arguments: &[OsString]) -> Vec<OsString> {
    let mut arguments = arguments.iter();
    let mut kept = Vec::new();
    while let Some(argument) = arguments.next() {
        let text = argument.to_string_lossy();
        match text.as_ref() {
            "--detach" => {}
            "--timeout" => {
                let _value = arguments.next();
            }
            text if text.starts_with("--timeout=") => {}
            _ => kept.push(argument.clone()),
        }
    }
    kept
}

/// Waits for the end of the process; the error contains its last output.
pub(crate) async fn ended(child: &mut Child, data: &Path) -> anyhow::Error {
    loop {
        match ended_now(child, data) {
            Ok(Some(problem)) | Err(problem) => return problem,
            Ok(None) => tokio::time::sleep(Duration::from_millis(200)).await,
        }
    }
}

/// Error if the process has ended, with its last output.
pub(crate) fn ended_now(child: &mut Child, data: &Path) -> anyhow::Result<Option<anyhow::Error>> {
    let Some(_) = child.try_wait()? else {
        return Ok(None);
    };
    let log = data.join(logs::FILE);
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    let last = last_error(&text).unwrap_or("it ended without a reason");
    Ok(Some(anyhow::anyhow!(
        "{last} (all of its output is in {})",
        log.display()
    )))
}

/// The last error, with all of its lines.
fn last_error(log: &str) -> Option<&str> {
    let start = match log.rfind("\nerror: ") {
        Some(before) => before + 1,
        None => 0,
    };
    Some(log.get(start..)?.strip_prefix("error: ")?.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_started_process_has_no_timeout_and_no_detach() {
        for arguments in [
            &["up", "--detach", "--timeout", "60s", "--data-dir", "x"][..],
            &["up", "--timeout=60s", "--data-dir", "x", "--detach"],
        ] {
            let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
            assert_eq!(of_started(&arguments), ["up", "--data-dir", "x"]);
        }
    }

    #[test]
    fn the_last_error_is_found_with_all_of_its_lines() {
        assert_eq!(last_error("a\nerror: b\nerror: c\n  d\n"), Some("c\n  d"));
        assert_eq!(last_error("error: c"), Some("c"));
        assert_eq!(last_error("a\nb"), None);
        assert_eq!(last_error(""), None);
    }
}
