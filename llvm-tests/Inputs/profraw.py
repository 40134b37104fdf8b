# Prints a raw profile without llvm-profdata: the header, then each record with its counters, including fields that
# llvm-profdata does not show. The layouts are from InstrProfData.inc (raw versions 10 and 11).
import struct
import sys

HEADERS = {
    10: "magic version binary_ids data padding_before_counters counters padding_after_counters bitmap"
    " padding_after_bitmap names counters_delta bitmap_delta names_delta vtables vnames value_kind_last",
    11: "magic version binary_ids data padding_before_counters counters padding_after_counters bitmap"
    " padding_after_bitmap uniform_counters padding_after_uniform_counters uniform_counters_delta names"
    " counters_delta bitmap_delta names_delta vtables vnames value_kind_last",
}
RECORDS = {10: "<QQqqQQI3H2xI", 11: "<QQqqqQQI3HHI"}
# A counter is a byte: 0 if the block ran (VARIANT_MASK_BYTE_COVERAGE).
BYTE_COVERAGE = 1 << 60


def parse(raw):
    """The profile at the start of raw: the version with its flags, the binary ids, the records, and the length. A record has the
    hash of its function's name, the function's hash, its counters, for version 11 uniform counters and the wave size, and its bitmap."""
    if len(raw) < 16 or struct.unpack_from("<Q", raw)[0] != 0xFF6C70726F667281:
        raise ValueError("not a 64-bit raw profile")
    version = struct.unpack_from("<Q", raw, 8)[0]
    number = version & 0xFFFFFFFF
    if number not in HEADERS:
        raise ValueError(f"raw version {number}")
    fields = HEADERS[number].split()
    h = dict(zip(fields, struct.unpack_from(f"<{len(fields)}Q", raw)))
    binary_ids, records = [], []
    at = 8 * len(fields)
    end = at + h["binary_ids"]
    while at < end:
        (length,) = struct.unpack_from("<Q", raw, at)
        binary_ids.append(raw[at + 8 : at + 8 + length])
        at += 8 + (length + 7) // 8 * 8
    size, width, code = struct.calcsize(RECORDS[number]), *((1, "B") if version & BYTE_COVERAGE else (8, "Q"))
    data = at
    counters = data + h["data"] * size + h["padding_before_counters"]
    bitmap = counters + width * h["counters"] + h["padding_after_counters"]
    uniform = bitmap + h["bitmap"] + h["padding_after_bitmap"]
    names = uniform
    if number == 11:
        names += 8 * h["uniform_counters"] + h["padding_after_uniform_counters"]
    length = names + (h["names"] + 7) // 8 * 8
    if length > len(raw):
        raise ValueError(f"{len(raw)} bytes, {length} according to its header")

    def values(section, pointer, delta, count, code):
        # A record's pointers are relative to the record; the deltas are the distances of the sections from the first
        # record.
        at = section + pointer - (delta - i * size - (1 << 64 if delta >> 63 else 0))
        return list(struct.unpack_from(f"<{count}{code}", raw, at))

    for i in range(h["data"]):
        record = struct.unpack_from(RECORDS[number], raw, data + i * size)
        name, hash, counter_ptr = record[:3]
        bitmap_ptr, count, uniform_counters, wave_size = record[3], record[6], None, None
        if number == 11:
            uniform_ptr, bitmap_ptr, count, wave_size = record[3], record[4], record[7], record[-2]
            # With byte coverage there may be none.
            uniform_counters = values(uniform, uniform_ptr, h["uniform_counters_delta"], count, "Q") if h["uniform_counters"] else []
        own = values(counters, counter_ptr, h["counters_delta"], count, code)
        bits = bytes(values(bitmap, bitmap_ptr, h["bitmap_delta"], record[-1], "B")) if record[-1] else b""
        records.append((name, hash, own, uniform_counters, wave_size, bits))
    return version, binary_ids, records, length


def read(raw):
    """The profile at the start of raw: the lines to print, the counters of each record, and the length."""
    version, binary_ids, records, length = parse(raw)
    lines = [f"version {version & 0xFFFFFFFF} flags {version >> 32 << 32:#x}"]
    lines += [f"binary id {id.hex()}" for id in binary_ids]
    lines.append(f"records {len(records)}")
    fields = HEADERS[version & 0xFFFFFFFF].split()
    bitmaps, padding = struct.unpack_from("<2Q", raw, 8 * fields.index("bitmap"))
    if bitmaps:
        lines.append(f"bitmaps {bitmaps} bytes, then {padding}")
    for i, (_, _, counters, uniform, wave_size, bitmap) in enumerate(records):
        line = f"record {i}: counters {counters}"
        if uniform is not None:
            line += f" uniform {uniform} wave size {wave_size}"
        lines.append(f"{line} bitmap {bitmap.hex()}" if bitmap else line)
    return lines, [record[2] for record in records], length


def parts(raw):
    """The profiles of a file, one after another."""
    while raw:
        found = parse(raw)
        yield found
        raw = raw[found[-1] :]


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        contents = file.read()
    while contents:
        lines, _, length = read(contents)
        print(*lines, sep="\n")
        contents = contents[length:]
