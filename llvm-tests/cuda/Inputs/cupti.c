// A library with functions of CUPTI and of the CUDA driver, without a device. The program that is linked with it says what
// CUDA does: fake_call_begins, fake_kernel, … The records have the layouts of NVIDIA's headers.
#include "cupti.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static CUpti_CallbackFunc callback;
static char enabled[6][1024];
static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static CUpti_TimestampCallbackFunc timestamp;
static int kinds[64];
static size_t dropped;
static uint8_t *buffer;
static size_t size, used;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle *subscriber, CUpti_CallbackFunc function, void *user) {
    *subscriber = (CUpti_SubscriberHandle)1;
    callback = function;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) { return CUPTI_SUCCESS; }
CUptiResult cuptiEnableCallback(uint32_t on, CUpti_SubscriberHandle s, CUpti_CallbackDomain domain, CUpti_CallbackId id) {
    enabled[domain][id] = on;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiEnableDomain(uint32_t on, CUpti_SubscriberHandle s, CUpti_CallbackDomain domain) {
    memset(enabled[domain], on, sizeof enabled[domain]);
    return CUPTI_SUCCESS;
}
CUptiResult cuptiGetVersion(uint32_t *version) {
    const char *other = getenv("FAKE_CUPTI_VERSION");
    *version = other ? atoi(other) : CUPTI_API_VERSION;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc r, CUpti_BuffersCallbackCompleteFunc c) {
    request = r, complete = c;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc function) {
    timestamp = function;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, size_t *size, void *value) { return CUPTI_SUCCESS; }
CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
    kinds[kind] = 1;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
    kinds[kind] = 0;
    return CUPTI_SUCCESS;
}

static size_t length(CUpti_ActivityKind kind) {
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: return sizeof(CUpti_ActivityKernel10);
    case CUPTI_ACTIVITY_KIND_MEMCPY: return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET: return sizeof(CUpti_ActivityMemset4);
    default: abort();
    }
}
CUptiResult cuptiActivityGetNextRecord(uint8_t *start, size_t valid, CUpti_Activity **record) {
    uint8_t *next = *record ? (uint8_t *)*record + length((*record)->kind) : start;
    if (next >= start + valid)
        return CUPTI_ERROR_MAX_LIMIT_REACHED;
    *record = (CUpti_Activity *)next;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *number) {
    *number = dropped;
    dropped = 0;
    return CUPTI_SUCCESS;
}
// Handles of other programs are not numbers.
CUptiResult cuptiGetContextId(CUcontext context, uint32_t *number) {
    *number = (uintptr_t)context < 0x100 ? (uintptr_t)context : 1;
    return CUPTI_SUCCESS;
}
CUptiResult cuptiGetStreamIdEx(CUcontext context, CUstream stream, uint8_t per_thread, uint32_t *number) {
    *number = (uint32_t)(uintptr_t)stream;
    return CUPTI_SUCCESS;
}
// FAKE_RUNNING: kernels without times still run, and never end. A buffer with one is only delivered if that is forced.
static int is_running;
static void deliver(void) {
    if (buffer)
        complete(NULL, 0, buffer, size, used);
    buffer = NULL;
    is_running = 0;
}
CUptiResult cuptiActivityFlushAll(uint32_t flag) {
    pthread_mutex_lock(&lock);
    if (flag == CUPTI_ACTIVITY_FLAG_FLUSH_FORCED || !is_running)
        deliver();
    pthread_mutex_unlock(&lock);
    return CUPTI_SUCCESS;
}

// The program's side.

uint64_t fake_now(void) { return timestamp ? timestamp() : 0; }

void fake_drop(size_t number) { dropped += number; }

// A copy of a record, if its kind is enabled.
void fake_record(const void *record) {
    CUpti_ActivityKind kind = ((const CUpti_Activity *)record)->kind;
    size_t bytes = length(kind), records;
    pthread_mutex_lock(&lock);
    if (kinds[kind]) {
        if (buffer && used + bytes > size)
            deliver();
        if (!buffer) {
            request(&buffer, &size, &records);
            used = 0;
        }
        if (buffer) {
            for (size_t n = 0; n < bytes; n++)
                if (buffer[used + n])
                    abort(); // devprof has said that it clears the buffers
            memcpy(buffer + used, record, bytes);
            used += bytes;
            if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && !((const CUpti_ActivityKernel10 *)record)->start)
                is_running = getenv("FAKE_RUNNING") != NULL;
        } else {
            dropped++;
        }
    }
    pthread_mutex_unlock(&lock);
}

