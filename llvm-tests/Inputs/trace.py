#!/usr/bin/env python3
# Reads a trace as src/formats/tracefile/format.rs documents it, without devprof's own reader, and prints its contents:
#
#   trace.py FILE              one line per record
#   trace.py --calls FILE      one line per API call, by id: name, status, the program's kernels
#   trace.py --streams FILE    one line per API call, by id: name, stream, the streams of the program's kernels
#   trace.py --summary FILE    one line per function: calls, dispatches, the fewest and the most dispatches of a call
#   trace.py --markers FILE    the starts and stops of the recording; one line per marker and range, by start; names.
#                              Threads are numbered in the order of their first marker
#   trace.py --ranges FILE     one line per range of a thread, by start: depth and name; its API calls without the calls of inner
#                              ranges, and how many dispatches each has
#   trace.py --lds FILE        how many dispatches have which LDS size
#   trace.py --queues FILE     one line per queue: dispatches, and how many of them have times
#   trace.py --copies FILE     one line per function, direction, agents and engine of copies: how many, bytes, how many
#                              of them have times
#   trace.py --in-flight FILE  the most dispatches that were submitted and had not ended, at any time
#
# Several of them print one after the other. With several files, the name of each, and a colon, is above its lines. Options:
#
#   --flushed       the number of records in the header must be exact, although the file may be open
#   --in-recording  with --markers: everything must have been submitted while the recording was on
#   --clocks        with --queues, --copies: also shows which times are from the agent's clock
#   --sequence      with --queues: the LDS sizes of dispatches must count from 0 modulo 1000 within each queue
#                   (packets.h), except that kernels that overlapped or were observed one after the other may be recorded in any order
#   --all-gpus      with --queues: agents, queues, threads and kernels must be those of trace/Inputs/all-gpus.c
#   --finished N    with --queues: at least N dispatches must have ended
#
# Reports as errors what no trace may contain:
#
# - a wrong checksum, a duplicate id, a missing name or call
# - a dispatch or copy that its call's thread did not submit between the call's start and end, or that has another stream
#   than its call
# - a copy whose direction does not fit its agents
# - a queue or kernel of another agent
# - a stream whose record comes later or belongs to another thread
# - times that decrease, or are outside of the host's times
# - ranges of a thread that do not nest
# - kernels of a queue that ran in a different order than they are recorded, and did not overlap
import argparse
import collections
import re
import struct
import sys
import zlib

DISPATCH, CALL, TEXT, KERNEL, AGENT, QUEUE, PROCESS, COPY, MARKER, STREAM, NAME, RECORDING = range(1, 13)
CREATED, NULL, PER_THREAD = range(3)
# More dispatches than can overlap in a queue.
WINDOW = 128
CLOCKS = ["system", "scaled", "agent", "none"]
UNFINISHED, MOVED = 4, 64
FLAGS = {UNFINISHED: "unfinished", 8: "no-call", 16: "no-registers", 32: "vendor", MOVED: "moved"}
COUNTS = ["records", "dropped-dispatches", "dropped-calls", "dropped-others", "unknown-packets", "closed", "dropped-copies", "dropped-markers"]

Dispatch = collections.namedtuple(
    "Dispatch",
    "id flags call submit start end observed agent queue thread kernel gx gy gz bx by bz pad lds scratch v a s stream",
)
Copy = collections.namedtuple(
    "Copy", "id flags call submit start end observed size source destination thread stream direction engine function"
)
DIRECTIONS = ["unknown", "host-to-host", "host-to-device", "device-to-host", "device-to-device", "fill"]
NO_AGENT = 2**32 - 1
Call = collections.namedtuple("Call", "id flags start end thread name status stream")
Marker = collections.namedtuple("Marker", "start id flags end thread end_thread text what range depth")
MARK, RANGE, PROCESS_RANGE = range(3)
Stream = collections.namedtuple("Stream", "id flags first_use handle what thread")

errors = []


def require(holds, text):
    """`text` is a function if it names records: most of the time would be for texts of errors that do not occur."""
    if not holds:
        errors.append(text() if callable(text) else text)


def unpack(layout, record):
    return struct.unpack_from("<" + layout, record, 16)


