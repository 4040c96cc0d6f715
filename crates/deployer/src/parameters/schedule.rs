//! Times of backups and rotations, as cron has them.

use cronexpr::{Crontab, FallbackTimezoneOption, MakeTimestamp, ParseOptions};
use jiff::Timestamp;
use serde::Deserialize;

/// Rotations of passwords and keys at the times of a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rotation {
    /// The times, as [`Schedule::read`] takes them.
    pub schedule: String,
}

impl Rotation {
    /// The first field with a value that makes no sense, and the reason.
    pub(super) fn wrong(&self) -> Option<(String, &'static str)> {
        let wrong = Schedule::read(&self.schedule).err()?;
        Some(("rotation.schedule".to_owned(), wrong))
    }
}

/// The longest schedule, in bytes.
const LONGEST: usize = 100;

/// Times in UTC: minute, hour, day of the month, month and day of the week.
///
/// Source: the [schedule of a CronJob](https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/#schedule-syntax).
pub struct Schedule(Crontab);

impl Schedule {
    /// Reads five fields, such as `0 2 * * *`.
    ///
    /// # Errors
    /// The reason, for users.
    pub fn read(text: &str) -> Result<Self, &'static str> {
        // A sixth field would be a time zone, of which an image has no table.
        let is_five = text.split_ascii_whitespace().count() == 5;
        let is_text = text.len() <= LONGEST && text.is_ascii() && is_five;
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::UTC;
        let read = is_text.then(|| cronexpr::parse_crontab_with(text, options).ok());
        let schedule = Self(read.flatten().ok_or(
            "it is not a schedule of five fields (minute, hour, day of the month, month, day of the week), such as \"0 2 * * *\"",
        )?);
        // Also without a year such as 2100, which has no 29 February.
        match schedule.next(Timestamp::UNIX_EPOCH) {
            Some(_) => Ok(schedule),
            None => Err("no day is in this schedule"),
        }
    }

    /// The first time after a moment.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        let next = self.0.find_next(MakeTimestamp(after)).ok()?;
        Some(next.timestamp())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::proptest;

    use super::Schedule;

    fn read(text: &str) -> Schedule {
        Schedule::read(text).unwrap()
    }

    #[test]
    fn times_are_those_of_cron_in_utc() {
        for (schedule, moment, next) in [
            ("0 2 * * *", "2026-11-30T01:59:59Z", "2026-11-30T02:00:00Z"),
            ("0 2 * * *", "2026-11-30T02:00:00Z", "2026-12-01T02:00:00Z"),
            (
                "*/15 * * * *",
                "2026-11-30T02:07:00Z",
                "2026-11-30T02:15:00Z",
            ),
            ("30 3 1 * *", "2026-11-30T00:00:00Z", "2026-12-01T03:30:00Z"),
            (
                "0 0 * * SUN",
                "2026-11-30T00:00:00Z",
                "2026-12-06T00:00:00Z",
            ),
            ("0 0 * * 7", "2026-11-30T00:00:00Z", "2026-12-06T00:00:00Z"),
            ("0 0 29 2 *", "2026-11-30T00:00:00Z", "2028-02-29T00:00:00Z"),
            // A day of the month or a day of the week, as in cron(5).
            ("0 0 13 * 5", "2026-11-30T00:00:00Z", "2026-12-04T00:00:00Z"),
        ] {
            let moment = moment.parse().unwrap();
            let found = read(schedule);
            assert_eq!(found.next(moment), next.parse().ok(), "after, {schedule}");
        }
    }

    #[test]
    fn what_is_no_schedule_is_refused() {
        let long = format!("0 {} * * *", "1,".repeat(100));
        for text in [
            "",
            "daily",
            "2 * * *",
            "60 2 * * *",
            "0 24 * * *",
            "0 2 * * * *",
            "0 2 * * * Asia/Shanghai",
            "H 2 * * *",
            "@daily",
            "0 2 0 * *",
            "0 2 * * *\n* * * * *",
            "ä 2 * * *",
            &long,
        ] {
            let why = Schedule::read(text).err();
            assert!(
                why.is_some_and(|it| it.contains("five fields")),
                "{text}: {why:?}"
            );
        }
        for text in ["0 0 30 2 *", "0 0 31 4,6 *"] {
            assert_eq!(
                Schedule::read(text).err(),
                Some("no day is in this schedule"),
                "{text}"
            );
        }
    }

    proptest! {
        #[test]
        fn whatever_is_read_has_times_in_order(text in "[0-9*/,@#LW? SUNa-]{0,24}", second in 0..4_000_000_000_i64) {
            if let Ok(schedule) = Schedule::read(&text) {
                let moment = jiff::Timestamp::from_second(second).unwrap();
                let next = schedule.next(moment);
                assert!(next.is_none_or(|it| it > moment), "{text}: {next:?}");
            }
        }
    }
}
