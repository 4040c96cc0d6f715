//! Console logs: what the serial port of each guest has shown.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

/// The oldest lines of a longer log are dropped, as Nova keeps a ring of 64 KiB or so too.
const LIMIT: usize = 64 << 10;

/// The consoles of all guests. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Consoles {
    logs: Arc<Mutex<HashMap<String, Log>>>,
}

#[derive(Debug)]
struct Log {
    text: String,
    since: Instant,
}

/// The console of one guest. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Console {
    consoles: Consoles,
    instance: String,
}

impl Consoles {
    /// The console of `instance`.
    pub(crate) fn of(&self, instance: &str) -> Console {
        Console {
            consoles: self.clone(),
            instance: instance.to_owned(),
        }
    }

    /// What the console of `instance` shows.
    pub(crate) fn text(&self, instance: &str) -> String {
        self.logs
            .lock()
            .get(instance)
            .map(|log| log.text.clone())
            .unwrap_or_default()
    }

    /// Puts back what a console showed before the process was restarted.
    pub(crate) fn restore(&self, instance: &str, text: &str) {
        let log = Log {
            text: text.to_owned(),
            since: Instant::now(),
        };
        self.logs.lock().insert(instance.to_owned(), log);
    }

    /// Forgets the console of a deleted instance.
    pub(crate) fn forget(&self, instance: &str) {
        self.logs.lock().remove(instance);
    }
}

impl Console {
    /// The machine is switched on: the time stamps start again.
    pub(crate) fn power_on(&self) {
        let mut logs = self.consoles.logs.lock();
        let log = logs.entry(self.instance.clone()).or_insert_with(Log::new);
        log.since = Instant::now();
        drop(logs);
        self.line("kernel: Linux version 6.8.0-simulated (ferrostack)");
    }

    /// Shows a line of the kernel or of systemd.
    pub(crate) fn line(&self, line: &str) {
        let mut logs = self.consoles.logs.lock();
        let log = logs.entry(self.instance.clone()).or_insert_with(Log::new);
        let elapsed = log.since.elapsed().as_secs_f64();
        for line in line.lines() {
            log.text.push_str(&format!("[{elapsed:12.6}] {line}\n"));
        }
        if let Some(excess) = log.text.len().checked_sub(LIMIT) {
            let cut = log.text.bytes().skip(excess).position(|byte| byte == b'\n');
            log.text.drain(..cut.map_or(0, |at| excess + at + 1));
        }
    }

    /// Shows a line that cloud-init prints, or a command that it runs.
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
        }
    }
}
