//! Programs of the system, with a time limit, and with their output in the error.

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Limit for the output that is kept, in bytes.
const KEPT: u64 = 64 << 10;

/// Exit code and output of a program that ended.
#[derive(Debug)]
pub struct Output {
    /// Exit code; `None` if a signal ended the program.
    pub code: Option<i32>,
    /// Output on both streams, on one line.
    pub text: String,
}

/// Failure of a program.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is not installed.
    #[error("{program} is not installed where the node plugin runs")]
    Absent {
        /// Name of the program.
        program: String,
    },
    /// The program exited with another code than 0, or by a signal.
    #[error("{program} failed ({status}): {output}")]
    Failed {
        /// Name of the program.
        program: String,
        /// Exit status: `exit code 1`, `by a signal`.
        status: String,
        /// Output of the program.
        output: String,
    },
    /// The kernel refused to start the program.
    #[error("{program} cannot be run: {source}")]
    NotRun {
        /// Name of the program.
        program: String,
        /// Error of the system call.
        source: io::Error,
    },
    /// The program was killed at the time limit.
    #[error("{program} was ended after {} s: {output}", limit.as_secs())]
    TooLong {
        /// Name of the program.
        program: String,
        /// Time limit.
        limit: Duration,
        /// Output of the program until then.
        output: String,
    },
}

/// Runs a program that must exit with 0, and returns its output on one line.
///
/// # Errors
/// [`Error`]: absent, failed, or killed at the limit together with its process group.
pub fn run<S: AsRef<OsStr>>(program: &str, args: &[S], limit: Duration) -> Result<String, Error> {
    let output = finish(program, args, limit)?;
    match output.code {
        Some(0) => Ok(output.text),
        code => Err(Error::Failed {
            program: program.to_owned(),
            status: code.map_or("by a signal".to_owned(), |code| format!("exit code {code}")),
            output: output.text,
        }),
    }
}

/// Runs a program to its end, with any exit code.
///
/// # Errors
/// [`Error`]: absent, or killed at the limit together with its process group.
pub fn finish<S: AsRef<OsStr>>(
    program: &str,
    args: &[S],
    limit: Duration,
) -> Result<Output, Error> {
    let not_run = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => Error::Absent {
            program: program.to_owned(),
        },
        _ => Error::NotRun {
            program: program.to_owned(),
            source,
        },
    };
    let mut child = Command::new(program)
        .args(args)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(not_run)?;
    let streams = [collect(child.stdout.take()), collect(child.stderr.take())];
    let ended = ended(&mut child, limit).map_err(not_run)?;
    if ended.is_none() {
        stop(&mut child);
    }
    let text: Vec<String> = streams
        .into_iter()
        .flatten()
        .filter_map(|stream| stream.join().ok())
        .filter(|text| !text.is_empty())
        .collect();
    let text = text.join("; ");
    match ended {
        Some(status) => Ok(Output {
            code: status.code(),
            text,
        }),
        None => Err(Error::TooLong {
            program: program.to_owned(),
            limit,
            output: text,
        }),
    }
}

/// Waits for a child by polling: std has no wait with a time limit.
fn ended(child: &mut Child, limit: Duration) -> io::Result<Option<ExitStatus>> {
    let began = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if began.elapsed() >= limit {
            return Ok(None);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Kills the process group of the program.
fn stop(child: &mut Child) {
    let group = i32::try_from(child.id()).ok();
    let group = group.and_then(rustix::process::Pid::from_raw);
    let ended = group
        .map(|group| rustix::process::kill_process_group(group, rustix::process::Signal::KILL));
    if !matches!(ended, Some(Ok(()))) {
        drop(child.kill());
    }
    drop(child.wait());
}

/// Reads a stream to its end, so that the program never blocks on a full pipe; keeps the start, on one line.
fn collect(stream: Option<impl Read + Send + 'static>) -> Option<JoinHandle<String>> {
    let mut stream = stream?;
    Some(std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let kept = stream.by_ref().take(KEPT).read_to_end(&mut bytes);
        if kept.is_ok() {
            drop(io::copy(&mut stream, &mut io::sink()));
        }
        let text = String::from_utf8_lossy(&bytes);
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        lines.collect::<Vec<_>>().join(" ")
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    #[test]
    fn what_a_program_writes_is_in_its_error() {
        assert_eq!(
            run("sh", &["-c", "echo a; echo b >&2"], LIMIT).unwrap(),
            "a; b"
        );
        let error = run("sh", &["-c", "echo no space >&2; exit 3"], LIMIT).unwrap_err();
        assert_eq!(error.to_string(), "sh failed (exit code 3): no space");
        assert_eq!(finish("false", &[""; 0], LIMIT).unwrap().code, Some(1));
        let error = run("no-such-program", &[""; 0], LIMIT).unwrap_err();
        assert!(matches!(error, Error::Absent { .. }), "{error}");
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_what_it_started() {
        let began = Instant::now();
        let limit = Duration::from_millis(50);
        // The second holds the streams open.
        let error = run("sh", &["-c", "echo waiting; sleep 300 & sleep 300"], limit).unwrap_err();
        assert!(matches!(error, Error::TooLong { .. }), "{error}");
        assert!(error.to_string().ends_with("waiting"), "{error}");
        assert!(began.elapsed() < Duration::from_secs(250));
    }

    #[test]
    fn endless_output_is_read_and_its_start_kept() {
        let output = run("sh", &["-c", "yes | head -c 1000000"], LIMIT).unwrap();
        assert!(output.len() <= 64 << 10);
    }
}
