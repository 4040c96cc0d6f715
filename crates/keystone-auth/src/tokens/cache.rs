//! Cache of values with an expiry, of a limited number and size.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};

use hashbrown::HashTable;
use tokio::time::Instant;

use super::Key;

/// Values by the hashes of tokens. Without room, the oldest one goes.
pub(super) struct Cache<T> {
    entries: usize,
    bytes: usize,
    /// Entries in order, and gaps of removed entries. Each has a number, one more than the number of the one before.
    slots: VecDeque<Slot<T>>,
    /// Number of the first slot.
    first: u64,
    /// Numbers of the entries by their keys. Only the slots store keys.
    by_key: HashTable<u64>,
    hasher: RandomState,
    size: usize,
    /// Origin of [`Slot::until`].
    start: Instant,
}

struct Slot<T> {
    key: Key,
    /// `None` for a removed entry.
    value: Option<T>,
    /// Expiry, in tenths of a second.
    until: u32,
    size: u32,
}

impl<T> Cache<T> {
    /// Size in bytes of an entry besides its value: the slot, and a number and a byte of the table, which is at least
    /// half full.
    pub(super) const ENTRY: usize = size_of::<Slot<T>>() + 2 * (size_of::<u64>() + 1);
}

impl<T: Clone> Cache<T> {
    pub(super) fn new(entries: usize, bytes: usize) -> Self {
        Self {
            entries,
            bytes,
            slots: VecDeque::new(),
            first: 0,
            by_key: HashTable::new(),
            hasher: RandomState::new(),
            size: 0,
            start: Instant::now(),
        }
    }

    /// Time in tenths of a second, rounded down, and at most thirteen years.
    fn tenths(&self, time: Instant) -> u32 {
        let since = time.saturating_duration_since(self.start);
        u32::try_from(since.as_millis() / 100).unwrap_or(u32::MAX)
    }

    pub(super) fn get(&mut self, key: &Key, now: Instant) -> Option<T> {
        let number = *self.by_key.find(self.hasher.hash_one(key), |number| {
            is_of(&self.slots, self.first, *number, key)
        })?;
        let slot = slot(&self.slots, self.first, number)?;
        if self.tenths(now) < slot.until {
            return slot.value.clone();
        }
        self.remove(key);
        None
    }

    /// Caches a value of `size` bytes. Expired values, and values larger than the cache, are dropped.
    pub(super) fn put(&mut self, key: Key, value: T, size: usize, until: Instant, now: Instant) {
        self.remove(&key);
        let counted = size.saturating_add(Self::ENTRY);
        let Ok(size) = u32::try_from(counted) else {
            return;
        };
        let (until, now) = (self.tenths(until), self.tenths(now));
        if until <= now || counted > self.bytes || self.entries == 0 {
            return;
        }
        while self.by_key.len() >= self.entries
            || self.size + counted > self.bytes
            || self.slots.front().is_some_and(|it| it.is_stale(now))
        {
            let Some(oldest) = self.slots.front().map(|it| it.key) else {
                break;
            };
            self.remove_number(&oldest, self.first);
            self.slots.pop_front();
            self.first += 1;
        }
        self.close_gaps();
        let number = self.first + self.slots.len() as u64;
        self.slots.push_back(Slot {
            key,
            value: Some(value),
            until,
            size,
        });
        self.size += counted;
        self.insert(&key, number);
    }

    fn insert(&mut self, key: &Key, number: u64) {
        let (slots, first, hasher) = (&self.slots, self.first, &self.hasher);
        let hash_of =
            |number: &u64| slot(slots, first, *number).map_or(0, |it| hasher.hash_one(it.key));
        self.by_key
            .insert_unique(hasher.hash_one(key), number, hash_of);
    }

    fn remove(&mut self, key: &Key) {
        let found = self.by_key.find(self.hasher.hash_one(key), |number| {
            is_of(&self.slots, self.first, *number, key)
        });
        if let Some(number) = found.copied() {
            self.remove_number(key, number);
        }
    }

    /// Removes the entry of a key, if the number matches.
    fn remove_number(&mut self, key: &Key, number: u64) {
        let hash = self.hasher.hash_one(key);
        if let Ok(entry) = self.by_key.find_entry(hash, |it| *it == number) {
            entry.remove();
        }
        let at = usize::try_from(number - self.first).unwrap_or(usize::MAX);
        if let Some(slot) = self.slots.get_mut(at)
            && slot.value.take().is_some()
        {
            self.size -= slot.size as usize;
        }
    }

