# watch.py TIMES COMMAND…: runs the program TIMES times, reads its profile in a loop while it runs, and kills it at a
# random moment. The profile must be complete at every read, and its count must never decrease. In between, the program
# pauses (snapshot.hip) until the profile has all its launches.
import os
import random
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "Inputs"))
import counts
import profraw

FILE = "gfx1100.default.profraw"
THREADS = 64  # per launch


def read_count():
    """The count of the only counter; fails if the file is not one complete profile."""
    with open(FILE, "rb") as file:
        raw = file.read()
    _, counters, length = profraw.read(raw)
    assert length == len(raw), (length, len(raw))
    [[count]] = counters
    return count


times, command = int(sys.argv[1]), sys.argv[2:]
seed = random.randrange(1 << 32)
random.seed(seed)
for n in range(times):
    for name in (FILE, "pause", "launches"):
        if os.path.exists(name):
            os.remove(name)
    process = subprocess.Popen(command)
    last = 0

    def until(is_true, what):
        """Reads the profile until a condition holds."""
        global last
        begin = time.monotonic()
        while not is_true():
            assert process.poll() is None and time.monotonic() < begin + 120, (seed, what, last)
            if os.path.exists(FILE):
                count = read_count()
                assert count >= last, (seed, count, last)
                last = count
            time.sleep(random.uniform(0, 0.002))

    try:
        until(lambda: os.path.exists(FILE), "no snapshot is written")
        end = time.monotonic() + random.uniform(0, 0.4)
        until(lambda: time.monotonic() > end, "")
        open("pause", "w").close()
        until(lambda: os.path.exists("launches"), "the program does not pause")
        with open("launches") as file:
            launches = int(file.read())
        until(lambda: last == THREADS * launches, f"the profile does not have {launches} launches")
        os.remove("pause")
        end = time.monotonic() + random.uniform(0, 0.2)
        until(lambda: time.monotonic() > end, "")
    finally:
        process.kill()
        process.wait()
    [(_, (_, [count]))] = counts.read("llvm-profdata", [FILE])
    print(f"paused after {launches} launches, killed with {count // THREADS} in the profile")
    assert count >= last, (seed, count, last)
print("complete and recent")
