// HIP as far as devprof sees it: a launch is a function of the library behind it in the order of symbol search, which
// writes a packet on the calling thread. Here the kernel is the function that writes, and the stream what it gets.
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