class Trace:
    def __init__(self, path):
        with open(path, "rb") as file:
            data = file.read()
        require(data[:8] == b"DEVPROFT", "not a trace")
        version, header, size, self.pid = struct.unpack_from("<4I", data, 8)
        require((version, header, size) == (2, 4096, 128), "unsupported version")
        self.frequency, self.started = struct.unpack_from("<QQ", data, 24)
        require(zlib.crc32(data[:124]) == struct.unpack_from("<I", data, 124)[0], "wrong checksum of the header")
        self.counts = {}
        for index, name in enumerate(COUNTS):
            value, check = struct.unpack_from("<QQ", data, 128 + 16 * index)
            require(value ^ check == 2**64 - 1, lambda: f"the counter {name} is corrupt")
            self.counts[name] = value
        self.texts, self.kernels, self.queues, self.agents, self.streams = {}, {}, {}, {}, {}
        self.dispatches, self.calls, self.kernel_agents = {}, {}, {}
        self.copies, self.is_cpu = {}, {}
        self.markers, self.names, self.switches = {}, [], []
        self.records = 0
        for at in range(header, len(data) - size + 1, size):
            record = data[at : at + size]
            if not any(record):
                continue
            crc, kind, flags, ident = struct.unpack_from("<IHHQ", record)
            require(crc == zlib.crc32(record[4:]), lambda: f"wrong checksum of the record at {at}")
            self.take(kind, flags, ident, record)
            self.records += 1
        # A process that was killed may not have counted its last records.
        counted = self.counts["records"]
        same = self.records == counted or not (self.counts["closed"] or options.flushed) and self.records > counted
        require(same, lambda: f"{self.records} records, {counted} counted")
        self.of_queue, self.of_call = self.by_queue(), self.by_call()
        self.check_ranges()

    def once(self, what, ident, value):
        require(ident not in what, lambda: f"duplicate id {ident}: {value}")
        what[ident] = value

    def text(self, ident):
        length, value = self.texts.get(ident, (-1, b""))
        require(length == len(value), lambda: f"the text {ident} is incomplete")
        return value.decode()

    def take(self, kind, flags, ident, record):
        if kind == TEXT:
            length, offset = unpack("II", record)
            value = self.texts.get(ident, (length, b""))[1]
            require(offset == len(value), lambda: f"the text {ident} has a gap")
            self.texts[ident] = length, value + record[24 : 24 + min(104, length - offset)]
        elif kind == KERNEL:
            name, agent, build_id = unpack("8xII20xI", record)
            known = not build_id or re.fullmatch("([0-9a-f]{2})+", self.text(build_id))
            require(known, lambda: f"the kernel {ident} has a wrong build ID")
            require(agent in self.agents, lambda: f"the kernel {ident} has no agent")
            self.once(self.kernels, ident, self.text(name))
            self.kernel_agents[ident] = agent
        elif kind == AGENT:
            name, what = unpack("8xI12xI", record)
            self.once(self.agents, ident, self.text(name))
            self.is_cpu[ident] = bool(what)
        elif kind == QUEUE:
            self.once(self.queues, ident, unpack("QII", record))
        elif kind == CALL:
            start, end, thread, name, status, stream = unpack("QQIIiI", record)
            call = Call(ident, flags, start, end, thread, self.text(name), status, stream)
            self.check_stream(call)
            require(0 < start <= end, lambda: f"invalid times: {call}")
            self.once(self.calls, ident, call)
        elif kind == DISPATCH:
            dispatch = Dispatch(ident, flags, *unpack("5Q4I3I3HH2I3H2xI", record))
            self.check_stream(dispatch)
            require(dispatch.queue in self.queues, lambda: f"no queue: {dispatch}")
            require(dispatch.kernel in self.kernels, lambda: f"no kernel: {dispatch}")
            agents = [self.queues.get(dispatch.queue, (0, 0, 0))[1], self.kernel_agents.get(dispatch.kernel)]
            require(agents == 2 * [dispatch.agent], lambda: f"agents {agents}: {dispatch}")
            require(dispatch.start <= dispatch.end, lambda: f"invalid times: {dispatch}")
            require((dispatch.call == 0) == bool(flags & 8), lambda: f"wrong call flag: {dispatch}")
            if flags & 3 < 2:
                times = dispatch.submit <= dispatch.start <= dispatch.end <= dispatch.observed
                require(times, lambda: f"invalid times: {dispatch}")
            self.once(self.dispatches, ident, dispatch)
        elif kind == COPY:
            copy = Copy(ident, flags, *unpack("6Q7I", record))
            self.once(self.copies, ident, copy._replace(function=self.text(copy.function)))
            self.check_copy(copy)
            self.check_stream(copy)
        elif kind == MARKER:
            start, end, thread, end_thread, text, what, id_, depth = unpack("2Q4IQI", record)
            found = Marker(start, ident, flags, end, thread, end_thread, self.text(text), what, id_, depth)
            require(0 < start <= end and flags in (0, UNFINISHED), lambda: f"invalid: {found}")
            require(what == PROCESS_RANGE or thread == end_thread and id_ == 0, lambda: f"two threads: {found}")
            require(what != MARK or start == end and flags == 0, lambda: f"not a mark: {found}")
            require(what == RANGE or depth == 0, lambda: f"a depth: {found}")
            self.once(self.markers, ident, found)
        elif kind == NAME:
            what, text = unpack("II", record)
            self.names.append((["", "thread", "stream", "agent"][what], ident, self.text(text)))
        elif kind == RECORDING:
            time, is_on = unpack("QI", record)
            self.switches.append((time, is_on))
            last = self.switches[-2:][0] if len(self.switches) > 1 else (0, 1 - is_on)
            require(ident == len(self.switches), lambda: f"recording {ident} is number {len(self.switches)}")
            require(last[0] <= time and last[1] == 1 - is_on, lambda: f"recording {last}, then {time, is_on}")
        elif kind == STREAM:
            stream = Stream(ident, flags, *unpack("QQII", record))
            require(ident == len(self.streams) + 1, lambda: f"wrong order: {stream}")
            special = {NULL: stream.handle == 0, PER_THREAD: stream.handle == 2, CREATED: stream.handle > 2}
            require(special.get(stream.what), lambda: f"wrong handle: {stream}")
            require((stream.thread != 0) == (stream.what == PER_THREAD), lambda: f"wrong thread: {stream}")
            require(stream.first_use > 0, lambda: f"no time: {stream}")
            self.once(self.streams, ident, stream)
        else:
            require(kind == PROCESS, lambda: f"a record of kind {kind}")

    def check_copy(self, copy):
        require(copy.size > 0, lambda: f"nothing is copied: {copy}")
        require((copy.call == 0) == bool(copy.flags & 8), lambda: f"wrong call flag: {copy}")
        require(not copy.flags & ~(3 | UNFINISHED | 8 | MOVED), lambda: f"unknown flags: {copy}")
        if copy.flags & 3 < 2:
            require(copy.submit <= copy.start <= copy.end <= copy.observed, lambda: f"invalid times: {copy}")
        require(0 < copy.submit <= copy.observed and copy.start <= copy.end, lambda: f"invalid times: {copy}")
        if copy.flags & UNFINISHED:
            require(copy.flags & 3 == 3, lambda: f"unfinished with times: {copy}")
        if copy.flags & 3 == 3:
            require(copy.start == copy.end == 0, lambda: f"times without a clock: {copy}")
        direction = DIRECTIONS[copy.direction]
        sides = [copy.source, copy.destination]
        require(all(agent == NO_AGENT or agent in self.agents for agent in sides), lambda: f"no agent: {copy}")
        if direction == "fill":
            require(copy.source == NO_AGENT, lambda: f"a fill with a source: {copy}")
        elif direction != "unknown":
            for side, agent in zip(direction.split("-to-"), sides):
                # Memory of the host that HSA does not know has no agent.
                of_host = agent == NO_AGENT or self.is_cpu[agent]
                require(of_host == (side == "host"), lambda: f"wrong direction: {copy}")

    # The ranges of a thread nest, and an inner one has a greater depth.
    def check_ranges(self):
        threads = collections.defaultdict(list)
        ranges = [marker for marker in self.markers.values() if marker.what == RANGE]
        for marker in sorted(ranges, key=lambda marker: (marker.thread, marker.start, marker.depth)):
            outer = threads[marker.thread]
            while outer and (outer[-1].end < marker.start or outer[-1].depth >= marker.depth):
                require(outer[-1].end <= marker.start, lambda: f"they overlap: {outer[-1]} {marker}")
                outer.pop()
            require(not outer or marker.end <= outer[-1].end, lambda: f"it does not nest: {outer and outer[-1]} {marker}")
            outer.append(marker)

    # Whether the recording was on.
    def is_on(self, time):
        on = not self.switches or self.switches[0][1] == 1
        for at, is_on in self.switches:
            if at <= time:
                on = is_on == 1
        return on

    def check_stream(self, record):
        if record.stream:
            stream = self.streams.get(record.stream)
            require(stream and stream.thread in (0, record.thread), lambda: f"no stream, or another thread's: {record} {stream}")

    def by_queue(self):
        queues = {queue: [] for queue in sorted(self.queues)}
        for dispatch in sorted(self.dispatches.values()):
            queues.setdefault(dispatch.queue, []).append(dispatch)
        for dispatches in queues.values():
            # Times that were clamped to the host's do not show the order, and times of two clocks cannot be compared.
            timed = [dispatch for dispatch in dispatches if dispatch.flags & 3 < 3 and not dispatch.flags & MOVED]
            for one, next in zip(timed, timed[1:]):
                # Kernels that overlap may be recorded in any order, and so may those whose completion is observed late.
                if one.flags & 3 == next.flags & 3 and one.observed >= next.observed:
                    require(one.start <= max(next.start, next.end - 1), lambda: f"wrong order: {one} {next}")
        return queues

    def by_call(self):
        owned = collections.defaultdict(list)
        for item in [*self.dispatches.values(), *self.copies.values()]:
            if item.call == 0:
                require(item.stream == 0, lambda: f"a stream without a call: {item}")
                continue
            call = self.calls.get(item.call)
            # A process that was killed has not recorded the calls that it was in.
            require(call or not self.counts["closed"], lambda: f"no call: {item}")
            if call:
                inside = call.start <= item.submit <= call.end and call.thread == item.thread
                require(inside, lambda: f"outside of its call: {item} {call}")
                require(call.stream == item.stream, lambda: f"another stream than its call: {item} {call}")
            if isinstance(item, Dispatch):
                owned[item.call].append(item)
        return owned


