//! Limit of events in a second.

use std::time::Duration;

use tokio::time::Instant;

/// Allowed events: after a pause, the events of one second at once.
pub(super) struct Rate {
    per_second: u32,
    /// Time up to which allowed events have used up the rate.
    next: Option<Instant>,
}

impl Rate {
    pub(super) fn new(per_second: u32) -> Self {
        let next = None;
        Self { per_second, next }
    }

    /// True if an event is allowed now.
    pub(super) fn take(&mut self, now: Instant) -> bool {
        if self.per_second == 0 {
            return false;
        }
        let step = Duration::from_secs(1) / self.per_second;
        let next = self.next.map_or(now, |next| next.max(now)) + step;
        let allowed = next <= now + Duration::from_secs(1);
        if allowed {
            self.next = Some(next);
        }
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_second_has_no_more_than_its_events() {
        let now = Instant::now();
        let mut rate = Rate::new(10);
        let allowed = |rate: &mut Rate, at: u64, times: usize| {
            let at = now + Duration::from_millis(at);
            (0..times).filter(|_| rate.take(at)).count()
        };
        assert_eq!(allowed(&mut rate, 0, 30), 10);
        assert_eq!(allowed(&mut rate, 99, 30), 0);
        assert_eq!(allowed(&mut rate, 300, 30), 3);
        assert_eq!(allowed(&mut rate, 9000, 30), 10);
        assert_eq!(allowed(&mut Rate::new(0), 0, 3), 0);
    }
}
