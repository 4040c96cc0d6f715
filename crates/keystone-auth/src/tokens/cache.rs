//! Values until a point in time, of a limited number and size.

use std::collections::{HashMap, VecDeque};

use tokio::time::Instant;

use super::Key;

/// Values by the hashes of tokens. When there is no room, the oldest one goes.
pub(super) struct Cache<T> {
    entries: usize,
    bytes: usize,
    by_key: HashMap<Key, Entry<T>>,
    /// The keys in the order of their entries, with those of entries that are gone.
    order: VecDeque<(Key, u64)>,
    size: usize,
    next: u64,
}

struct Entry<T> {
    value: T,
    size: usize,
    until: Instant,
    number: u64,
}

impl<T: Clone> Cache<T> {
    pub(super) fn new(entries: usize, bytes: usize) -> Self {
        Self {
            entries,
            bytes,
            by_key: HashMap::new(),
            order: VecDeque::new(),
            size: 0,
            next: 0,
        }
    }

    pub(super) fn get(&mut self, key: &Key, now: Instant) -> Option<T> {
        let entry = self.by_key.get(key)?;
        if now < entry.until {
            return Some(entry.value.clone());
        }
        self.remove(key);
        None
    }

    /// Keeps a value. One whose time is over, or for which there is no room at all, is not kept.
    pub(super) fn put(&mut self, key: Key, value: T, size: usize, until: Instant, now: Instant) {
        self.remove(&key);
        if until <= now || size > self.bytes || self.entries == 0 {
            return;
        }
        while self.by_key.len() >= self.entries
            || self.size + size > self.bytes
            || self.is_stale(now)
        {
            let Some((oldest, number)) = self.order.pop_front() else {
                break;
            };
            if self
                .by_key
                .get(&oldest)
                .is_some_and(|it| it.number == number)
            {
                self.remove(&oldest);
            }
        }
        self.next += 1;
        let number = self.next;
        self.order.push_back((key, number));
        self.size += size;
        self.by_key.insert(
            key,
            Entry {
                value,
                size,
                until,
                number,
            },
        );
    }

    /// Whether the first of the order is of no use any more.
    fn is_stale(&self, now: Instant) -> bool {
        self.order.front().is_some_and(|(key, number)| {
            let entry = self.by_key.get(key);
            let entry = entry.filter(|it| it.number == *number);
            entry.is_none_or(|it| it.until <= now)
        })
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.by_key.remove(key) {
            self.size -= entry.size;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn key(number: u8) -> Key {
        [number; 32]
    }

    #[tokio::test(start_paused = true)]
    async fn number_and_size_are_limited_and_the_oldest_goes() {
        let now = Instant::now();
        let later = now + Duration::from_secs(10);
        let mut cache = Cache::new(3, 100);
        for number in 0..5 {
            cache.put(key(number), number, 10, later, now);
        }
        let kept = |cache: &mut Cache<u8>| {
            (0..5)
                .filter(|it| cache.get(&key(*it), now).is_some())
                .collect::<Vec<_>>()
        };
        assert_eq!(kept(&mut cache), [2, 3, 4]);
        cache.put(key(0), 0, 85, later, now);
        assert_eq!(kept(&mut cache), [0, 4]);
        cache.put(key(1), 1, 101, later, now);
        assert_eq!(kept(&mut cache), [0, 4]);
        // A value that is replaced counts once.
        for _ in 0..100 {
            cache.put(key(2), 2, 5, later, now);
        }
        assert_eq!(kept(&mut cache), [0, 2, 4]);
        assert_eq!((cache.size, cache.by_key.len()), (100, 3));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_over_goes_and_leaves_nothing_behind() {
        let now = Instant::now();
        let mut cache = Cache::new(1000, 100_000);
        for number in 0..200 {
            let at = now + Duration::from_secs(u64::from(number));
            cache.put(key(number), number, 10, at + Duration::from_secs(1), at);
        }
        assert!(
            cache.by_key.len() <= 2 && cache.order.len() <= 2,
            "{}",
            cache.order.len()
        );
        let at = now + Duration::from_secs(200);
        assert_eq!(cache.get(&key(199), at), None);
        assert_eq!(cache.size, 0);
        cache.put(key(1), 1, 10, at, at);
        assert_eq!(cache.get(&key(1), at), None);
    }
}