def print_records(trace):
    print(f"trace pid={trace.pid}", *(f"{name}={value}" for name, value in trace.counts.items()))
    for ident, stream in sorted(trace.streams.items()):
        print(f"stream {stream_name(trace, ident)} handle={stream.handle:#x} thread={stream.thread}")
    for ident in sorted(trace.calls):
        call = trace.calls[ident]
        print(
            f"call {ident} {call.name} status={call.status} thread={call.thread} start={call.start} end={call.end}",
            f"stream={call.stream}",
        )
    for ident in sorted(trace.dispatches):
        dispatch = trace.dispatches[ident]
        flags = [CLOCKS[dispatch.flags & 3]] + [name for bit, name in FLAGS.items() if dispatch.flags & bit]
        print(
            f"dispatch {ident} {trace.kernels.get(dispatch.kernel)} call={dispatch.call} queue={dispatch.queue}",
            f"thread={dispatch.thread} stream={dispatch.stream} start={dispatch.start} end={dispatch.end}",
            f"grid={dispatch.gx},{dispatch.gy},{dispatch.gz}",
            f"workgroup={dispatch.bx},{dispatch.by},{dispatch.bz} flags={','.join(flags)}",
        )
    for ident in sorted(trace.copies):
        copy = trace.copies[ident]
        flags = [CLOCKS[copy.flags & 3]] + [name for bit, name in FLAGS.items() if copy.flags & bit]
        print(
            f"copy {ident} {copy.function} {DIRECTIONS[copy.direction]} size={copy.size} call={copy.call}",
            f"thread={copy.thread} start={copy.start} end={copy.end} flags={','.join(flags)}",
        )


