# watch.py TIMES COMMAND…: runs the program TIMES times, reads its profile in a loop while it runs, and kills it at a
# random moment. The profile must be complete at every read, its count must never decrease, and it must have all
# launches up to half a second before the kill.
import os
import random
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "Inputs"))
import counts

FILE = "gfx1100.default.profraw"
AGE = 500_000_000  # ns
THREADS = 64  # per launch


def read_count():
    """The count of the only counter; fails if the file is not one complete profile."""
    with open(FILE, "rb") as file:
        raw = file.read()
    magic, version, ids, data, before, counters, after, bitmap, after_bitmap, uniform, after_uniform, _, names = (
        struct.unpack_from("<13Q", raw)
    )
    size = 19 * 8 + ids + 72 * data + before + 8 * counters + after + bitmap + after_bitmap
    at = 19 * 8 + ids + 72 * data + before
    size += 8 * uniform + after_uniform + (names + 7) // 8 * 8
    assert magic == 0xFF6C70726F667281 and version & 0xFFFFFFFF == 11, raw[:16]
    assert (data, counters, size) == (1, 1, len(raw)), (data, counters, size, len(raw))
    return struct.unpack_from("<Q", raw, at)[0]


def progress():
    with open("progress", "rb") as file:
        raw = file.read()
    return list(struct.iter_unpack("<QQ", raw[: len(raw) // 16 * 16]))


times, command = int(sys.argv[1]), sys.argv[2:]
seed = random.randrange(1 << 32)
random.seed(seed)
for n in range(times):
    for name in (FILE, "progress"):
        if os.path.exists(name):
            os.remove(name)
    process = subprocess.Popen(command)
    try:
        begin = time.monotonic()
        while not (os.path.exists(FILE) and os.path.exists("progress")):
            assert process.poll() is None and time.monotonic() < begin + 120, "no snapshot is written"
            time.sleep(0.001)
        end = time.monotonic() + random.uniform(0, 2)
        last = reads = 0
        while time.monotonic() < end:
            count = read_count()
            assert count >= last, (seed, count, last)
            last, reads = count, reads + 1
            time.sleep(random.uniform(0, 0.002))
        killed = time.monotonic_ns()
    finally:
        process.kill()
        process.wait()
    done = max((launches for launches, when in progress() if when < killed - AGE), default=0)
    [(_, [count])] = counts.read("llvm-profdata", [FILE]).values()
    print(f"read {reads} times; {count // THREADS} of {progress()[-1][0]} launches, {done} before the last half second")
    assert count >= THREADS * done, (seed, count, done)
print("complete and recent")
