# profile.py CUBIN COUNTS…: prints a profile in LLVM's text format, with the names and hashes of the records in a cubin, in
# the order of the symbols' names. COUNTS are the values of one record's counters, separated by commas.
import hashlib
import struct
import sys
import zlib

import raw_profile


def names(blob):
    # Lengths are ULEB128. The test's names are short: one byte each.
    plain, packed = blob[0], blob[1]
    text = zlib.decompress(blob[2 : 2 + packed]) if packed else blob[2 : 2 + plain]
    return text.decode().split("\x01")


with open(sys.argv[1], "rb") as file:
    found = dict(sorted(raw_profile.symbols(file.read())))
known = {hashlib.md5(name.encode()).digest()[:8]: name for name in names(found["__llvm_prf_nm"])}
records = {symbol: record for symbol, record in found.items() if symbol.startswith("__profd_")}
for record, counts in zip(records.values(), sys.argv[2:], strict=True):
    name = known[record[:8]]
    hash, number = struct.unpack_from("<Q", record, 8)[0], struct.unpack_from("<I", record, 56)[0]
    values = counts.split(",")
    assert len(values) == number, f"{name} has {number} counters"
    print(name, hash, number, *values, sep="\n", end="\n\n")
