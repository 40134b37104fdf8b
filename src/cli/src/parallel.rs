//! Work on all processors.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The results of `work` for each item, in their order.
pub fn map<'a, T: Sync, R: Send>(items: &'a [T], work: impl Fn(&'a T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else {
                return done;
            };
            done.push((index, work(item)));
        }
    };
    let processors = thread::available_parallelism().map_or(1, usize::from);
    let mut done: Vec<(usize, R)> = thread::scope(|scope| {
        let threads = (0..processors.min(items.len())).map(|_| scope.spawn(work));
        let threads: Vec<_> = threads.collect();
        let done = threads.into_iter().map(|thread| thread.join());
        done.flat_map(|own| own.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..1000).collect();
        let doubled = super::map(&items, |item| {
            std::thread::yield_now();
            2 * item
        });
        assert_eq!(
            doubled,
            items.iter().map(|item| 2 * item).collect::<Vec<_>>()
        );
        assert!(super::map(&[] as &[u32], |item| *item).is_empty());
    }
}
