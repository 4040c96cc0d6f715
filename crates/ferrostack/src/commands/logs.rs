//! `logs`: output of an `up` in the background, or the console of a machine's server.

mod console;

use std::collections::VecDeque;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio_util::sync::CancellationToken;

use crate::cli::Logs;
use crate::connect;
use crate::data_dir::holder;
use crate::environment::Environment;
use crate::output::print;
use crate::signals::stop_if;

/// File in the data directory with the output of an `up` in the background.
pub(crate) const FILE: &str = "up.log";

/// Pause between two reads of the file with `--follow`.
const LOOK: Duration = Duration::from_millis(250);

/// Maximum of bytes read at once.
const CHUNK: u64 = 1 << 16;

/// Runs the command.
pub(super) async fn execute(args: &Logs, environment: &Environment) -> anyhow::Result<()> {
    run(args, environment, stop_if(args.follow)?, print).await
}

/// Prints the log or the console, whole or its last lines; with `--follow` also new lines of the log, until the `up`
/// ends or `stop`.
///
/// # Errors
/// If no `up` has written a log, or if the console cannot be read.
pub(crate) async fn run(
    args: &Logs,
    environment: &Environment,
    stop: CancellationToken,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    if !args.object.is_empty() {
        return print(&console::text(args, environment).await?);
    }
    if args.connect.given_namespace.is_some() {
        bail!("--namespace is for the console of a machine: name it, as in machine/NAME");
    }
    if args.connect.server.kubeconfig.is_some() || args.connect.server.context.is_some() {
        bail!(
            "the log of `up` is a file in its data directory: name the directory by --data-dir, or a machine whose console is wanted"
        );
    }
    let data = connect::data_dir(&args.connect.server.data_dir, environment)?;
    let Some(mut log) = Log::open(&data)? else {
        let program = &environment.program;
        bail!(
            "there is no {}: no `{program} up --detach` has run with this data directory, and other ones print their log themselves",
            data.join(FILE).display()
        );
    };
    print(&log.rest(args.tail, !args.follow)?)?;
    match args.follow {
        true => follow(log, &data, stop, print).await,
        false => Ok(()),
    }
}

/// Prints new lines of the log until its `up` ends, or `stop`.
async fn follow(
    mut log: Log,
    data: &Path,
    stop: CancellationToken,
    print: impl Fn(&str) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    while !stop.is_cancelled() {
        // Asked before the file is read: all that the process wrote before its end is then read, too.
        let running = holder(data)?.is_some();
        let more = log.more(data)?;
        if !more.is_empty() {
            print(&more)?;
        } else if !running {
            break;
        } else {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                () = stop.cancelled() => {}
            }
        }
    }
    Ok(())
}

/// File, with the position of the reader.
pub(crate) struct Log {
    file: File,
    /// Number of bytes read so far.
    read: u64,
    /// Incomplete last line of the text read so far.
    begun: Vec<u8>,
}

impl Log {
    pub(crate) fn open(data: &Path) -> anyhow::Result<Option<Self>> {
        let path = data.join(FILE);
        match File::open(&path) {
            Ok(file) => Ok(Some(Self {
                file,
                read: 0,
                begun: Vec::new(),
            })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Unread text, with an incomplete last line if `to_the_end`; only its last `tail` lines, if given.
    fn rest(&mut self, tail: Option<usize>, to_the_end: bool) -> anyhow::Result<String> {
        let mut lines = VecDeque::new();
        loop {
            let mut chunk = self.chunk()?;
            if chunk.is_empty() && to_the_end && !self.begun.is_empty() {
                let begun = std::mem::take(&mut self.begun);
                chunk = format!("{}\n", String::from_utf8_lossy(&begun));
            }
            if chunk.is_empty() {
                break;
            }
            for line in chunk.split_inclusive('\n') {
                lines.push_back(line.to_owned());
                if tail.is_some_and(|tail| lines.len() > tail) {
                    lines.pop_front();
                }
            }
        }
        Ok(lines.into_iter().collect())
    }

    /// New lines since the last call; of another file, if another `up` has begun one.
    pub(crate) fn more(&mut self, data: &Path) -> anyhow::Result<String> {
        if self.file.metadata()?.len() < self.read
            && let Some(new) = Self::open(data)?
        {
            *self = new;
        }
        self.chunk()
    }

    /// Some whole lines; empty if there are none.
    fn chunk(&mut self) -> anyhow::Result<String> {
        self.file.seek(SeekFrom::Start(self.read))?;
        let read = (&self.file).take(CHUNK).read_to_end(&mut self.begun)?;
        self.read += read as u64;
        let end = match self.begun.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => last + 1,
            // A line without an end is printed in pieces.
            None if self.begun.len() as u64 >= CHUNK => self.begun.len(),
            None => 0,
        };
        let whole: Vec<u8> = self.begun.drain(..end).collect();
        Ok(String::from_utf8_lossy(&whole).into_owned())
    }
}

#[cfg(test)]
mod tests;
