// device FIRST-LAST [host]: evaluates the decisions for these inputs, one lane per input. With `host`, the host does so, too.
#define FUNCTION static __host__ __device__ __noinline__
#include "check.h"
#include "decisions.h"
#include <string.h>

extern "C" __global__ void kernel(int *out, unsigned first, unsigned last) {
    unsigned i = threadIdx.x;
    if (i >= first && i <= last)
        out[i] = decide(i);
}

int main(int count, char **arguments) {
    unsigned first, last;
    if (count < 2 || sscanf(arguments[1], "%u-%u", &first, &last) != 2)
        return 2;
    kernel<<<1, 64>>>(device_ints(64), first, last);
    CHECK(hipDeviceSynchronize());
    int sum = 0;
    for (unsigned i = first; count > 2 && i <= last; i++)
        sum += decide(i);
    return sum < 0;
}
