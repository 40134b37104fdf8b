"""Reads a trace as Perfetto's importer does, with Perfetto's own classes, as far as devprof uses the format."""

import json
import sys
from collections import defaultdict

from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet
from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent


def check_fields(message):
    """Fails if the message has fields that its class does not have."""
    unknown = [field.field_number for field in UnknownFieldSet(message)]
    assert not unknown, f"{type(message).__name__} has no fields {unknown}"
    for _, value in message.ListFields():
        for one in value if hasattr(value, "__len__") else [value]:
            if isinstance(one, Message):
                check_fields(one)


def value(annotation):
    return getattr(annotation, annotation.WhichOneof("value"))


trace = Trace()
with open(sys.argv[1], "rb") as file:
    trace.ParseFromString(file.read())
# The interned names of each packet sequence, by field.
sequences = {}
tracks = {}
events = []
clocks = {}
for number, packet in enumerate(trace.packet):
    check_fields(packet)
    # The importer drops packets of a sequence that need interned names until a packet has this flag.
    cleared = packet.SEQ_INCREMENTAL_STATE_CLEARED
    sequence = packet.trusted_packet_sequence_id
    assert bool(packet.sequence_flags & cleared) == (sequence not in sequences)
    assert sequence in range(1, len(sequences) + 2)
    tables = sequences.setdefault(sequence, defaultdict(dict))
    for clock in packet.clock_snapshot.clocks:
        clocks[clock.clock_id] = clock.timestamp
    for field, names in packet.interned_data.ListFields():
        tables[field.name].update((one.iid, one.name) for one in names)
    if packet.HasField("track_descriptor"):
        tracks[packet.track_descriptor.uuid] = packet.track_descriptor
    if packet.HasField("track_event"):
        event = packet.track_event
        assert event.track_uuid in tracks, f"packet {number} is on a track that is not described"
        # The importer looks up names when it reads the packet, in the order of the file.
        slice = {
            "track": event.track_uuid,
            "ts": packet.timestamp,
            "name": tables["event_names"].get(event.name_iid),
            "categories": [tables["event_categories"][iid] for iid in event.category_iids],
            "args": {
                tables["debug_annotation_names"][one.name_iid]: value(one)
                for one in event.debug_annotations
            },
            "flows": list(event.flow_ids),
            "value": event.counter_value,
        }
        events.append((packet.timestamp, event.type, slice))

slices, open_slices, counters = [], defaultdict(list), defaultdict(list)
for timestamp, kind, slice in sorted(events, key=lambda event: event[0]):
    if kind == TrackEvent.TYPE_COUNTER:
        counters[tracks[slice["track"]].name].append((timestamp, slice["value"]))
        continue
    stack = open_slices[slice["track"]]
    if kind == TrackEvent.TYPE_SLICE_END:
        ended = stack.pop()
        ended["dur"] = timestamp - ended["ts"]
        continue
    assert slice["name"] is not None, f"a slice at {timestamp} has no name"
    slice["depth"] = len(stack)
    slice["parent"] = stack[-1]["name"] if stack else None
    slice["dur"] = None
    slices.append(slice)
    if kind == TrackEvent.TYPE_SLICE_BEGIN:
        stack.append(slice)
    else:
        assert kind == TrackEvent.TYPE_INSTANT
assert not any(open_slices.values()), "slices that do not end"

flows = defaultdict(list)
for slice in slices:
    track = tracks[slice["track"]]
    parent = tracks.get(track.parent_uuid)
    slice["track_name"] = track.name
    slice["tid"] = track.thread.tid
    slice["thread_name"] = track.thread.thread_name
    slice["process"] = parent.process.process_name
    slice["pid"] = parent.process.pid
    for flow in slice["flows"]:
        flows[flow].append(slice["name"])
json.dump({"slices": slices, "flows": flows, "counters": counters, "clocks": clocks}, sys.stdout)
