# Checks a trace file and says what is in it: a line a queue. Usage: records.py FILE [--sequence] [--clocks]
# [--finished N]
#
# Whatever the program was: each record is whole, ids are there once, a start is not after its end, and times of the
# system's clock lie between submission and observation. --sequence: in the order of their ids the dispatches' LDS sizes
# count from 0 modulo 1000 within each queue (packets.h). --finished: at least so many have ended. --clocks: which have
# times of the agent's clock only is told apart. What is wrong is an error, with the record.
import struct
import sys
import zlib

UNFINISHED = 4
CLOCKS = ["system", "scaled", "agent", "none"]


def fail(what):
    sys.exit(f"{sys.argv[1]}: {what}")


with open(sys.argv[1], "rb") as file:
    data = file.read()
if data[:8] != b"DEVPROFT":
    fail("no trace file")
counts = [struct.unpack_from("<Q", data, 128 + 16 * n)[0] for n in range(6)]
texts, kernels, names, queues, ids = {}, {}, {}, {}, set()
for at in range(4096, len(data) - 127, 128):
    record = data[at : at + 128]
    if not any(record):
        continue
    crc, kind, flags, number = struct.unpack_from("<IHHQ", record)
    if crc != zlib.crc32(record[4:]):
        fail(f"the record at byte {at} is damaged")
    if kind == 3:
        length, offset = struct.unpack_from("<II", record, 16)
        texts[number] = texts.get(number, b"") + record[24 : 24 + min(104, length - offset)]
    elif kind == 4:
        kernels[number] = texts[struct.unpack_from("<I", record, 24)[0]].decode()
    elif kind == 6:
        queues.setdefault(number, [])
    elif kind == 1:
        _, submit, start, end, observed, agent, queue, _, kernel = struct.unpack_from("<QQQQQIIII", record, 16)
        lds = struct.unpack_from("<I", record, 92)[0]
        if number in ids:
            fail(f"dispatch {number} is there twice")
        ids.add(number)
        clock = CLOCKS[flags & 3]
        if flags & UNFINISHED:
            clock = "unfinished"
        if start > end:
            fail(f"dispatch {number} ends before it starts")
        if clock in ("system", "scaled") and not submit <= start <= end <= observed:
            fail(f"dispatch {number}: {submit} {start} {end} {observed}")
        queues[queue].append((number, clock, lds))
        name = kernels.get(kernel, "unknown")
        names[name] = names.get(name, 0) + 1

for queue, dispatches in sorted(queues.items()):
    dispatches.sort()
    if "--sequence" in sys.argv:
        for place, (number, _, lds) in enumerate(dispatches):
            if lds != place % 1000:
                fail(f"dispatch {number} of queue {queue} has LDS {lds}, and is the one after {place}")
    clocks = [clock for _, clock, _ in dispatches]
    told = {clock: clocks.count(clock) for clock in CLOCKS + ["unfinished"] if clock in clocks}
    # Which of the two clocks a machine's own allows is its own affair.
    whole = told.pop("system", 0) + told.pop("scaled", 0) + (told.pop("agent", 0) if "--clocks" not in sys.argv else 0)
    print(f"queue {queue}: {len(dispatches)} dispatches, {whole} with times", *(f", {n} {c}" for c, n in told.items()), sep="")
print("kernels:", *(f"{name} {names[name]}" for name in sorted(names)))
print("dropped:", *counts[1:4], "unknown packets:", counts[4], "closed:", counts[5])
if "--finished" in sys.argv:
    least = int(sys.argv[sys.argv.index("--finished") + 1])
    finished = sum(clock != "unfinished" for all in queues.values() for _, clock, _ in all)
    print("enough" if finished >= least else f"only {finished} have ended")
