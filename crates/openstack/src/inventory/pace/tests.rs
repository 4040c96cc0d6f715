use std::time::Duration;

use tokio::time::Instant;

use super::super::kind::Tempo;
use super::{Intervals, Pace};
use crate::{Error, ErrorKind};

const MS: Duration = Duration::from_millis(1);

/// The pace of a kind that was requested and listed at `now`.
fn read(now: Instant, took: Duration) -> Pace {
    let pace = Pace::default();
    pace.asked(now);
    pace.begin(now);
    pace.done(now, took, false);
    pace.hurry(now);
    pace
}

fn wait(pace: &Pace, now: Instant, tempo: Tempo, pending: bool) -> Option<Duration> {
    pace.due(now, tempo, pending, &Intervals::default())
        .map(|due| due - now)
}

#[test]
fn a_kind_is_due_once_somebody_asked_and_until_it_is_forgotten() {
    let now = Instant::now();
    let pace = Pace::default();
    assert_eq!(wait(&pace, now, Tempo::Lively, false), None);
    assert!(pace.asked(now));
    assert!(!pace.asked(now), "not news any more");
    assert_eq!(wait(&pace, now, Tempo::Lively, false), Some(Duration::ZERO));
    assert_eq!(
        wait(&pace, now + Duration::from_secs(3600), Tempo::Lively, false),
        None
    );
}

#[test]
fn idle_kinds_are_read_seldom_and_the_catalog_never() {
    let now = Instant::now();
    let pace = read(now, MS);
    assert_eq!(wait(&pace, now, Tempo::Lively, false), Some(60_000 * MS));
    assert_eq!(wait(&pace, now, Tempo::Calm, false), Some(300_000 * MS));
    assert_eq!(wait(&pace, now, Tempo::Slow, true), None);
}

#[test]
fn the_first_interval_follows_the_cloud_s_own_speed() {
    let now = Instant::now();
    let cases = [
        (0, 50),
        (1, 50),
        (20, 200),
        (80, 500),
        (125, 500),
        (400, 1600),
        (5000, 5000),
    ];
    for (took, interval) in cases {
        let pace = read(now, took * MS);
        assert_eq!(
            wait(&pace, now, Tempo::Lively, true),
            Some(interval * MS),
            "{took} ms"
        );
    }
}

#[test]
fn lists_of_many_objects_take_no_more_than_their_share_of_the_time() {
    let now = Instant::now();
    for (share, interval) in [(1, 500), (2, 800), (4, 1600)] {
        let intervals = Intervals {
            share,
            ..Intervals::default()
        };
        let pace = read(now, 400 * MS);
        let due = pace.due(now, Tempo::Lively, true, &intervals).unwrap();
        assert_eq!(due - now, interval * MS, "one part in {share}");
    }
}

#[test]
fn a_list_leaves_some_time_after_the_one_before() {
    let now = Instant::now();
    for (took, next) in [(0, 0), (10, 30), (500, 1500), (5000, 6000)] {
        let pace = read(now, took * MS);
        assert_eq!(pace.rest(now), next * MS, "{took} ms");
        assert_eq!(pace.rest(now + next * MS), Duration::ZERO, "{took} ms");
    }
    assert_eq!(Pace::default().rest(now), Duration::ZERO, "the first one");
}

#[test]
fn intervals_grow_while_nothing_changes_and_begin_anew_when_something_does() {
    let now = Instant::now();
    let pace = read(now, MS);
    let mut last = Duration::ZERO;
    for list in 0..200 {
        let next = wait(&pace, now, Tempo::Lively, true).unwrap();
        assert!(next >= last, "{list}");
        let most = if list < 60 { 5_000 } else { 60_000 };
        assert!(next <= most * MS, "{list}: {next:?}");
        last = next;
        pace.done(now, MS, false);
    }
    assert_eq!(last, 60_000 * MS);
    pace.done(now, MS, true);
    assert_eq!(wait(&pace, now, Tempo::Lively, true), Some(50 * MS));
}

#[test]
fn the_first_list_after_a_write_leaves_the_cloud_some_time_but_no_more() {
    let now = Instant::now();
    let pace = Pace::default();
    pace.asked(now);
    pace.begin(now);
    pace.done(now, MS, false);
    let write = now + 10_000 * MS;
    pace.hurry(write);
    assert_eq!(wait(&pace, write, Tempo::Lively, true), Some(50 * MS));
    // Further writes do not postpone it.
    pace.hurry(write + 40 * MS);
    assert_eq!(wait(&pace, write, Tempo::Lively, true), Some(50 * MS));
    // A write does not postpone a list that is due.
    let write = now + 59_990 * MS;
    let pace = read(now, MS);
    pace.begin(now);
    pace.hurry(write);
    assert_eq!(wait(&pace, write, Tempo::Lively, true), Some(10 * MS));
}

