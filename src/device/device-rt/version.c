// The raw profile version of code objects whose compiler does not define it (clang's front-end instrumentation). With
// -fprofile-generate every object defines its own, with variant flags, and this archive member is not linked.
#include <stdint.h>

__attribute__((weak, visibility("protected"), used)) const uint64_t __llvm_profile_raw_version = PROFILE_RAW_VERSION;