static void call(CUpti_ApiCallbackSite site, CUpti_CallbackDomain domain, CUpti_CallbackId id, const char *name,
                 const void *arguments, uint32_t correlation, int *status) {
    CUpti_CallbackData data = {.callbackSite = site, .functionName = name, .functionParams = arguments,
                               .functionReturnValue = status, .correlationId = correlation};
    if (callback && enabled[domain][id])
        callback(NULL, domain, id, &data);
}
void fake_call_begins(CUpti_CallbackDomain domain, CUpti_CallbackId id, const char *name, const void *arguments,
                      uint32_t correlation) {
    call(CUPTI_API_ENTER, domain, id, name, arguments, correlation, NULL);
}
void fake_call_ends(CUpti_CallbackDomain domain, CUpti_CallbackId id, const char *name, const void *arguments,
                    uint32_t correlation, int status) {
    call(CUPTI_API_EXIT, domain, id, name, arguments, correlation, &status);
}
void fake_resource(CUpti_CallbackId id, CUcontext context, CUstream stream) {
    CUpti_ResourceData data = {.context = context, .resourceHandle.stream = stream};
    if (callback && enabled[CUPTI_CB_DOMAIN_RESOURCE][id])
        callback(NULL, CUPTI_CB_DOMAIN_RESOURCE, id, &data);
}
// A module is loaded or about to be unloaded.
void fake_module(CUpti_CallbackId id, CUcontext context, uint32_t number, const void *cubin, size_t size) {
    CUpti_ModuleResourceData module = {.moduleId = number, .cubinSize = size, .pCubin = cubin};
    CUpti_ResourceData data = {.context = context, .resourceDescriptor = &module};
    if (callback && enabled[CUPTI_CB_DOMAIN_RESOURCE][id])
        callback(NULL, CUPTI_CB_DOMAIN_RESOURCE, id, &data);
}

// The driver.

CUresult cuInit(unsigned flags) {
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    // A library that does not exist is ignored.
    int (*initialize)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
    if (initialize && initialize() != 1)
        abort();
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int *count) {
    *count = 2;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    *device = ordinal;
    return ordinal < 2 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}
CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    snprintf(name, length, "Fake GPU %d", device);
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = 9; return CUDA_SUCCESS;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = 0; return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}
CUresult cuCtxPushCurrent(CUcontext context) { return CUDA_SUCCESS; }
CUresult cuCtxPopCurrent(CUcontext *context) { return CUDA_SUCCESS; }
CUresult cuCtxGetDevice(CUdevice *device) { return *device = 0, CUDA_SUCCESS; }
static int synchronizations;
CUresult cuCtxSynchronize(void) {
    synchronizations++;
    while (getenv("FAKE_RUNNING"))
        pause();
    return CUDA_SUCCESS;
}
int fake_synchronizations(void) { return synchronizations; }
CUresult cuCtxGetCurrent(CUcontext *context) { return *context = NULL, CUDA_SUCCESS; }
CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    *flags = 0;
    *active = 1;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    *context = (CUcontext)0x100;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return CUDA_SUCCESS; }
CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode) { return CUDA_SUCCESS; }
// For modules, which no program of these tests loads.
CUresult cuModuleGetGlobal(CUdeviceptr *address, size_t *size, CUmodule module, const char *name) { abort(); }
CUresult cuLibraryGetModule(CUmodule *module, CUlibrary library) { abort(); }
CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name) { abort(); }
CUresult cuStreamCreate(CUstream *stream, unsigned flags) { abort(); }
CUresult cuStreamQuery(CUstream stream) { abort(); }
CUresult cuStreamSynchronize(CUstream stream) { abort(); }
CUresult cuMemGetInfo(size_t *free, size_t *size) { abort(); }
CUresult cuMemAlloc(CUdeviceptr *address, size_t size) { abort(); }
CUresult cuMemFree(CUdeviceptr address) { abort(); }
CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream) { abort(); }
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void *from, size_t size, CUstream stream) { abort(); }
CUresult cuMemcpyDtoHAsync(void *to, CUdeviceptr from, size_t size, CUstream stream) { abort(); }
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t size, CUstream stream) { abort(); }
