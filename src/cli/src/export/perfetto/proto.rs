//! The messages and fields of trace_packet.proto that are used here.

use crate::export::messages::messages;

messages! {
    TracePacket {
        clock_snapshot: Option<ClockSnapshot> = 6 (message, optional);
        timestamp: Option<u64> = 8 (uint64, optional);
        trusted_packet_sequence_id: u32 = 10 (uint32);
        track_event: Option<TrackEvent> = 11 (message, optional);
        interned_data: Option<InternedData> = 12 (message, optional);
        sequence_flags: u32 = 13 (uint32);
        track_descriptor: Option<TrackDescriptor> = 60 (message, optional);
    }

    ClockSnapshot {
        clocks: Vec<Clock> = 1 (message, repeated);
        primary_trace_clock: u32 = 2 (uint32);
    }

    Clock {
        clock_id: u32 = 1 (uint32);
        timestamp: u64 = 2 (uint64);
    }

    InternedData {
        event_categories: Vec<Name> = 1 (message, repeated);
        event_names: Vec<Name> = 2 (message, repeated);
        debug_annotation_names: Vec<Name> = 3 (message, repeated);
        // `InternedString` has the same fields as a name.
        debug_annotation_string_values: Vec<Name> = 29 (message, repeated);
    }

    Name {
        iid: u64 = 1 (uint64);
        name: String = 2 (string);
    }

    TrackEvent {
        category_iids: Vec<u64> = 3 (uint64, repeated, packed = "false");
        debug_annotations: Vec<DebugAnnotation> = 4 (message, repeated);
        r#type: u32 = 9 (uint32);
        name_iid: Option<u64> = 10 (uint64, optional);
        track_uuid: u64 = 11 (uint64);
        counter_value: Option<i64> = 30 (int64, optional);
        flow_ids: Vec<u64> = 47 (fixed64, repeated, packed = "false");
    }

    DebugAnnotation {
        name_iid: u64 = 1 (uint64);
        bool_value: Option<bool> = 2 (bool, optional);
        uint_value: Option<u64> = 3 (uint64, optional);
        int_value: Option<i64> = 4 (int64, optional);
        double_value: Option<f64> = 5 (double, optional);
        string_value: Option<String> = 6 (string, optional);
        string_value_iid: Option<u64> = 17 (uint64, optional);
    }

    TrackDescriptor {
        uuid: u64 = 1 (uint64);
        name: Option<String> = 2 (string, optional);
        process: Option<ProcessDescriptor> = 3 (message, optional);
        thread: Option<ThreadDescriptor> = 4 (message, optional);
        parent_uuid: Option<u64> = 5 (uint64, optional);
        counter: Option<CounterDescriptor> = 8 (message, optional);
    }

    CounterDescriptor {
        unit: u32 = 3 (uint32);
    }

    ProcessDescriptor {
        pid: i32 = 1 (int32);
        cmdline: Vec<String> = 2 (string, repeated);
        process_name: Option<String> = 6 (string, optional);
    }

    ThreadDescriptor {
        pid: i32 = 1 (int32);
        tid: i32 = 2 (int32);
        thread_name: Option<String> = 5 (string, optional);
    }
}
