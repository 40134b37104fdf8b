#!/usr/bin/env python3
# Reads a trace as src/tracefile/format.rs documents it, without devprof's own reader, and prints its contents:
#
#   trace.py FILE            one line per record
#   trace.py --calls FILE    one line per API call, by id: name, status, the program's kernels
#   trace.py --summary FILE  one line per function: calls, dispatches, the fewest and the most dispatches of a call
#   trace.py --queues FILE   one line per queue: dispatches, and which of them have times. --clocks also shows which times
#                            are from the agent's clock; --sequence checks that the dispatches' LDS sizes count from 0
#                            modulo 1000 within each queue (packets.h); --all-gpus, that agents, queues, threads and
#                            kernels are those that trace/Inputs/all-gpus.c wrote; --finished N, that at least N have
#                            ended
#   trace.py --in-flight FILE
#                            the most dispatches that were submitted and had not ended, at any time
#
# Reports as errors what no trace may contain: a wrong checksum, a duplicate id, a missing name or call, a dispatch that
# its call's thread did not submit between the call's start and end, a queue or kernel of another agent, times that
# decrease or are outside of the host's times, kernels of a queue that start in a different order than their packets.
import argparse
import collections
import struct
import sys
import zlib

DISPATCH, CALL, TEXT, KERNEL, AGENT, QUEUE, PROCESS = range(1, 8)
CLOCKS = ["system", "scaled", "agent", "none"]
UNFINISHED, MOVED = 4, 64
FLAGS = {UNFINISHED: "unfinished", 8: "no-call", 16: "no-registers", 32: "vendor", MOVED: "moved"}
COUNTS = ["records", "dropped-dispatches", "dropped-calls", "dropped-others", "unknown-packets", "closed", "dropped-copies", "dropped-markers"]

Dispatch = collections.namedtuple(
    "Dispatch",
    "id flags call submit start end observed agent queue thread kernel gx gy gz bx by bz pad lds scratch v a s",
)
Call = collections.namedtuple("Call", "id flags start end thread name status")

errors = []