def quoted(text):
    size = len(text.encode())
    return repr(text) if size < 39 else f"{text[:4] + '...' + text[-4:]!r} ({size} bytes)"


def print_markers(trace):
    began = 1 if not trace.switches else trace.switches[0][1]
    print("recording:", "began", ["stopped", "on"][began], *(["stop", "start"][is_on] for _, is_on in trace.switches[1:]))
    threads = {}
    for marker in sorted(trace.markers.values()):
        number = threads.setdefault(marker.thread, len(threads) + 1)
        end = threads.setdefault(marker.end_thread, len(threads) + 1)
        kind = ["mark", f"range depth={marker.depth}", f"process-range id={marker.range}"][marker.what]
        where = f"thread={number}" + (f" end-thread={end}" if end != number else "")
        print(kind, where, *(["unfinished"] if marker.flags & UNFINISHED else []), quoted(marker.text))
    for what, ident, text in trace.names:
        ident = threads.get(ident, "?") if what == "thread" else ident
        print("name", what, ident, repr(text))
    if options.in_recording:
        # A thread that submits something during a stop may do so a moment later.
        for each in [*((d.submit, d) for d in trace.dispatches.values()), *((c.start, c) for c in trace.calls.values()),
                     *((m.start, m) for m in trace.markers.values())]:
            require(trace.is_on(each[0]), lambda: f"recorded while stopped: {each[1]}")


