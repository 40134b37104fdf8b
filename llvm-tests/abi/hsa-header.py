"""Prints a C++ program that compiles only if the numbers and layouts in src/hsa/types.rs and src/hsa/tool.rs (the
arguments) are those of HSA's headers.

Each constant there has the header's name for it in backquotes, first thing in its comment.
"""

import re
import sys

source = "".join(open(file).read() for file in sys.argv[1:])
print("#define AMD_INTERNAL_BUILD\n#include <cstddef>\n#include <hsa/hsa.h>\n#include <hsa/hsa_ext_amd.h>\n#include <hsa/hsa_ven_amd_loader.h>\n#include <hsa/hsa_api_trace.h>\n#include <hsa/amd_hsa_signal.h>\n#include <hsa/amd_hsa_queue.h>")
constants = re.findall(
    r"/// `(HSA_\w+)`[^\n]*\n(?:\s*///[^\n]*\n)*\s*pub const \w+: \w+ = (?:Status\()?(\w+)\)?;", source
)
expected = len(re.findall(r"\bconst \w+: (?:u16|u32|u64|Status) =", source))
if len(constants) != expected:
    sys.exit(f"{len(constants)} of {expected} constants name their origin in the header")
for name, value in constants:
    print(f'static_assert({name} == {value}, "{name}");')

functions = re.search(r"pub struct LoaderTable \{(.*?)\n\}", source, re.S)[1]
for place, name in enumerate(re.findall(r"pub (\w+):", functions)):
    print(f'static_assert(offsetof(hsa_ven_amd_loader_1_03_pfn_t, hsa_ven_amd_loader_{name}) == {8 * place}, "{name}");')

print("static_assert(sizeof(ApiTableVersion) == 16);")
print("static_assert(offsetof(HsaApiTable, core_) == 16);")
print("static_assert(offsetof(HsaApiTable, amd_ext_) == 24);")


def table(ours, theirs):
    """Offsets of the functions in a table, between runs of functions that are not used."""
    offset = 16
    for name, unused in re.findall(r"^    (?:pub )?(\w+):\s+(?:Unused<(\d+)>)?", re.search(rf"pub struct {ours} \{{(.*?)\n\}}", source, re.S)[1], re.M):
        if name == "version":
            continue
        if not unused:
            print(f'static_assert(offsetof({theirs}, {name}_fn) == {offset}, "{name}");')
        offset += 8 * int(unused or 1)


if "pub struct CoreTable" in source:
    table("CoreTable", "CoreApiTable")
    table("AmdExtTable", "AmdExtTable")
slots = re.findall(r"^    (Core|AmdExt) (\d+) (hsa_\w+): fn", source, re.M)
if "macro_rules! api" in source and len(slots) < 20:
    sys.exit(f"{len(slots)} of HSA's functions have a slot")
for where, slot, name in slots:
    theirs = {"Core": "CoreApiTable", "AmdExt": "AmdExtTable"}[where]
    print(f'static_assert(offsetof({theirs}, {name}_fn) == 16 + 8 * ({slot} - 1), "{name}");')
first = re.search(r"const FIRST: usize = (\d+);", source)
if first:
    print(f'static_assert(sizeof(AmdExtTable) == 16 + 8 * {first[1]}, "the slots that ROCr 7.2 has");')
for name, field in [("START", "start_ts"), ("END", "end_ts")]:
    offset = re.search(rf"AMD_SIGNAL_{name}_TS: usize = (\d+);", source)[1]
    print(f'static_assert(offsetof(amd_signal_t, {field}) == {offset}, "{field}");')
for field in ["read_dispatch_id", "write_dispatch_id"]:
    offset = re.search(rf"AMD_QUEUE_{field.upper()}: usize = (\d+);", source)[1]
    print(f'static_assert(offsetof(amd_queue_t, {field}) == {offset}, "{field}");')
print("static_assert(offsetof(hsa_queue_t, base_address) == 8 && offsetof(hsa_queue_t, doorbell_signal) == 16 && offsetof(hsa_queue_t, size) == 24);")
