//! Records markers, ranges and names.

use super::entries;
use super::ranges::{Action, Named, Ranges};
use crate::gpu::traced::AgentKey;
use crate::trace::recorder::{Recorder, clock};
use crate::trace::session::{Progress, Source};
use crate::trace::{calls, devices};
use tracefile::format::{self, Count, Record, named};

#[derive(Default)]
pub struct Markers {
    ranges: Ranges,
}

impl Source for Markers {
    /// Records marks, ranges that have ended, and names.
    fn poll(&mut self, to: &mut Recorder) -> Progress {
        let ranges = &mut self.ranges;
        let dropped = entries::collect(|thread, entry| match entry {
            Some(mut entry) => {
                if entry.is_early && !clock::early_is_valid() {
                    entry.time = calls::started();
                }
                ranges.take(thread, entry, to);
            }
            None => ranges.end_thread(thread, clock::now(), to),
        });
        ranges.end_round();
        to.file.add_to_counter(Count::DroppedMarkers, dropped);
        for name in std::mem::take(&mut ranges.names) {
            record_name(&name, to);
        }
        Progress {
            recorded: std::mem::take(&mut ranges.processed),
            ..Progress::default()
        }
    }

    /// Records the ranges that have not ended.
    fn end(&mut self, to: &mut Recorder) {
        self.poll(to);
        let now = clock::now();
        let ranges = &mut self.ranges;
        entries::QUEUES.each(|thread| ranges.end_thread(thread, now, to));
        ranges.end_process(now, to);
    }

    fn has_work(&self) -> bool {
        entries::QUEUES.has_entries()
    }
}

/// Records a name. A name of a GPU that does not exist is ignored.
fn record_name(name: &Named, to: &mut Recorder) {
    let (what, id) = match name.action {
        Action::NameAgent => {
            let agent = AgentKey::Hsa(name.value);
            (named::AGENT, devices::hsa_index(agent, to))
        }
        Action::NameDevice => {
            let agent = to.runtimes.hsa.numbered(name.value);
            let index = agent.and_then(|agent| devices::hsa_index(agent, to));
            (named::AGENT, index)
        }
        Action::NameCudaDevice => {
            let agent = to.runtimes.cuda.numbered(name.value);
            (named::AGENT, agent.map(|agent| devices::index(agent, to)))
        }
        Action::NameStream => {
            let id = name.value as u32;
            to.add_streams_up_to(id);
            (named::STREAM, Some(id))
        }
        _ if name.value != 0 => (named::THREAD, Some(name.value as u32)),
        _ => (named::THREAD, Some(name.thread)),
    };
    let Some(id) = id else { return };
    let mut record = format::Name::new(id.into(), 0);
    record.what = what.into();
    record.text = name.text.into();
    to.file.append(record, Count::DroppedMarkers);
}
