# fatbin.py OUT ENTRY…: writes a fat binary. An entry is KIND:ARCH:FLAGS:FILE, with KIND cubin or ptx, and FLAGS in hexadecimal.
import struct
import sys

entries = b""
for word in sys.argv[2:]:
    kind, arch, flags, path = word.split(":")
    content = open(path, "rb").read()
    content += bytes(-len(content) % 8)
    header = struct.pack("<HHIQIIIIIIQQQ", 2 if kind == "cubin" else 1, 0x101, 64, len(content), 0, 0, 0, int(arch), 0, 0, int(flags, 16), 0, 0)
    entries += header + content
with open(sys.argv[1], "wb") as out:
    out.write(struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries)
