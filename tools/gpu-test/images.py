# Reads the instrumented functions in the images of a program, so that wrong names in COUNTS lines are found without a
# GPU.
import hashlib
import struct
import zlib

MACHINE = 190  # EM_CUDA
SYMBOLS = 2  # SHT_SYMTAB
# A record of raw profile version 11: offsets of the name's hash and of the number of counters.
NAME, COUNTERS = 0, 56


def images(data):
    """The cubins in a file: the file itself, or parts of its fat binaries, which are not compressed."""
    at = data.find(b"\x7fELF")
    while at >= 0:
        if struct.unpack_from("<H", data, at + 18)[0] == MACHINE:
            yield memoryview(data)[at:]
        at = data.find(b"\x7fELF", at + 4)


def symbols(image):
    """Name, offset in the image and size of each defined symbol."""
    (sections,) = struct.unpack_from("<Q", image, 40)
    (count,) = struct.unpack_from("<H", image, 60)
    headers = [struct.unpack_from("<IIQQQQIIQQ", image, sections + 64 * n) for n in range(count)]
    for _, kind, _, _, offset, size, link, *_ in headers:
        if kind != SYMBOLS:
            continue
        strings = bytes(image[headers[link][4] :][: headers[link][5]])
        for at in range(offset, offset + size, 24):
            name, _, _, section, value, length = struct.unpack_from("<IBBHQQ", image, at)
            if 0 < section < count:
                yield strings[name : strings.index(b"\0", name)].decode(), headers[section][4] + value, length


def leb128(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at


def names(data):
    """The function names in the contents of `__llvm_prf_nm`: blocks of names, compressed or not."""
    at = 0
    while at < len(data) and data[at]:
        size, at = leb128(data, at)
        compressed, at = leb128(data, at)
        length = compressed or size
        block = bytes(data[at : at + length])
        yield from (zlib.decompress(block) if compressed else block).split(b"\x01")
        at += length


def functions(path):
    """The instrumented functions in a file: {name: number of counters}."""
    with open(path, "rb") as file:
        data = file.read()
    found = {}
    for image in images(data):
        known, records = {}, []
        for symbol, offset, size in symbols(image):
            if symbol.startswith("__llvm_prf_nm"):
                for name in names(image[offset : offset + size]):
                    known[hashlib.md5(name).digest()[:8]] = name.decode()
            elif symbol.startswith("__profd_"):
                records.append(offset)
        for offset in records:
            name = known[bytes(image[offset + NAME : offset + NAME + 8])]
            (found[name],) = struct.unpack_from("<I", image, offset + COUNTERS)
    return found
