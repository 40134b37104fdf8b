# profile.py CUBIN COUNTS…: prints a profile in LLVM's text format, with the names and hashes of the records in a cubin, in
# the order of the symbols' names. COUNTS are the values of one record's counters, separated by commas.
import re
import struct
import subprocess
import sys
import zlib


def records(path):
    with open(path, "rb") as file:
        data = file.read()
    sections = {}
    for line in subprocess.check_output(["llvm-readelf", "-SW", path], text=True).splitlines():
        number, bracket, rest = line.strip().removeprefix("[").partition("]")
        if bracket and number.strip().isdigit():
            fields = rest.split()
            # Name, type, address, offset.
            sections[int(number)] = int(fields[3], 16) if len(fields) > 4 and fields[1] != "NOBITS" else None
    found = []
    for line in subprocess.check_output(["llvm-readelf", "-sW", path], text=True).splitlines():
        fields = line.split()
        if len(fields) == 8 and fields[-1].startswith(("__profd_", "__llvm_prf_nm")):
            start = sections[int(fields[6])] + int(fields[1], 16)
            found.append((fields[-1], data[start : start + int(fields[2])]))
    return dict(sorted(found))


def names(blob):
    # Lengths are ULEB128. The test's names are short: one byte each.
    plain, packed = blob[0], blob[1]
    text = zlib.decompress(blob[2 : 2 + packed]) if packed else blob[2 : 2 + plain]
    return text.decode().split("\x01")


found = records(sys.argv[1])
known = names(found.pop("__llvm_prf_nm"))
for (symbol, record), counts in zip(found.items(), sys.argv[2:], strict=True):
    name = next(name for name in known if re.sub("[:;]", "_", name) == symbol.removeprefix("__profd_"))
    hash, number = struct.unpack_from("<Q", record, 8)[0], struct.unpack_from("<I", record, 56)[0]
    values = counts.split(",")
    assert len(values) == number, f"{name} has {number} counters"
    print(name, hash, number, *values, sep="\n", end="\n\n")
