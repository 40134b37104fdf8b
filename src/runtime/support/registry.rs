//! A hash map that is read without a lock, for the launch path. Its buckets are linked lists that only grow, because a
//! thread may read them at any time. The entries of removed values are reused.

use super::sync::lock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

const BUCKETS: usize = 256;

/// The rest of a list. Once set, it does not change.
type Link<T> = OnceLock<&'static Entry<T>>;

pub struct Registry<T: 'static> {
    buckets: [Link<T>; BUCKETS],
    /// Held while the lists change.
    change: Mutex<()>,
}

pub struct Entry<T: 'static> {
    /// 0: free.
    key: AtomicU64,
    pub value: T,
    next: Link<T>,
}

impl<T: 'static> Entry<T> {
    /// The entry's key; 0 if it was removed.
    pub fn key(&self) -> u64 {
        self.key.load(Ordering::Acquire)
    }
}

impl<T: 'static> Registry<T> {
    pub const fn new() -> Registry<T> {
        Registry {
            buckets: [const { OnceLock::new() }; BUCKETS],
            change: Mutex::new(()),
        }
    }

    /// Adds a value for `key`, which must not be 0. Reuses the first free entry for which `reuse` resets the value and
    /// returns true; otherwise adds an entry with the value that `create` returns.
    pub fn add(
        &'static self,
        key: u64,
        reuse: impl Fn(&T) -> bool,
        create: impl FnOnce() -> T,
    ) -> &'static T {
        let _change = lock(&self.change);
        let bucket = self.bucket(key);
        if let Some(entry) = entries(bucket).find(|entry| entry.key() == 0 && reuse(&entry.value)) {
            entry.key.store(key, Ordering::Release);
            return &entry.value;
        }
        let entry: &'static Entry<T> = Box::leak(Box::new(Entry {
            key: AtomicU64::new(key),
            value: create(),
            next: OnceLock::new(),
        }));
        let end = entries(bucket).last().map_or(bucket, |last| &last.next);
        // Not set yet: the lock is held.
        &end.get_or_init(|| entry).value
    }

    /// Calls `release` with the value for `key`, and then removes it.
    pub fn remove(&'static self, key: u64, release: impl FnOnce(&T)) {
        let _change = lock(&self.change);
        if let Some(entry) = self.find(key) {
            release(&entry.value);
            entry.key.store(0, Ordering::Release);
        }
    }

    /// Calls `release` with each value, and then removes it.
    pub fn clear(&'static self, release: impl Fn(&T)) {
        let (_change, entries) = self.all();
        for entry in entries.filter(|entry| entry.key() != 0) {
            release(&entry.value);
            entry.key.store(0, Ordering::Release);
        }
    }

    #[inline]
    pub fn find(&'static self, key: u64) -> Option<&'static Entry<T>> {
        entries(self.bucket(key)).find(|entry| entry.key() == key)
    }

    /// All entries, including free ones. While the guard is held, none is added or removed.
    pub fn all(
        &'static self,
    ) -> (
        MutexGuard<'static, ()>,
        impl Iterator<Item = &'static Entry<T>>,
    ) {
        (lock(&self.change), self.buckets.iter().flat_map(entries))
    }

    fn bucket(&'static self, key: u64) -> &'static Link<T> {
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &self.buckets[hash as usize % BUCKETS]
    }
}

fn entries<T>(bucket: &'static Link<T>) -> impl Iterator<Item = &'static Entry<T>> {
    std::iter::successors(bucket.get().copied(), |entry| entry.next.get().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_finds_its_value_until_it_is_removed() {
        static REGISTRY: Registry<u64> = Registry::new();
        // More than the buckets, so lists have several entries.
        for key in 1..=3 * BUCKETS as u64 {
            REGISTRY.add(key, |_| true, || key * 10);
        }
        let all = || REGISTRY.all().1.count();
        assert_eq!(all(), 3 * BUCKETS);
        let value = |key| REGISTRY.find(key).map(|entry| entry.value);
        assert!((1..=3 * BUCKETS as u64).all(|key| value(key) == Some(key * 10)));
        assert_eq!(value(3 * BUCKETS as u64 + 1), None);

        let mut removed = 0;
        REGISTRY.remove(7, |&value| removed = value);
        assert_eq!((removed, value(7)), (70, None));
        // `reuse` rejects the free entry.
        REGISTRY.add(7, |_| false, || 71);
        assert_eq!((value(7), all()), (Some(71), 3 * BUCKETS + 1));
        REGISTRY.remove(7, |_| ());
        REGISTRY.add(7, |&value| value == 70, || 72);
        assert_eq!((value(7), all()), (Some(70), 3 * BUCKETS + 1));
        REGISTRY.clear(|_| ());
        assert!((1..=3 * BUCKETS as u64).all(|key| value(key).is_none()));
    }
}