    /// Limits gaps to the number of entries: behind an old entry, others may come and go.
    fn close_gaps(&mut self) {
        if self.slots.len() <= 2 * self.by_key.len() + 16 {
            return;
        }
        self.slots.retain(|slot| slot.value.is_some());
        self.by_key.clear();
        let keys: Vec<Key> = self.slots.iter().map(|it| it.key).collect();
        for (number, key) in (self.first..).zip(&keys) {
            self.insert(key, number);
        }
    }
}

impl<T> Slot<T> {
    /// True for an expired or removed entry.
    fn is_stale(&self, now: u32) -> bool {
        self.value.is_none() || self.until <= now
    }
}

fn slot<T>(slots: &VecDeque<Slot<T>>, first: u64, number: u64) -> Option<&Slot<T>> {
    slots.get(usize::try_from(number.checked_sub(first)?).ok()?)
}

fn is_of<T>(slots: &VecDeque<Slot<T>>, first: u64, number: u64, key: &Key) -> bool {
    slot(slots, first, number).is_some_and(|it| it.key == *key)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const ENTRY: usize = Cache::<u8>::ENTRY;

    fn key(number: u8) -> Key {
        [number; 32]
    }

    #[tokio::test(start_paused = true)]
    async fn number_and_size_are_limited_and_the_oldest_goes() {
        let now = Instant::now();
        let later = now + Duration::from_secs(10);
        let bytes = 3 * ENTRY + 100;
        let mut cache = Cache::new(3, bytes);
        for number in 0..5 {
            cache.put(key(number), number, 10, later, now);
        }
        let kept = |cache: &mut Cache<u8>| {
            (0..5)
                .filter(|it| cache.get(&key(*it), now).is_some())
                .collect::<Vec<_>>()
        };
        assert_eq!(kept(&mut cache), [2, 3, 4]);
        cache.put(key(0), 0, bytes - 2 * ENTRY - 15, later, now);
        assert_eq!(kept(&mut cache), [0, 4]);
        cache.put(key(1), 1, bytes - ENTRY + 1, later, now);
        cache.put(key(1), 1, usize::MAX, later, now);
        assert_eq!(kept(&mut cache), [0, 4]);
        cache.put(key(0), 0, 85, later, now);
        // A value that is replaced counts once, and leaves no more behind than there is.
        for _ in 0..100 {
            cache.put(key(2), 2, 5, later, now);
        }
        assert_eq!(kept(&mut cache), [0, 2, 4]);
        assert_eq!((cache.size, cache.by_key.len()), (bytes, 3));
        assert!(cache.slots.len() <= 25, "{}", cache.slots.len());
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
            cache.by_key.len() <= 2 && cache.slots.len() <= 2,
            "{}",
            cache.slots.len()
        );
        let at = now + Duration::from_secs(200);
        assert_eq!(cache.get(&key(199), at), None);
        assert_eq!(cache.size, 0);
        cache.put(key(1), 1, 10, at, at);
        assert_eq!(cache.get(&key(1), at), None);
    }

    proptest! {
        #[test]
        fn a_key_has_its_own_value_or_none(
            steps in prop::collection::vec((any::<bool>(), 0..20_u8, 0..10_u64, 0..3_u64), 0..300),
        ) {
            let mut now = Instant::now();
            let mut cache = Cache::new(8, 1 << 20);
            let mut put: BTreeMap<u8, (usize, Instant)> = BTreeMap::new();
            for (at, (is_put, number, lasts, passes)) in steps.into_iter().enumerate() {
                now += Duration::from_secs(passes);
                let until = now + Duration::from_secs(lasts);
                if is_put {
                    cache.put(key(number), at, 1, until, now);
                    put.insert(number, (at, until));
                    prop_assert_eq!(cache.get(&key(number), now), (lasts > 0).then_some(at));
                } else if let Some(found) = cache.get(&key(number), now) {
                    let (last, until) = put[&number];
                    prop_assert!(found == last && now < until);
                }
                let live = cache.slots.iter().filter(|it| it.value.is_some()).count();
                prop_assert_eq!(live, cache.by_key.len());
                prop_assert_eq!(cache.size, live * (Cache::<usize>::ENTRY + 1));
                prop_assert!(live <= 8 && cache.slots.len() <= 2 * live + 20);
            }
        }
    }
}
