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


def read(raw):
    """The profile at the start of raw: the lines to print, the counters of each record, and the length."""
    if len(raw) < 16 or struct.unpack_from("<Q", raw)[0] != 0xFF6C70726F667281:
        raise ValueError("not a 64-bit raw profile")
    version = struct.unpack_from("<Q", raw, 8)[0]
    number = version & 0xFFFFFFFF
    if number not in HEADERS:
        raise ValueError(f"raw version {number}")
    fields = HEADERS[number].split()
    h = dict(zip(fields, struct.unpack_from(f"<{len(fields)}Q", raw)))
    lines, all_counters = [f"version {number} flags {version >> 32 << 32:#x}"], []
    at = 8 * len(fields)
    end = at + h["binary_ids"]
    while at < end:
        (length,) = struct.unpack_from("<Q", raw, at)
        lines.append(f"binary id {raw[at + 8 : at + 8 + length].hex()}")
        at += 8 + (length + 7) // 8 * 8
    size = struct.calcsize(RECORDS[number])
    data = at
    counters = data + h["data"] * size + h["padding_before_counters"]
    bitmap = counters + 8 * h["counters"] + h["padding_after_counters"]
    uniform = bitmap + h["bitmap"] + h["padding_after_bitmap"]
    names = uniform
    if number == 11:
        names += 8 * h["uniform_counters"] + h["padding_after_uniform_counters"]
    length = names + (h["names"] + 7) // 8 * 8
    if length > len(raw):
        raise ValueError(f"{len(raw)} bytes, {length} according to its header")
    lines.append(f"records {h['data']}")
    if h["bitmap"]:
        lines.append(f"bitmaps {h['bitmap']} bytes, then {h['padding_after_bitmap']}")
    for i in range(h["data"]):
        record = struct.unpack_from(RECORDS[number], raw, data + i * size)
        if number == 11:
            _, _, counter_ptr, uniform_ptr, bitmap_ptr, _, _, count, *_, wave_size, bitmap_size = record
        else:
            _, _, counter_ptr, bitmap_ptr, _, _, count, *_, bitmap_size = record
        # A record's pointers are relative to the record; the deltas are the distances of the sections from the first
        # record.
        at = counters + counter_ptr - (h["counters_delta"] - i * size - (1 << 64 if h["counters_delta"] >> 63 else 0))
        all_counters.append(list(struct.unpack_from(f"<{count}Q", raw, at)))
        line = f"record {i}: counters {all_counters[-1]}"
        if number == 11:
            delta = h["uniform_counters_delta"]
            at = uniform + uniform_ptr - (delta - i * size - (1 << 64 if delta >> 63 else 0))
            line += f" uniform {list(struct.unpack_from(f'<{count}Q', raw, at))} wave size {wave_size}"
        if bitmap_size:
            delta = h["bitmap_delta"]
            at = bitmap + bitmap_ptr - (delta - i * size - (1 << 64 if delta >> 63 else 0))
            line += f" bitmap {raw[at : at + bitmap_size].hex()}"
        lines.append(line)
    return lines, all_counters, length


if __name__ == "__main__":
    with open(sys.argv[1], "rb") as file:
        contents = file.read()
    while contents:
        lines, _, length = read(contents)
        print(*lines, sep="\n")
        contents = contents[length:]
