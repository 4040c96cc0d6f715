//! What a process does when it comes to rest: it returns the memory that it no longer uses.
//!
//! While clusters come up, much is allocated for a moment, and the gaps that it leaves between what stays are a third of
//! the memory of a process at rest (docs/benchmarks.md). The allocator returns them when it is asked to only.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

/// How often it is looked at.
const INTERVAL: Duration = Duration::from_secs(2);
/// The most processor time in an interval of rest: a tenth of a core.
const REST: Duration = Duration::from_millis(200);
/// The least processor time after which there is memory worth returning. At rest that is minutes.
const WORK: Duration = Duration::from_secs(1);

/// Returns unused memory whenever the process comes to rest, until `stop`.
pub(crate) async fn return_memory(stop: CancellationToken) {
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut work = Work::default();
    while stop.run_until_cancelled(ticks.tick()).await.is_some() {
        if work.is_over(processor_time()) {
            // It takes longer than a task should.
            let _ = tokio::task::spawn_blocking(heap::return_unused).await;
        }
    }
}

/// Processor time of this process, all threads.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Work between two times of rest.
#[derive(Debug, Default)]
struct Work {
    /// Processor time when it was looked at last.
    seen: Duration,
    /// Processor time when a rest was noticed last.
    began: Duration,
}

impl Work {
    /// Whether the process has come to rest after some work.
    fn is_over(&mut self, processor_time: Duration) -> bool {
        let rests = processor_time.saturating_sub(self.seen) <= REST;
        self.seen = processor_time;
        let over = rests && processor_time.saturating_sub(self.began) >= WORK;
        if over {
            self.began = processor_time;
        }
        over
    }
}

#[cfg(test)]
mod tests;
