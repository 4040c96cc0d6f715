//! Measured binary in a separate process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;

/// Variable of the templates with the network of the machines, and a value with room for 500 machines; the default has
/// room for 250.
pub(super) const NETWORK: (&str, &str) = ("NODE_CIDR", "10.6.0.0/21");

/// Running `ferrostack up`. Dropping ends the process.
pub(super) struct Up {
    child: Child,
    /// Lines of the output, read without delay: a process blocks on a full pipe.
    lines: mpsc::Receiver<std::io::Result<String>>,
}

impl Up {
    /// Starts `up` with a data directory and further arguments.
    pub(super) fn start(binary: &Path, data: &Path, arguments: &[&str]) -> anyhow::Result<Self> {
        Self::command(binary, &["up"], data, arguments)
    }

    /// Starts `openstack up` with a data directory and further arguments.
    pub(super) fn cloud(binary: &Path, data: &Path, arguments: &[&str]) -> anyhow::Result<Self> {
        Self::command(binary, &["openstack", "up"], data, arguments)
    }

    fn command(
        binary: &Path,
        command: &[&str],
        data: &Path,
        arguments: &[&str],
    ) -> anyhow::Result<Self> {
        let mut child = Command::new(binary)
            .args(command)
            .args(["--output", "json", "--data-dir"])
            .arg(data)
            .args(arguments)
            .env(NETWORK.0, NETWORK.1)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| binary.display().to_string())?;
        let stdout = child.stdout.take().context("the output of the process")?;
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            // Fails if the receiver is gone.
            BufReader::new(stdout)
                .lines()
                .try_for_each(|line| sender.send(line))
        });
        Ok(Self { child, lines })
    }

    /// Reads progress until the cluster is ready, and returns the last line.
    pub(super) fn wait_until_ready(&mut self) -> anyhow::Result<Value> {
        Ok(self.events_until_ready()?.1)
    }

    /// Reads progress until everything is ready, and returns all events and the last line.
    pub(super) fn events_until_ready(&mut self) -> anyhow::Result<(Vec<Value>, Value)> {
        let mut events = Vec::new();
        loop {
            let Some(event) = self.event()? else {
                bail!(
                    "ferrostack ended before it was ready: {}",
                    self.child.wait()?
                );
            };
            if event.get("ready").is_some() {
                return Ok((events, event));
            }
            events.push(event);
        }
    }

    /// Next line; `None` at the end of the output.
    fn event(&mut self) -> anyhow::Result<Option<Value>> {
        // The sender is dropped at the end of the output.
        let Ok(line) = self.lines.recv() else {
            return Ok(None);
        };
        let line = line?;
        Ok(Some(serde_json::from_str(&line).with_context(|| line)?))
    }

    /// Maximum resident memory of the process so far.
    pub(super) fn peak_rss_megabytes(&self) -> anyhow::Result<f64> {
        Ok(self.status("VmHWM")? * 1024.0 / 1e6)
    }

    /// Resident memory of the process without a file behind it.
    pub(super) fn anonymous_megabytes(&self) -> anyhow::Result<f64> {
        Ok(self.status("RssAnon")? * 1024.0 / 1e6)
    }

    /// Number of threads.
    pub(super) fn threads(&self) -> anyhow::Result<f64> {
        self.status("Threads")
    }

    /// Number in a field of `/proc/PID/status`.
    fn status(&self, field: &str) -> anyhow::Result<f64> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(&path)?;
        let number = status
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(name, _)| *name == field)
            .and_then(|(_, rest)| rest.split_whitespace().next());
        let number = number.with_context(|| format!("{field} in {path}"))?;
        Ok(number.parse()?)
    }

    /// Processor time of all threads so far, in user and kernel mode.
    pub(super) fn cpu_seconds(&self) -> anyhow::Result<f64> {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = std::fs::read_to_string(&path)?;
        // The second field is the program's name in parentheses; utime and stime are the 14th and 15th.
        let (_, rest) = stat.rsplit_once(')').context("a name in /proc/PID/stat")?;
        let mut fields = rest.split_whitespace().skip(11);
        let mut ticks = || -> anyhow::Result<f64> {
            let field = fields.next().with_context(|| format!("utime in {path}"))?;
            Ok(field.parse()?)
        };
        let ticks = ticks()? + ticks()?;
        Ok(ticks / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Terminates the process, waits for its end, and returns the remaining events.
    pub(super) fn stop_with_events(mut self) -> anyhow::Result<Vec<Value>> {
        self.terminate()?;
        let mut events = Vec::new();
        while let Some(event) = self.event()? {
            events.push(event);
        }
        self.ended()?;
        Ok(events)
    }

    /// Terminates the process, and waits for its end.
    pub(super) fn stop(mut self) -> anyhow::Result<()> {
        self.terminate()?;
        self.ended()
    }

    fn terminate(&self) -> anyhow::Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        Ok(())
    }

    fn ended(&mut self) -> anyhow::Result<()> {
        let status = self.child.wait()?;
        if !status.success() {
            bail!("ferrostack ended with {status}");
        }
        Ok(())
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // After `stop` the process has ended, so both fail without effect.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// GET of a plain HTTP server on loopback: status and body.
pub(super) fn get(base_url: &str, path: &str) -> anyhow::Result<(u16, String)> {
    let host = base_url.strip_prefix("http://").context("an http:// URL")?;
    let mut stream = TcpStream::connect(host).with_context(|| host.to_owned())?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(
        stream,
        "GET {path} HTTP/1.0\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    )?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply)?;
    let (head, body) = reply.split_once("\r\n\r\n").context("an HTTP reply")?;
    let status = head
        .split_whitespace()
        .nth(1)
        .context("an HTTP status")?
        .parse()?;
    Ok((status, body.to_owned()))
}
