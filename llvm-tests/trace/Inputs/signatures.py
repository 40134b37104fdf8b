"""Prints a C++ program that compiles only if each function in src/runtime/trace/calls/hip_functions.rs (the argument) has the type that
hip_api_trace.hpp, which HIP's tools use, gives it: as many arguments, each a pointer, an integer of the same size and sign,
an enumeration, a float, or a structure of the same size.
"""

import re
import sys

table = open(sys.argv[1]).read()
KINDS = {"P": "a_pointer", "usize": "integer<size_t>", "u64": "integer<uint64_t>", "u32": "integer<uint32_t>"}
KINDS |= {"i32": "integer<int32_t>", "u16": "integer<uint16_t>", "u8": "integer<uint8_t>", "f32": "same<float>"}
KINDS |= {"Dim3": "same<dim3>", "PitchedPtr": "same<hipPitchedPtr>", "Extent": "same<hipExtent>"}
KINDS |= {"MemLocation": "same<hipMemLocation>", "ChannelFormatDesc": "same<hipChannelFormatDesc>"}
KINDS |= {"IpcHandle": "either<hipIpcMemHandle_t, hipIpcEventHandle_t>", "Error": "same<hipError_t>", "Number": "same<int>"}
# Symbols that the headers replace with others.
RENAMED = {"hipChooseDevice": "hipChooseDeviceR0000", "hipGetDeviceProperties": "hipGetDevicePropertiesR0000"}
RENAMED |= {"hipChooseDeviceR0600": "hipChooseDeviceR0000"}

print("""#define __HIP_PLATFORM_AMD__
#include <cstddef>
#include <cstdint>
#include <type_traits>
// OpenGL's headers are not installed.
typedef unsigned GLuint, GLenum;
enum hipGLDeviceList : unsigned {};
struct hipDeviceProp_tR0000;
#include <hip/amd_detail/hip_api_trace.hpp>
// Enumerations are treated as u32.
template <class Wanted> struct integer {
    template <class T> static constexpr bool is =
        sizeof(T) == sizeof(Wanted) && (std::is_enum_v<T> ? std::is_same_v<Wanted, uint32_t>
                                                          : std::is_integral_v<T> && std::is_signed_v<T> == std::is_signed_v<Wanted>);
};
template <class Wanted> struct same { template <class T> static constexpr bool is = std::is_same_v<T, Wanted>; };
template <class... Wanted> struct either { template <class T> static constexpr bool is = (std::is_same_v<T, Wanted> || ...); };
struct a_pointer { template <class T> static constexpr bool is = std::is_pointer_v<T>; };
template <class Returned, class... Wanted> struct signature {
    template <class R, class... T> static constexpr bool is(R (*)(T...)) {
        if constexpr (sizeof...(T) == sizeof...(Wanted))
            return Returned::template is<R> && (Wanted::template is<T> && ...);
        return false;
    }
};
// src/runtime/exports/hip.rs has these sizes and offsets.
static_assert(sizeof(hipIpcMemHandle_t) == 64 && sizeof(hipIpcEventHandle_t) == 64 && alignof(hipIpcMemHandle_t) == 1);
static_assert(sizeof(hipMemLocation) == 8 && sizeof(hipChannelFormatDesc) == 20 && sizeof(hipPitchedPtr) == 32);
static_assert(offsetof(HIP_LAUNCH_CONFIG, hStream) == 32 && offsetof(hipLaunchConfig_t, stream) == 32);""")
rows = re.findall(r'^ {12}(\w+)(?: = "\w+" is "(\w+)")?\((.*?)\)(?: -> (\w+))?(?: \[work\])?(?: (?:on|with) .*?)?(?:, then .*)?;$', table, re.M)
functions = len(re.findall(r"^ {12}\S", table, re.M))
if len(rows) != functions:
    sys.exit(f"{len(rows)} of {functions} rows can be parsed")
for name, called, types, returned in rows:
    name = RENAMED.get(called or name, called or name)
    wanted = ", ".join([KINDS[returned or "Error"], *(KINDS[kind] for kind in re.findall(r": (\w+)", types))])
    print(f'static_assert(signature<{wanted}>::is(t_{name}()), "{name}");')
