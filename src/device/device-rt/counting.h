// The part of the device runtime that is the same for all GPUs. The file that includes it defines DEVPROF_INLINE: how a
// function is declared that is inlined, also at -O0, and never instrumented.
//
// cuda.h is included into every CUDA source of a user, so this file includes no header and all names have a prefix.
#ifndef DEVPROF_COUNTING_H
#define DEVPROF_COUNTING_H

typedef __UINT32_TYPE__ devprof_u32;
typedef __UINT64_TYPE__ devprof_u64;

// A copy of the counters for each compute unit, or for several, so that they do not all add to the same addresses. The
// device runtime has one variable of this type, `__devprof_counter_copies`, which only the host writes. The host identifies
// the layout by the variable's size.
//
// A wave of unit number `unit` adds to the counter at `counter` + offset + (unit & mask) * stride, + full if all of its lanes
// count. On CUDA, (unit & mask) is at most `last`. On AMD GPUs, mask is `last`. If 2^n units with adjacent numbers share a
// copy, the lowest n bits of the mask are 0, and the stride is the size of a copy divided by 2^n. The host adds the copies
// up: of all waves to the counter, of full waves to the uniform counter.
struct devprof_counter_copies {
    devprof_u64 offset; // from a counter to its copy for unit 0 and partial waves (modulo 2^64)
    devprof_u32 stride; // bytes from one unit's copy to the next one's, if each unit has its own
    devprof_u32 full;   // bytes from the counters of partial waves to the counters of full waves; 0 if there are no copies
    devprof_u32 mask;
    devprof_u32 last;   // the highest value of (unit & mask)
};

// Whether a block counts, if one in 2^bits blocks counts. `block` is its number in the entire grid, so that grids that
// extend only in y or z are sampled, too.
DEVPROF_INLINE int devprof_is_sampled(devprof_u32 block, devprof_u32 bits) {
    devprof_u32 low_bits = bits < 32 ? (1u << bits) - 1 : ~0u;
    return (block & low_bits) == 0;
}

#endif
