// A substitute for HIP that has what devprof uses: a launch is a function of the next library in symbol search order,
// which writes a packet on the calling thread. Here, `kernel` is the function that writes the packet, and `stream` is
// its argument.
#include <stddef.h>
#include <stdint.h>

struct dim3 {
    uint32_t x, y, z;
};

int hipLaunchKernel(void (*kernel)(void *), struct dim3 grid, struct dim3 block, void **arguments, size_t lds,
                    void *stream) {
    (void)grid;
    (void)block;
    (void)arguments;
    (void)lds;
    kernel(stream);
    return 0;
}
