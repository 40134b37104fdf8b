// A CUPTI tool that records kernels and the runtime's and driver's launches, and does nothing with the records: the least
// that a trace through CUPTI can cost.
#include <cupti.h>
#include <stdlib.h>

static void requested(uint8_t **buffer, size_t *size, size_t *records) {
    *size = 1 << 20;
    *records = 0;
    if (posix_memalign((void **)buffer, 8, *size))
        abort();
}

static void completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) { free(buffer); }

int InitializeInjection(void) {
    cuptiActivityRegisterCallbacks(requested, completed);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_RUNTIME);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_DRIVER);
    return 1;
}
