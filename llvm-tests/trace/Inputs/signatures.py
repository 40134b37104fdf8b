"""Prints a C++ program that compiles only if each function in src/trace/hip_calls.rs (the first argument) has the
signature in HIP's headers (the other arguments): as many arguments, each a pointer, an integer of the same size and
sign, an enumeration, or a structure of the same size.
"""

import re
import sys

table, *headers = (open(file).read() for file in sys.argv[1:])
text = "\n".join(headers)
KINDS = {"P": "a_pointer", "usize": "integer<size_t>", "u64": "integer<uint64_t>", "u32": "integer<uint32_t>"}
KINDS |= {"i32": "integer<int32_t>", "u16": "integer<uint16_t>", "u8": "integer<uint8_t>"}
KINDS |= {"Dim3": "same<dim3>", "PitchedPtr": "same<hipPitchedPtr>", "Extent": "same<hipExtent>"}

print("""#define __HIP_PLATFORM_AMD__
#include <cstdint>
#include <type_traits>
#include <hip/hip_runtime_api.h>
#include <hip/hip_ext.h>
// Enumerations are treated as u32.
template <class Wanted> struct integer {
    template <class T> static constexpr bool is =
        sizeof(T) == sizeof(Wanted) && (std::is_enum_v<T> ? std::is_same_v<Wanted, uint32_t>
                                                          : std::is_integral_v<T> && std::is_signed_v<T> == std::is_signed_v<Wanted>);
};
template <class Wanted> struct same { template <class T> static constexpr bool is = std::is_same_v<T, Wanted>; };
struct a_pointer { template <class T> static constexpr bool is = std::is_pointer_v<T>; };
template <class... Wanted> struct arguments {
    template <class... T> static constexpr bool are(hipError_t (*)(T...)) {
        if constexpr (sizeof...(T) == sizeof...(Wanted))
            return (Wanted::template is<T> && ...);
        return false;
    }
};""")
rows = re.findall(r'^    (hip\w+)(?: = "\w+" is "(\w+)")?\((.*)\);$', table, re.M)
functions = table[table.index("functions! {") :].count(";\n")
if len(rows) != functions:
    sys.exit(f"{len(rows)} of {functions} rows can be parsed")
for name, called, types in rows:
    name = called or name
    declared = re.search(rf"^(?:extern \"C\" )?hipError_t {name}\(([^;{{]*)\)\s*;", text, re.M)
    if not declared:
        sys.exit(f"{name} is in none of {sys.argv[2:]}")
    declared_types = re.sub(r"\s*__dparm\([^()]*\)", "", declared[1])
    wanted = ", ".join(KINDS[kind] for kind in re.findall(r": (\w+)", types))
    print(f"constexpr hipError_t (*the_{called and 'cpp_'}{name})({declared_types}) = {name};")
    print(f'static_assert(arguments<{wanted}>::are(the_{called and "cpp_"}{name}), "{name}");')
