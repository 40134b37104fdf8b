//! Records the API calls that have returned.

use super::in_progress::QUEUES;
use crate::trace::recorder::Recorder;
use crate::trace::session::{Progress, Source};
use tracefile::format::{Call, Count, Record};

pub struct Calls;

impl Source for Calls {
    fn poll(&mut self, to: &mut Recorder) -> Progress {
        let mut recorded = 0;
        let dropped = QUEUES.collect(|(), call| {
            let Some(call) = call else { return };
            let mut record = Call::new(call.id, 0);
            record.start = call.start.into();
            record.end = call.end.into();
            record.thread = call.thread.into();
            record.status = call.status.into();
            record.stream = call.stream.into();
            to.add_call(record, call.function);
            recorded += 1;
        });
        to.file.add_to_counter(Count::DroppedCalls, dropped);
        Progress {
            recorded,
            ..Progress::default()
        }
    }

    fn has_work(&self) -> bool {
        QUEUES.has_entries()
    }
}