def require(holds, text):
    if not holds:
        errors.append(text)


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
            require(value ^ check == 2**64 - 1, f"the counter {name} is corrupt")
            self.counts[name] = value
        self.texts, self.kernels, self.queues, self.agents = {}, {}, {}, {}
        self.dispatches, self.calls, self.kernel_agents = {}, {}, {}
        self.records = 0
        for at in range(header, len(data) - size + 1, size):
            record = data[at : at + size]
            if not any(record):
                continue
            crc, kind, flags, ident = struct.unpack_from("<IHHQ", record)
            require(crc == zlib.crc32(record[4:]), f"wrong checksum of the record at {at}")
            self.take(kind, flags, ident, record)
            self.records += 1
        # A process that was killed may not have counted its last records.
        counted = self.counts["records"]
        same = self.records == counted or not self.counts["closed"] and self.records > counted
        require(same, f"{self.records} records, {counted} counted")
        self.of_queue, self.of_call = self.by_queue(), self.by_call()

    def once(self, what, ident, value):
        require(ident not in what, f"duplicate id {ident}: {value}")
        what[ident] = value

    def text(self, ident):
        length, value = self.texts.get(ident, (-1, b""))
        require(length == len(value), f"the text {ident} is incomplete")
        return value.decode()

    def take(self, kind, flags, ident, record):
        if kind == TEXT:
            length, offset = unpack("II", record)
            value = self.texts.get(ident, (length, b""))[1]
            require(offset == len(value), f"the text {ident} has a gap")
            self.texts[ident] = length, value + record[24 : 24 + min(104, length - offset)]
        elif kind == KERNEL:
            name, agent = unpack("8xII", record)
            require(agent in self.agents, f"the kernel {ident} has no agent")
            self.once(self.kernels, ident, self.text(name))
            self.kernel_agents[ident] = agent
        elif kind == AGENT:
            self.once(self.agents, ident, self.text(unpack("8xI", record)[0]))
        elif kind == QUEUE:
            self.once(self.queues, ident, unpack("QII", record))
        elif kind == CALL:
            start, end, thread, name, status = unpack("QQIIi", record)
            call = Call(ident, flags, start, end, thread, self.text(name), status)
            require(0 < start <= end, f"invalid times: {call}")
            self.once(self.calls, ident, call)
        elif kind == DISPATCH:
            dispatch = Dispatch(ident, flags, *unpack("5Q4I3I3HH2I3H", record))
            require(dispatch.queue in self.queues, f"no queue: {dispatch}")
            require(dispatch.kernel in self.kernels, f"no kernel: {dispatch}")
            agents = [self.queues.get(dispatch.queue, (0, 0, 0))[1], self.kernel_agents.get(dispatch.kernel)]
            require(agents == 2 * [dispatch.agent], f"agents {agents}: {dispatch}")
            require(dispatch.start <= dispatch.end, f"invalid times: {dispatch}")
            require((dispatch.call == 0) == bool(flags & 8), f"wrong call flag: {dispatch}")
            if flags & 3 < 2:
                times = dispatch.submit <= dispatch.start <= dispatch.end <= dispatch.observed
                require(times, f"invalid times: {dispatch}")
            self.once(self.dispatches, ident, dispatch)
        else:
            require(kind == PROCESS, f"a record of kind {kind}")

    def by_queue(self):
        queues = {queue: [] for queue in sorted(self.queues)}
        for dispatch in sorted(self.dispatches.values()):
            queues.setdefault(dispatch.queue, []).append(dispatch)
        for dispatches in queues.values():
            # Times that were clamped to the host's do not show the order, and times of two clocks cannot be compared.
            timed = [dispatch for dispatch in dispatches if dispatch.flags & 3 < 3 and not dispatch.flags & MOVED]
            for one, next in zip(timed, timed[1:]):
                if one.flags & 3 == next.flags & 3:
                    require(one.start <= next.start, f"wrong order: {one} {next}")
        return queues

    def by_call(self):
        owned = collections.defaultdict(list)
        for dispatch in self.dispatches.values():
            if dispatch.call == 0:
                continue
            call = self.calls.get(dispatch.call)
            # A process that was killed has not recorded the calls that it was in.
            require(call or not self.counts["closed"], f"no call: {dispatch}")
            if call:
                inside = call.start <= dispatch.submit <= call.end and call.thread == dispatch.thread
                require(inside, f"outside of its call: {dispatch} {call}")
            owned[dispatch.call].append(dispatch)
        return owned


def print_records(trace):
    print(f"trace pid={trace.pid}", *(f"{name}={value}" for name, value in trace.counts.items()))
    for ident in sorted(trace.calls):
        call = trace.calls[ident]
        print(f"call {ident} {call.name} status={call.status} thread={call.thread} start={call.start} end={call.end}")
    for ident in sorted(trace.dispatches):
        dispatch = trace.dispatches[ident]
        flags = [CLOCKS[dispatch.flags & 3]] + [name for bit, name in FLAGS.items() if dispatch.flags & bit]
        print(
            f"dispatch {ident} {trace.kernels.get(dispatch.kernel)} call={dispatch.call} queue={dispatch.queue}",
            f"thread={dispatch.thread} start={dispatch.start} end={dispatch.end}",
            f"grid={dispatch.gx},{dispatch.gy},{dispatch.gz}",
            f"workgroup={dispatch.bx},{dispatch.by},{dispatch.bz} flags={','.join(flags)}",
        )


def print_calls(trace):
    for ident in sorted(trace.calls):
        call = trace.calls[ident]
        names = (trace.kernels.get(dispatch.kernel, "?") for dispatch in trace.of_call[ident])
        print(call.name, call.status, *(name for name in names if not name.startswith("__amd_rocclr_")))