def print_ranges(trace):
    ranges = sorted(marker for marker in trace.markers.values() if marker.what == RANGE)
    calls = {marker: [] for marker in ranges}
    for call in sorted(trace.calls.values()):
        around = [m for m in ranges if m.thread == call.thread and m.start <= call.start and call.end <= m.end]
        if around:
            calls[max(around, key=lambda marker: marker.depth)].append(call)
    for marker in ranges:
        print(f"depth={marker.depth} {marker.text!r}", *(f"{c.name}:{len(trace.of_call[c.id])}" for c in calls[marker]))


def print_lds(trace):
    sizes = collections.Counter(dispatch.lds for dispatch in trace.dispatches.values())
    print(f"closed={trace.counts['closed']}", *(f"{size}x{sizes[size]}" for size in sorted(sizes)))


def print_calls(trace):
    for ident in sorted(trace.calls):
        call = trace.calls[ident]
        names = (trace.kernels.get(dispatch.kernel, "?") for dispatch in trace.of_call[ident])
        print(call.name, call.status, *(name for name in names if not name.startswith("__amd_rocclr_")))


def stream_name(trace, ident):
    if ident == 0:
        return "none"
    stream = trace.streams[ident]
    return f"{ident}:{['created', 'null', 'thread'][stream.what]}"


def print_streams(trace):
    for ident in sorted(trace.calls):
        call = trace.calls[ident]
        own = [d for d in trace.of_call[ident] if not trace.kernels.get(d.kernel, "?").startswith("__amd_rocclr_")]
        print(call.name, stream_name(trace, call.stream), *(stream_name(trace, d.stream) for d in own))


def print_summary(trace):
    functions = collections.defaultdict(list)
    for ident, call in trace.calls.items():
        functions[call.name].append(len(trace.of_call[ident]))
    none = sum(dispatch.call == 0 for dispatch in trace.dispatches.values())
    print(f"calls={len(trace.calls)} dispatches={len(trace.dispatches)} without-call={none}")
    threads = {call.thread for call in trace.calls.values()}
    print(f"threads={len(threads)} dropped={sum(value for name, value in trace.counts.items() if name.startswith('dropped-'))} closed={trace.counts['closed']}")
    for name in sorted(functions):
        each = functions[name]
        print(f"{name} calls={len(each)} dispatches={sum(each)} each={min(each)}..{max(each)}")


