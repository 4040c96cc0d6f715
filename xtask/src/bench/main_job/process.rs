//! The measured binary in a separate process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use serde_json::Value;

/// A running `ferrostack up`. Dropping it ends the process.
pub(super) struct Up {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Up {
    pub(super) fn start(
        binary: &Path,
        data: &Path,
        latency: &str,
        workers: u64,
    ) -> anyhow::Result<Self> {
        let mut child = Command::new(binary)
            .args(["up", "--output", "json", "--latency", latency, "--data-dir"])
            .arg(data)
            .args(["--worker-machine-count", &workers.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| binary.display().to_string())?;
        let lines = BufReader::new(child.stdout.take().context("the output of the process")?);
        Ok(Self { child, lines })
    }

    /// Reads progress until the cluster is ready, and returns that line.
    pub(super) fn wait_until_ready(&mut self) -> anyhow::Result<Value> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.lines.read_line(&mut line)? == 0 {
                bail!(
                    "ferrostack ended before it was ready: {}",
                    self.child.wait()?
                );
            }
            let event: Value = serde_json::from_str(&line).with_context(|| line.clone())?;
            if event.get("ready").is_some() {
                return Ok(event);
            }
        }
    }

    /// The maximum resident memory of the process so far.
    pub(super) fn peak_rss_megabytes(&self) -> anyhow::Result<f64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes: f64 = line
            .and_then(|line| line.split_whitespace().next())
            .context("VmHWM in /proc/PID/status")?
            .parse()?;
        Ok(kibibytes * 1024.0 / 1e6)
    }

    /// Asks the process to end, and waits for it.
    pub(super) fn stop(mut self) -> anyhow::Result<()> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
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

/// A GET of a plain HTTP server on loopback: status and body.
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
