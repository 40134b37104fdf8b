# Writes the raw profile (version 11) that a run of a cubin would leave, with chosen counts:
#
#     raw_profile.py CUBIN OUT FUNCTION=COUNT[,COUNT…]…
#
# FUNCTION is a symbol. Functions that are not named did not run. The records are from the cubin. With byte coverage, a count is 1 or 0.
import struct
import sys

RECORD = 72


def sections(elf):
    (table,) = struct.unpack_from("<Q", elf, 40)
    (number,) = struct.unpack_from("<H", elf, 60)
    return [struct.unpack_from("<IIQQQQIIQQ", elf, table + 64 * n) for n in range(number)]


def symbols(elf):
    """The contents of each symbol, by name. Of symbols without contents, zeros."""
    all_sections, found = sections(elf), []
    for _, kind, _, _, offset, size, link, *_ in all_sections:
        if kind != 2:
            continue
        names = all_sections[link][4]
        for at in range(offset, offset + size, 24):
            name, _, _, index, value, length = struct.unpack_from("<IBBHQQ", elf, at)
            name = elf[names + name : elf.index(b"\0", names + name)].decode()
            if 0 < index < len(all_sections):
                section = all_sections[index]
                start = section[4] + value - section[3]
                found.append((name, bytes(length) if section[1] == 8 else elf[start : start + length]))
    return found


def main(cubin, out, *given):
    counts = {name: [int(n) for n in numbers.split(",")] for name, numbers in (one.rsplit("=", 1) for one in given)}
    all_symbols = symbols(open(cubin, "rb").read())
    records = {name[8:]: contents for name, contents in all_symbols if name.startswith("__profd_")}
    # With byte coverage, a counter is a byte, and there are no uniform counters.
    sizes = {name[8:]: len(contents) for name, contents in all_symbols if name.startswith("__profc_")}
    has_flags = any(sizes[name] < 8 * struct.unpack_from("<I", record, 56)[0] for name, record in records.items())
    width = 1 if has_flags else 8
    names = b"".join(contents for name, contents in all_symbols if name.startswith("__llvm_prf_nm"))
    if unknown := counts.keys() - records.keys():
        sys.exit(f"{cubin} does not count {', '.join(unknown)}, only {', '.join(records)}")
    data, counters = b"", []
    for n, (name, record) in enumerate(records.items()):
        (number,) = struct.unpack_from("<I", record, 56)
        own = counts.get(name, [0] * number)
        if len(own) != number:
            sys.exit(f"{name} has {number} counters")
        # Relative to the record. The counters follow the records, and the uniform counters follow the counters.
        pointer = RECORD * (len(records) - n) + width * len(counters)
        data += record[:16] + struct.pack("<q", pointer) + bytes(8) + record[32:]
        counters += own
    for n in range(0 if has_flags else len(records)):
        at = RECORD * n + 16
        (pointer,) = struct.unpack_from("<q", data, at)
        data = data[: at + 8] + struct.pack("<q", pointer + 8 * len(counters)) + data[at + 16 :]
    delta = RECORD * len(records)
    version, uniform, padding = (11 | 1 << 60, 0, -len(counters) % 8) if has_flags else (11, len(counters), 0)
    header = [0xFF6C70726F667281, version, 0, len(records), 0, len(counters), padding, 0, 0, uniform, 0]
    header += [delta + 8 * len(counters) if uniform else 0, len(names), delta, 0, 0, 0, 0, 2]
    with open(out, "wb") as file:
        file.write(struct.pack(f"<{len(header)}Q", *header) + data)
        file.write(bytes(0xFF * (count == 0) for count in counters) if has_flags else struct.pack(f"<{len(counters)}Q", *counters))
        file.write(bytes(padding + 8 * uniform) + names + bytes(-len(names) % 8))


if __name__ == "__main__":
    main(*sys.argv[1:])