def check_all_gpus(trace):
    queues, threads = {}, {}
    for d in trace.dispatches.values():
        queue = queues.setdefault((d.agent, d.gx // 64), d.queue)
        written = d.gx % 64, queue, threads.setdefault(d.gy, d.thread), ["branch", "loop"][d.lds % 2], 1
        recorded = d.agent, d.queue, d.thread, trace.kernels.get(d.kernel), d.gz
        require(recorded == written, lambda: f"the program wrote {written}: {d}")
    for found in queues, threads:
        require(len(set(found.values())) == len(found), lambda: f"duplicate ids: {found}")
    print(f"{len(queues)} queues of {len({agent for agent, _ in queues})} GPUs, {len(threads)} threads")


def check_sequence(queue, dispatches):
    # The dispatch with number n is near position n of the recorded ones.
    numbers = [place + (d.lds - place + 500) % 1000 - 500 for place, d in enumerate(dispatches)]
    require(sorted(numbers) == list(range(len(numbers))), lambda: f"the dispatches of queue {queue} are {numbers}")
    for place, one in enumerate(dispatches):
        # A packet that is recorded later than one that was written after it.
        for late in range(place + 1, min(place + WINDOW, len(dispatches))) if numbers[place] != place else ():
            next = dispatches[late]
            overlap = max(one.start, next.start) <= min(one.end, next.end)
            # Recorded are those that are observed together, by their times. On a busy machine, one can be observed late.
            in_order = numbers[place] < numbers[late] or overlap or one.observed < next.observed
            require(in_order, lambda: f"dispatch {next.id} of queue {queue}, number {numbers[late]}, is recorded too late")


def print_queues(trace):
    ended = 0
    for queue, dispatches in trace.of_queue.items():
        if options.sequence:
            check_sequence(queue, dispatches)
        ended += sum(not dispatch.flags & UNFINISHED for dispatch in dispatches)
        print(f"queue {queue}: {len(dispatches)} dispatches, {states(dispatches)}")
    if options.all_gpus:
        check_all_gpus(trace)
    names = collections.Counter(trace.kernels.get(dispatch.kernel) for dispatch in trace.dispatches.values())
    print("kernels:", *(f"{name} {names[name]}" for name in sorted(names)))
    counts = trace.counts
    dropped = [counts[name] for name in COUNTS[1:4]]
    print("dropped:", *dropped, "unknown packets:", counts["unknown-packets"], "closed:", counts["closed"])
    require(ended >= options.finished, lambda: f"only {ended} dispatches have ended, of {options.finished}")


def states(items):
    """How many dispatches or copies have times, and the states of the others."""
    states = ["unfinished" if item.flags & UNFINISHED else CLOCKS[item.flags & 3] for item in items]
    numbers = {state: states.count(state) for state in CLOCKS + ["unfinished"] if state in states}
    # Which of the two clocks is used depends on the machine.
    timed = sum(numbers.pop(clock, 0) for clock in CLOCKS[: 2 if options.clocks else 3])
    return ", ".join([f"{timed} with times", *(f"{n} {state}" for state, n in numbers.items())])


def print_copies(trace):
    groups = collections.defaultdict(list)
    for copy in trace.copies.values():
        ends = ["-" if agent == NO_AGENT else agent for agent in (copy.source, copy.destination)]
        key = f"{copy.function} {DIRECTIONS[copy.direction]} {ends[0]}>{ends[1]}"
        groups[key + f" engine={copy.engine}" * bool(copy.engine)].append(copy)
    for key in sorted(groups):
        copies = groups[key]
        print(f"{key}: {len(copies)} copies, {sum(copy.size for copy in copies)} bytes, {states(copies)}")
    called = collections.Counter(trace.calls[copy.call].name if copy.call else "no call" for copy in trace.copies.values())
    print("calls:", *(f"{name} {called[name]}" for name in sorted(called)))
    print("dropped:", trace.counts["dropped-copies"], "closed:", trace.counts["closed"])


def print_in_flight(trace):
    # At equal times, ends come first.
    times = [(d.submit, 1) for d in trace.dispatches.values()] + [(d.end, -1) for d in trace.dispatches.values()]
    most = now = 0
    for _, change in sorted(times):
        now += change
        most = max(most, now)
    print(f"in flight: {most}")


parser = argparse.ArgumentParser()
parser.add_argument("paths", nargs="+")
for name in ["calls", "streams", "summary", "markers", "ranges", "queues", "lds", "copies", "in-flight"]:
    function = globals()["print_" + name.replace("-", "_")]
    parser.add_argument(f"--{name}", dest="print", action="append_const", const=function)
parser.add_argument("--in-recording", action="store_true")
parser.add_argument("--flushed", action="store_true")
parser.add_argument("--clocks", action="store_true")
parser.add_argument("--sequence", action="store_true")
parser.add_argument("--all-gpus", action="store_true")
parser.add_argument("--finished", type=int, default=0)
options = parser.parse_args()
failed = False
for path in options.paths:
    if len(options.paths) > 1:
        print(f"{path}:")
    trace = Trace(path)
    for print_contents in options.print or [print_records]:
        print_contents(trace)
    for error in errors[:20]:
        print(f"trace.py: {path}: {error}", file=sys.stderr)
    failed = failed or bool(errors)
    errors.clear()
sys.exit(failed)