def print_summary(trace):
    functions = collections.defaultdict(list)
    for ident, call in trace.calls.items():
        functions[call.name].append(len(trace.of_call[ident]))
    none = sum(dispatch.call == 0 for dispatch in trace.dispatches.values())
    print(f"calls={len(trace.calls)} dispatches={len(trace.dispatches)} without-call={none}")
    threads = {call.thread for call in trace.calls.values()}
    print(f"threads={len(threads)} dropped={sum(value for name, value in trace.counts.items() if name.startswith("dropped-"))} closed={trace.counts['closed']}")
    for name in sorted(functions):
        each = functions[name]
        print(f"{name} calls={len(each)} dispatches={sum(each)} each={min(each)}..{max(each)}")


def check_all_gpus(trace):
    queues, threads = {}, {}
    for d in trace.dispatches.values():
        queue = queues.setdefault((d.agent, d.gx // 64), d.queue)
        written = d.gx % 64, queue, threads.setdefault(d.gy, d.thread), ["branch", "loop"][d.lds % 2], 1
        recorded = d.agent, d.queue, d.thread, trace.kernels.get(d.kernel), d.gz
        require(recorded == written, f"the program wrote {written}: {d}")
    for found in queues, threads:
        require(len(set(found.values())) == len(found), f"duplicate ids: {found}")
    print(f"{len(queues)} queues of {len({agent for agent, _ in queues})} GPUs, {len(threads)} threads")


def print_queues(trace):
    ended = 0
    for queue, dispatches in trace.of_queue.items():
        if options.sequence:
            for number, dispatch in enumerate(dispatches):
                require(dispatch.lds == number % 1000, f"dispatch {dispatch.id} of queue {queue} is number {number}")
        states = ["unfinished" if d.flags & UNFINISHED else CLOCKS[d.flags & 3] for d in dispatches]
        numbers = {state: states.count(state) for state in CLOCKS + ["unfinished"] if state in states}
        ended += len(states) - numbers.get("unfinished", 0)
        # Which of the two clocks is used depends on the machine.
        timed = sum(numbers.pop(clock, 0) for clock in CLOCKS[: 2 if options.clocks else 3])
        print(f"queue {queue}: {len(states)} dispatches, {timed} with times", *(f", {n} {s}" for s, n in numbers.items()), sep="")
    if options.all_gpus:
        check_all_gpus(trace)
    names = collections.Counter(trace.kernels.get(dispatch.kernel) for dispatch in trace.dispatches.values())
    print("kernels:", *(f"{name} {names[name]}" for name in sorted(names)))
    counts = trace.counts
    dropped = [counts[name] for name in COUNTS[1:4]]
    print("dropped:", *dropped, "unknown packets:", counts["unknown-packets"], "closed:", counts["closed"])
    require(ended >= options.finished, f"only {ended} dispatches have ended, of {options.finished}")


def print_in_flight(trace):
    # At equal times, ends come first.
    times = [(d.submit, 1) for d in trace.dispatches.values()] + [(d.end, -1) for d in trace.dispatches.values()]
    most = now = 0
    for _, change in sorted(times):
        now += change
        most = max(most, now)
    print(f"in flight: {most}")


parser = argparse.ArgumentParser()
parser.add_argument("path")
for name in ["calls", "summary", "queues", "in-flight"]:
    function = globals()["print_" + name.replace("-", "_")]
    parser.add_argument(f"--{name}", dest="print", action="store_const", const=function)
parser.add_argument("--clocks", action="store_true")
parser.add_argument("--sequence", action="store_true")
parser.add_argument("--all-gpus", action="store_true")
parser.add_argument("--finished", type=int, default=0)
options = parser.parse_args()
(options.print or print_records)(Trace(options.path))
for error in errors[:20]:
    print(f"trace.py: {options.path}: {error}", file=sys.stderr)
sys.exit(bool(errors))