#[test]
fn a_watched_object_counts_as_pending_until_it_changes_or_time_is_up() {
    let now = Instant::now();
    let pace = read(now, MS);
    pace.watch("a", now);
    assert_eq!(wait(&pace, now, Tempo::Calm, false), Some(50 * MS));
    pace.unwatch("a");
    assert_eq!(wait(&pace, now, Tempo::Calm, false), Some(300_000 * MS));
    pace.watch("a", now);
    let later = now + Duration::from_secs(601);
    assert!(
        pace.due(later, Tempo::Calm, false, &Intervals::default())
            .unwrap()
            < later
    );
    assert_eq!(wait(&pace, now, Tempo::Calm, false), Some(300_000 * MS));
}

#[test]
fn failures_slow_the_reader_down_and_a_wanted_wait_is_kept() {
    let now = Instant::now();
    let pace = read(now, MS);
    let broken = |retry_after| Error::new(ErrorKind::Transient { retry_after }, "broken");
    pace.failed(&broken(None));
    assert_eq!(wait(&pace, now, Tempo::Lively, true), Some(1_000 * MS));
    pace.failed(&broken(None));
    assert_eq!(wait(&pace, now, Tempo::Lively, true), Some(2_000 * MS));
    pace.failed(&broken(Some(90_000 * MS)));
    assert_eq!(wait(&pace, now, Tempo::Lively, true), Some(90_000 * MS));
    for _ in 0..100 {
        pace.failed(&broken(None));
    }
    assert_eq!(wait(&pace, now, Tempo::Lively, true), Some(60_000 * MS));
}

#[test]
fn a_list_that_began_before_the_kind_went_stale_does_not_count() {
    let now = Instant::now();
    let pace = read(now, MS);
    assert!(pace.is_read_since(None) && pace.is_read_since(Some(now)));
    pace.stale(now + 2 * MS);
    assert!(!pace.is_read_since(None));
    pace.done(now + MS, MS, false);
    assert!(!pace.is_read_since(None), "began before");
    pace.begin(now + 2 * MS);
    pace.done(now + 2 * MS, MS, false);
    assert!(pace.is_read_since(None));
}

#[test]
fn a_list_that_began_at_the_instant_of_a_write_does_not_count() {
    let now = Instant::now();
    let pace = read(now, MS);
    pace.begin(now + MS);
    pace.stale(now + MS);
    pace.done(now + MS, MS, false);
    assert!(!pace.is_read_since(None));
    pace.begin(now + MS);
    pace.done(now + MS, MS, false);
    assert!(pace.is_read_since(None));
}

/// The number of lists in ten minutes that begin `after` the last change.
fn lists_in_ten_minutes(tempo: Tempo, after: Duration) -> usize {
    let start = Instant::now();
    let pace = read(start, MS);
    pace.done(start, MS, true);
    let (from, until) = (start + after, start + after + Duration::from_secs(600));
    let mut now = start;
    let mut lists = 0;
    while let Some(due) = pace.due(now, tempo, false, &Intervals::default()) {
        if due >= until {
            break;
        }
        now = due;
        pace.begin(now);
        pace.done(now, MS, false);
        lists += usize::from(now >= from);
    }
    lists
}

#[test]
fn lists_become_rarer_the_longer_nothing_changes_down_to_one_in_five_minutes() {
    let at_rest = Duration::from_secs(1800);
    assert_eq!(lists_in_ten_minutes(Tempo::Lively, Duration::ZERO), 3);
    assert_eq!(lists_in_ten_minutes(Tempo::Lively, at_rest), 2);
    assert_eq!(lists_in_ten_minutes(Tempo::Calm, Duration::ZERO), 1);
    assert_eq!(lists_in_ten_minutes(Tempo::Calm, at_rest), 1);
    let now = Instant::now();
    let pace = read(now, MS);
    for _ in 0..100 {
        pace.done(now, MS, false);
    }
    assert_eq!(wait(&pace, now, Tempo::Lively, false), Some(300_000 * MS));
    pace.done(now, MS, true);
    assert_eq!(wait(&pace, now, Tempo::Lively, false), Some(60_000 * MS));
}
