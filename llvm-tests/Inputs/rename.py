# rename.py LIBRARY FILE [SONAME]: copies a library with another soname, which is not longer than its own, or without one.
import os
import struct
import sys

DT_NULL, DT_STRTAB, DT_SONAME, DT_DEBUG = 0, 5, 14, 21
image = bytearray(open(sys.argv[1], "rb").read())
offset, size, count = struct.unpack_from("<Q", image, 32)[0], *struct.unpack_from("<HH", image, 54)
headers = [struct.unpack_from("<IIQQQQQQ", image, offset + n * size) for n in range(count)]


def offset_of(address):
    return next(h[2] + address - h[3] for h in headers if h[0] == 1 and h[3] <= address < h[3] + h[5])


at = next(h[2] for h in headers if h[0] == 2)
entries = {}
while (tag := struct.unpack_from("<Q", image, at)[0]) != DT_NULL:
    entries[tag] = at, struct.unpack_from("<Q", image, at + 8)[0]
    at += 16
entry, name = entries[DT_SONAME]
start = offset_of(entries[DT_STRTAB][1]) + name
old = image[start : image.index(0, start)]
if len(sys.argv) > 3:
    new = sys.argv[3].encode()
    assert len(new) <= len(old)
    image[start : start + len(old)] = new.ljust(len(old), b"\0")
else:
    # The dynamic linker ignores this entry in a library.
    struct.pack_into("<Q", image, entry, DT_DEBUG)
os.makedirs(os.path.dirname(sys.argv[2]) or ".", exist_ok=True)
open(sys.argv[2], "wb").write(image)
