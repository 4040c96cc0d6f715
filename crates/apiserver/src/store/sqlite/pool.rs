//! Threads of all databases of a process: as many as databases with work, and none at rest.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// Maximum number of threads. A database has a thread while waiting for its disk.
const THREADS: usize = 16;
/// Time until a thread without work ends.
const LINGER: Duration = Duration::from_secs(2);

type Work = Box<dyn FnOnce() + Send>;

static POOL: Pool = Pool::new();

/// Runs `work` soon.
pub(super) fn run(work: impl FnOnce() + Send + 'static) {
    let mut state = POOL.state.lock();
    state.now.push_back(Box::new(work));
    POOL.staffed(state);
}

/// Runs `work` after a `pause`.
pub(super) fn run_after(pause: Duration, work: impl FnOnce() + Send + 'static) {
    let mut state = POOL.state.lock();
    state.number += 1;
    let at = (Instant::now() + pause, state.number);
    state.later.insert(at, Box::new(work));
    POOL.staffed(state);
}

struct Pool {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    now: VecDeque<Work>,
    /// By the time, and a number of its own.
    later: BTreeMap<(Instant, u64), Work>,
    number: u64,
    threads: usize,
    /// Threads that wait.
    idle: usize,
}

impl State {
    /// Next [`Work`]; after the given time, also delayed work.
    fn next(&mut self, at: Instant) -> Option<Work> {
        if let Some(work) = self.now.pop_front() {
            return Some(work);
        }
        let first = self.later.first_entry()?;
        (first.key().0 <= at).then(|| first.remove())
    }
}

impl Pool {
    const fn new() -> Self {
        Self {
            state: Mutex::new(State {
                now: VecDeque::new(),
                later: BTreeMap::new(),
                number: 0,
                threads: 0,
                idle: 0,
            }),
            changed: Condvar::new(),
        }
    }

    /// Wakes or starts a thread for new work.
    fn staffed(&'static self, mut state: MutexGuard<'_, State>) {
        let enough = state.idle >= state.now.len().max(1) || state.threads == THREADS;
        if enough {
            drop(state);
            self.changed.notify_one();
            return;
        }
        state.threads += 1;
        drop(state);
        let thread = std::thread::Builder::new().name("apiserver-store".to_owned());
        let Err(error) = thread.spawn(|| self.work()) else {
            return;
        };
        let mut state = self.state.lock();
        state.threads -= 1;
        // Other threads take the work next. Without any thread, the work is done here rather than never.
        let work = (state.threads == 0).then(|| state.now.pop_front());
        drop(state);
        tracing::warn!(%error, "no thread for databases could be started");
        if let Some(work) = work.flatten() {
            work();
        }
    }

    /// Loop of a thread, until no work has come for a while.
    fn work(&self) {
        let mut state = self.state.lock();
        let mut idle_since = Instant::now();
        loop {
            let now = Instant::now();
            if let Some(work) = state.next(now) {
                drop(state);
                // A database that panics is closed by its guard; others go on.
                let _ = catch_unwind(AssertUnwindSafe(work));
                state = self.state.lock();
                idle_since = Instant::now();
                continue;
            }
            // One thread stays for delayed work.
            let is_needed = state.threads == 1 && !state.later.is_empty();
            if !is_needed && now >= idle_since + LINGER {
                state.threads -= 1;
                // The waiting thread may be the one that stays.
                self.changed.notify_one();
                return;
            }
            let due = state.later.first_key_value().map(|((at, _), _)| *at);
            let until = match due {
                Some(due) if is_needed => due,
                Some(due) => due.min(idle_since + LINGER),
                None => idle_since + LINGER,
            };
            state.idle += 1;
            let _ = self.changed.wait_until(&mut state, until);
            state.idle -= 1;
        }
    }
}

#[cfg(test)]
mod tests;
