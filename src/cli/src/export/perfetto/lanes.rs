//! Tracks for slices that can overlap. The slices on one track must nest, because the importer ends the innermost one
//! first. So slices that overlap are put on sibling tracks of the same name, which the UI shows as one.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// Identifies a group of sibling tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    Queue {
        agent: u32,
        queue: u32,
    },
    Stream {
        agent: u32,
        stream: u32,
    },
    /// Copies by a GPU, or between hosts.
    Copies {
        gpu: Option<u32>,
        direction: u32,
    },
    ProcessRanges,
}

/// The tracks of all groups.
#[derive(Default)]
pub struct Lanes {
    /// The end of each track's last slice and the track's number, earliest end first.
    tracks: HashMap<Group, BinaryHeap<Reverse<(u64, u64)>>>,
    /// The number of all tracks.
    count: u64,
}

impl Lanes {
    /// The number of a track of the group that has no slice after `start`, for a slice that ends at `end`, and whether
    /// the track is new. Numbers are unique among all groups.
    pub fn take(&mut self, group: Group, start: u64, end: u64) -> (u64, bool) {
        let tracks = self.tracks.entry(group).or_default();
        if let Some(mut first) = tracks.peek_mut()
            && first.0.0 <= start
        {
            first.0.0 = end;
            return (first.0.1, false);
        }
        let number = self.count;
        self.count += 1;
        tracks.push(Reverse((end, number)));
        (number, true)
    }
}
