// The raw profile version of code objects whose compiler leaves it to the runtime (clang's front-end
// instrumentation). With -fprofile-generate every object has its own, with variant flags, and this archive member
// is not taken.
#include <stdint.h>

__attribute__((weak, visibility("protected"), used)) const uint64_t __llvm_profile_raw_version = PROFILE_RAW_VERSION;
