//! Console logs: the output of each guest's serial port.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// The oldest lines of a longer log are dropped; Nova's ring buffer is about 64 KiB, too.
const LIMIT: usize = 64 << 10;

/// Consoles of all guests. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consoles {
    logs: Arc<Mutex<HashMap<String, Log>>>,
    /// Notified of every new line.
    changed: Arc<Notify>,
}

#[derive(Debug)]
struct Log {
    text: String,
    since: Instant,
    /// When the machine was last powered on.
    on: Timestamp,
    /// Time of each line of the text.
    times: VecDeque<Timestamp>,
    /// Number of lines ever printed, dropped ones included.
    printed: u64,
    /// Number of lines before the machine was last powered on.
    before: u64,
}

/// Line of a console, without the time stamp.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    pub(crate) at: Timestamp,
    pub(crate) text: String,
}

/// Console of one guest. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Console {
    consoles: Consoles,
    instance: String,
}

impl Consoles {
    /// Returns the console of `instance`.
    pub(crate) fn of(&self, instance: &str) -> Console {
        Console {
            consoles: self.clone(),
            instance: instance.to_owned(),
        }
    }

    /// Returns the text of an instance's console.
    pub(crate) fn text(&self, instance: &str) -> String {
        self.logs
            .lock()
            .get(instance)
            .map(|log| log.text.clone())
            .unwrap_or_default()
    }

    /// Returns the lines since the machine was powered on, starting with the line number `from`, and the number of the
    /// next line. `None` for an unknown instance.
    pub(crate) fn lines(&self, instance: &str, from: u64) -> Option<(Vec<Line>, u64)> {
        let logs = self.logs.lock();
        let log = logs.get(instance)?;
        let first = log.printed - log.times.len() as u64;
        let skipped = from.max(log.before).saturating_sub(first);
        let skipped = usize::try_from(skipped).unwrap_or(usize::MAX);
        let lines = log.text.lines().zip(&log.times).skip(skipped);
        let lines = lines.map(|(line, at)| Line {
            at: *at,
            text: line
                .split_once("] ")
                .map_or(line, |(_, text)| text)
                .to_owned(),
        });
        Some((lines.collect(), log.printed))
    }

    /// Returns a signal for every new line of any console.
    pub(crate) fn changed(&self) -> &Arc<Notify> {
        &self.changed
    }

    /// Returns the time of the last power-on of the machine.
    pub(crate) fn on(&self, instance: &str) -> Option<Timestamp> {
        self.logs.lock().get(instance).map(|log| log.on)
    }

    /// Restores a console after a restart of the process; the machine was powered on at `on`.
    pub(crate) fn restore(&self, instance: &str, text: &str, on: Option<Timestamp>) {
        let on = on.unwrap_or(Timestamp::UNIX_EPOCH);
        let time = |line: &str| {
            let stamp = line.strip_prefix('[')?.split_once(']')?.0;
            let elapsed = SignedDuration::try_from_secs_f64(stamp.trim().parse().ok()?).ok()?;
            on.checked_add(elapsed).ok()
        };
        let times: VecDeque<Timestamp> =
            text.lines().map(|line| time(line).unwrap_or(on)).collect();
        let log = Log {
            text: text.to_owned(),
            since: Instant::now(),
            on,
            printed: times.len() as u64,
            times,
            before: 0,
        };
        self.logs.lock().insert(instance.to_owned(), log);
    }

    /// Removes the console of a deleted instance.
    pub(crate) fn forget(&self, instance: &str) {
        self.logs.lock().remove(instance);
    }
}

impl Console {
    /// Powers the machine on: time stamps restart from zero.
    pub(crate) fn power_on(&self) {
        let mut logs = self.consoles.logs.lock();
        let log = logs.entry(self.instance.clone()).or_insert_with(Log::new);
        log.since = Instant::now();
        log.on = Timestamp::now();
        log.before = log.printed;
        drop(logs);
        self.line("kernel: Linux version 6.8.0-simulated (ferrostack)");
    }

    /// Prints a line of the kernel or of systemd.
    pub(crate) fn line(&self, line: &str) {
        let mut logs = self.consoles.logs.lock();
        let log = logs.entry(self.instance.clone()).or_insert_with(Log::new);
        let elapsed = log.since.elapsed().as_secs_f64();
        for line in line.lines() {
            log.text.push_str(&format!("[{elapsed:12.6}] {line}\n"));
            log.times.push_back(Timestamp::now());
            log.printed += 1;
        }
        if let Some(excess) = log.text.len().checked_sub(LIMIT) {
            let cut = log.text.bytes().skip(excess).position(|byte| byte == b'\n');
            let dropped = log.text.drain(..cut.map_or(0, |at| excess + at + 1));
            let dropped = dropped.filter(|char| *char == '\n').count();
            log.times.drain(..dropped);
        }
        drop(logs);
        self.consoles.changed.notify_waiters();
    }

    /// Prints the output of cloud-init, or of a command run by cloud-init.
    pub(crate) fn cloud_init(&self, line: &str) {
        for line in line.lines() {
            self.line(&format!("cloud-init[731]: {line}"));
        }
    }
}

impl Log {
    fn new() -> Self {
        Self {
            text: String::new(),
            since: Instant::now(),
            on: Timestamp::now(),
            times: VecDeque::new(),
            printed: 0,
            before: 0,
        }
    }
}
