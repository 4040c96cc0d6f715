//! Equal values, stored once.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash, RandomState};
use std::sync::{Arc, Weak};

/// Minimum number of values for a search for unused ones.
const FEW: usize = 64;

/// Values in use.
pub(super) struct Shared<T> {
    by_hash: HashMap<u64, Weak<T>>,
    hasher: RandomState,
    /// Number of values at which unused ones are removed.
    many: usize,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self {
            by_hash: HashMap::new(),
            hasher: RandomState::new(),
            many: FEW,
        }
    }
}

impl<T: Eq + Hash> Shared<T> {
    /// Stored value equal to `value`, or else `value` itself.
    pub(super) fn of(&mut self, value: T) -> Arc<T> {
        let hash = self.hasher.hash_one(&value);
        let known = self.by_hash.get(&hash).and_then(Weak::upgrade);
        // Of two values with one hash, the later one is shared from now on.
        if let Some(known) = known.filter(|it| **it == value) {
            return known;
        }
        if self.by_hash.len() >= self.many {
            self.by_hash.retain(|_, it| it.strong_count() > 0);
            self.many = FEW.max(2 * self.by_hash.len());
        }
        let value = Arc::new(value);
        self.by_hash.insert(hash, Arc::downgrade(&value));
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_one_and_those_that_nobody_has_go() {
        let mut shared = Shared::default();
        let kept: Vec<Arc<usize>> = (0..100).map(|it| shared.of(it)).collect();
        for (number, value) in kept.iter().enumerate() {
            assert!(Arc::ptr_eq(&shared.of(number), value));
        }
        for number in 1000..10_000 {
            assert_eq!(*shared.of(number), number);
        }
        assert!(shared.by_hash.len() <= 200, "{}", shared.by_hash.len());
        drop(kept);
        assert_eq!(*shared.of(1), 1);
    }
}
