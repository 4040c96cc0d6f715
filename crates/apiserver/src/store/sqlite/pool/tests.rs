use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::{POOL, THREADS, run, run_after};

#[test]
fn work_that_blocks_does_not_keep_other_work_from_being_done() {
    let (release, blocked) = mpsc::channel::<()>();
    run(move || assert!(blocked.recv().is_err()));
    let (done, finished) = mpsc::channel();
    for n in 0..100 {
        let done = done.clone();
        run(move || done.send(n).unwrap());
    }
    let mut seen: Vec<i32> = finished.iter().take(100).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..100).collect::<Vec<_>>());
    drop(release);
}

#[test]
fn a_panic_ends_neither_the_thread_nor_other_work() {
    for _ in 0..2 * THREADS {
        run(|| std::panic::resume_unwind(Box::new("wrong")));
    }
    let (done, finished) = mpsc::channel();
    run(move || done.send(()).unwrap());
    finished.recv_timeout(Duration::from_secs(10)).unwrap();
    assert!(POOL.state.lock().threads <= THREADS);
}

#[test]
fn work_for_later_is_done_in_the_order_of_its_time_and_not_before() {
    let started = Instant::now();
    let (done, finished) = mpsc::channel();
    for pause in [300, 100] {
        let done = done.clone();
        run_after(Duration::from_millis(pause), move || {
            done.send((pause, started.elapsed())).unwrap();
        });
    }
    let seen: Vec<_> = finished.iter().take(2).collect();
    assert_eq!((seen[0].0, seen[1].0), (100, 300));
    for (pause, after) in seen {
        assert!(after >= Duration::from_millis(pause), "{after:?}");
    }
}
