#!/usr/bin/env python3
# For traces that are too large for memory (trace.py has all other checks):
#
#   soak.py trace FILE          reads the trace of one queue that batches.c wrote to, record by record, as
#                               src/formats/tracefile/format.rs documents it: each dispatch is recorded once, in the
#                               order of the program's numbers (packets.h), and its times are inside the host's times
#   soak.py csv FILE            counts the lines of an export, in which Dispatch_Id must count from 1 and start times
#                               must not decrease
#   soak.py memory MOST CMD…    runs a command, which may use at most MOST MiB
import csv
import mmap
import resource
import struct
import subprocess
import sys
import zlib

HEADER, SIZE = 4096, 128
DISPATCH = 1


def fail(text):
    sys.exit(f"soak.py: {text}")


def trace(path):
    # checksum, kind, flags, id; call, submit, start, end, observed; agent, queue, thread, kernel, grid, workgroup;
    # LDS, scratch
    layout = struct.Struct("<IHHQ5Q4I3I3HH2I")
    dispatches = others = last = 0
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        counted = struct.unpack_from("<Q", data, 128)[0]
        lost = [struct.unpack_from("<Q", data, 128 + 16 * n)[0] for n in (1, 2, 3)]
        for at in range(HEADER, len(data), SIZE):
            record = data[at : at + SIZE]
            fields = layout.unpack_from(record)
            checksum, kind, flags, ident = fields[:4]
            if checksum != zlib.crc32(memoryview(record)[4:]):
                fail(f"wrong checksum of the record at {at}")
            if kind != DISPATCH:
                others += 1
                continue
            submit, start, end, observed = fields[5:9]
            if ident != dispatches + 1 or fields[-2] != dispatches % 1000:
                fail(f"dispatch {ident} with LDS size {fields[-2]} instead of dispatch {dispatches + 1}")
            if not last <= start or not submit <= start <= end <= observed or flags & 3 > 1:
                fail(f"dispatch {ident}: flags {flags}, times {submit} {start} {end} {observed}, the last began at {last}")
            dispatches, last = dispatches + 1, start
    if counted != dispatches + others:
        fail(f"the header counts {counted} records, the file has {dispatches + others}")
    print(f"{dispatches} dispatches, lost: {lost}")


def read_csv(path):
    lines = last = 0
    with open(path, newline="") as file:
        rows = csv.reader(file)
        columns = next(rows)
        ident, start = columns.index("Dispatch_Id"), columns.index("Start_Timestamp")
        for row in rows:
            lines += 1
            if int(row[ident]) != lines or int(row[start]) < last:
                fail(f"line {lines + 1}: {row}")
            last = int(row[start])
    print(f"{lines} lines")


def memory(most, *command):
    status = subprocess.run(command).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"{used:.0f} MiB", file=sys.stderr)
    if used > int(most):
        fail(f"{used:.0f} MiB, {most} are allowed: {' '.join(command)}")
    sys.exit(status)


{"trace": trace, "csv": read_csv, "memory": memory}[sys.argv[1]](*sys.argv[2:])
