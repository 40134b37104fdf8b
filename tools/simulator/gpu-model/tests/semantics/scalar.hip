// Integer arithmetic on uniform values. clang uses scalar instructions, which have 32 and 64 bits.
#include "integer.h"

template <> constexpr bool scalar<int32_t> = true;
template <> constexpr bool scalar<uint32_t> = true;
template <> constexpr bool scalar<int64_t> = true;
template <> constexpr bool scalar<uint64_t> = true;

int main(int argc, char **argv) {
    start(argc, argv);
    arithmetic<int32_t>();
    arithmetic<uint32_t>();
    arithmetic<int64_t>();
    arithmetic<uint64_t>();
    high_product<int32_t, int64_t>();
    high_product<uint32_t, uint64_t>();
    high_product<int64_t, __int128>();
    high_product<uint64_t, unsigned __int128>();
    return finish();
}
