//! Concurrent plays of a script: each waits for processes most of the time.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::bail;

/// Number of concurrent plays.
const AT_ONCE: usize = 4;

/// Plays the numbers below `count`, and returns the results in their order.
///
/// # Errors
///
/// First failed play; plays already begun are finished.
pub(crate) fn all<T: Send>(
    count: usize,
    play: impl AsyncFn(usize) -> anyhow::Result<T> + Sync,
) -> anyhow::Result<Vec<T>> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            if index >= count {
                return Ok(());
            }
            let played = runtime.block_on(play(index))?;
            let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
            done.push((index, played));
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(work)).collect();
        let mut ended = threads.into_iter().map(|it| match it.join() {
            Ok(outcome) => outcome,
            Err(_) => bail!("a play panicked"),
        });
        ended.try_for_each(|outcome| outcome)
    })?;
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, played)| played).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_played_and_stand_in_their_order() {
        let played = all(9, async |index| {
            tokio::task::yield_now().await;
            Ok(index * index)
        });
        assert_eq!(played.unwrap(), [0, 1, 4, 9, 16, 25, 36, 49, 64]);
        assert_eq!(
            all(0, async |index| Ok(index)).unwrap(),
            Vec::<usize>::new()
        );
    }

    #[test]
    fn a_play_that_fails_and_one_that_panics_are_errors() {
        let failed = all(5, async |index| match index {
            3 => bail!("the third"),
            _ => Ok(()),
        });
        assert_eq!(failed.unwrap_err().to_string(), "the third");
        let panicked = all(5, async |index| {
            assert_ne!(index, 3, "this panic is caught");
            Ok(())
        });
        assert_eq!(panicked.unwrap_err().to_string(), "a play panicked");
    }
}
