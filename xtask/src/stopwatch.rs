//! Durations in output.

use std::time::Duration;

/// Minutes and seconds, in a column: ` 12:05`.
pub(crate) fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{:3}:{:02}", seconds / 60, seconds % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_stand_in_a_column() {
        for (seconds, text) in [(0, "  0:00"), (65, "  1:05"), (6_000, "100:00")] {
            assert_eq!(clock(Duration::from_secs(seconds)), text);
        }
    }
}
