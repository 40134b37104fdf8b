//! Writes the records of markers, ranges and names.

use super::agents::Agents;
use super::file::TraceFile;
use super::marker_ranges::{Action, Named, Ranges};
use super::stream_records::StreamRecords;
use super::{calls, clock, markers};
use crate::amd::gpus;
use hsa_abi::AgentHandle;
use tracefile::format::{self, Count, Record, named};

#[derive(Default)]
pub struct MarkerRecords {
    ranges: Ranges,
}

impl MarkerRecords {
    /// Records marks, ranges that have ended, and names. Returns the number of processed entries.
    pub fn record(
        &mut self,
        streams: &mut StreamRecords,
        agents: &mut Agents,
        file: &mut TraceFile,
    ) -> usize {
        let ranges = &mut self.ranges;
        let dropped = markers::collect(|thread, entry| match entry {
            Some(mut entry) => {
                if entry.is_early && !clock::early_is_valid() {
                    entry.time = calls::started();
                }
                ranges.take(thread, entry, file);
            }
            None => ranges.end_thread(thread, clock::now(), file),
        });
        ranges.end_round();
        if dropped > 0 {
            file.add_to_counter(Count::DroppedMarkers, dropped);
        }
        for name in std::mem::take(&mut ranges.names) {
            record_name(&name, streams, agents, file);
        }
        std::mem::take(&mut ranges.processed)
    }

    /// The trace is about to end: records the ranges that have not ended.
    pub fn end(&mut self, streams: &mut StreamRecords, agents: &mut Agents, file: &mut TraceFile) {
        self.record(streams, agents, file);
        let now = clock::now();
        let ranges = &mut self.ranges;
        markers::each_thread(|thread| ranges.end_thread(thread, now, file));
        ranges.end_process(now, file);
    }
}

/// Records a name. One of a GPU that does not exist is ignored.
fn record_name(
    name: &Named,
    streams: &mut StreamRecords,
    agents: &mut Agents,
    file: &mut TraceFile,
) {
    let (what, id) = match name.action {
        Action::NameAgent => (named::AGENT, gpus::index(AgentHandle(name.value))),
        Action::NameDevice => (named::AGENT, gpus::index_of_hip_device(name.value)),
        Action::NameCudaDevice => {
            let agent = agents.find_cuda(name.value as u32, file);
            (named::AGENT, Some(agents.get(agent).index))
        }
        Action::NameStream => {
            let id = name.value as u32;
            streams.write_up_to(id, file);
            (named::STREAM, Some(id))
        }
        _ if name.value != 0 => (named::THREAD, Some(name.value as u32)),
        _ => (named::THREAD, Some(name.thread)),
    };
    let Some(id) = id else { return };
    let mut record = format::Name::new(id.into(), 0);
    record.what = what.into();
    record.text = name.text.into();
    file.append(record, Count::DroppedMarkers);
}
