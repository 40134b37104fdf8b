// Counts the executed instructions of one kernel, by their position in the GPU's machine code, with CUPTI's SASS metrics. CUPTI
// patches the machine code, so this is independent of devprof's flags, and of who compiled the kernel.
//
// It is injected: CUDA_INJECTION64_PATH=sass_counts.so. SASS_KERNEL=N: it counts the Nth of the kernels that the program launches,
// without repetitions. The file SASS_OUT gets a line for each instruction that CUPTI has patched (checksum of the cubin, index and
// position in the function, count, name), the name of this kernel, and the number of kernels that the program has launched.
//
// On an H200 (driver 580.159.04, CUPTI 13.0), only the first kernel that is launched after the metric was set has records, and at
// most 1023. Another kernel of the same process has none, even after all was reset, so each needs a run of its own.
#define _GNU_SOURCE
#include <cuda.h>
#include <cupti.h>
#include <cupti_profiler_target.h>
#include <cupti_sass_metrics.h>
#include <cupti_target.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Of threads whose predicate is true; and if a GPU has no such metric, of all threads.
static const char *const METRICS[] = {"smsp__sass_thread_inst_executed_pred_on", "smsp__sass_thread_inst_executed", "smsp__sass_inst_executed"};
enum { KERNELS = 1024 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static CUcontext context;
static FILE *out;
static char *kernels[KERNELS];
static int launched, is_enabled, wanted;

static int failed(CUptiResult result, const char *call) {
    if (result != CUPTI_SUCCESS) {
        const char *text = "";
        cuptiGetResultString(result, &text);
        fprintf(stderr, "sass_counts: %s: %d %s\n", call, result, text ? text : "");
    }
    return result != CUPTI_SUCCESS;
}
#define FAILED(call) failed(call, #call)
#define PARAMS(type, name) type##_Params name = {type##_Params_STRUCT_SIZE}

static int configure(void) {
    PARAMS(CUpti_Profiler_Initialize, initialize);
    PARAMS(CUpti_Device_GetChipName, chip);
    if (FAILED(cuptiProfilerInitialize(&initialize)) || FAILED(cuptiDeviceGetChipName(&chip)))
        return 0;
    for (unsigned i = 0; i < sizeof METRICS / sizeof *METRICS; i++) {
        const char *name = METRICS[i];
        PARAMS(CUpti_SassMetrics_GetProperties, properties);
        properties.pChipName = chip.pChipName;
        properties.pMetricName = name;
        if (cuptiSassMetricsGetProperties(&properties) != CUPTI_SUCCESS)
            continue;
        static CUpti_SassMetrics_Config config;
        config.metricId = properties.metric.metricId;
        config.outputGranularity = CUPTI_SASS_METRICS_OUTPUT_GRANULARITY_GPU;
        PARAMS(CUpti_SassMetricsSetConfig, set);
        set.pConfigs = &config;
        set.numOfMetricConfig = 1;
        if (FAILED(cuptiSassMetricsSetConfig(&set)))
            continue;
        fprintf(out, "# metric %s\n", name);
        return 1;
    }
    return 0;
}

static void enable(void) {
    PARAMS(CUpti_SassMetricsEnable, parameters);
    parameters.ctx = context;
    parameters.enableLazyPatching = 1;
    is_enabled = !FAILED(cuptiSassMetricsEnable(&parameters));
}

// Writes the records that CUPTI has.
static size_t collect(void) {
    PARAMS(CUpti_SassMetricsGetDataProperties, properties);
    properties.ctx = context;
    if (FAILED(cuptiSassMetricsGetDataProperties(&properties)))
        return 0;
    size_t records = properties.numOfPatchedInstructionRecords, instances = properties.numOfInstances;
    fprintf(out, "# %zu records, %zu instances\n", records, instances);
    if (records == 0)
        return 0;
    CUpti_SassMetrics_Data *data = calloc(records, sizeof *data);
    CUpti_SassMetrics_InstanceValue *values = calloc(records * instances, sizeof *values);
    for (size_t i = 0; i < records; i++) {
        data[i].structSize = sizeof *data;
        data[i].pInstanceValues = values + i * instances;
    }
    PARAMS(CUpti_SassMetricsFlushData, flush);
    flush.ctx = context;
    flush.numOfPatchedInstructionRecords = records;
    flush.numOfInstances = instances;
    flush.pMetricsData = data;
    if (FAILED(cuptiSassMetricsFlushData(&flush)))
        records = 0;
    for (size_t i = 0; i < records; i++) {
        unsigned long long sum = 0;
        for (size_t j = 0; j < instances; j++)
            sum += data[i].pInstanceValues[j].value;
        fprintf(out, "%08x %u %x %llu %s\n", data[i].cubinCrc, data[i].functionIndex, data[i].pcOffset, sum, data[i].functionName);
    }
    free(values);
    free(data);
    return records;
}

// CUPTI may not give all records at once.
static void end(void) {
    if (!is_enabled)
        return;
    is_enabled = 0;
    // The driver is loaded: it has injected this library.
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    CUresult (*synchronize)(void) = driver ? (CUresult(*)(void))dlsym(driver, "cuCtxSynchronize") : NULL;
    if (!synchronize || synchronize() != CUDA_SUCCESS)
        fprintf(stderr, "sass_counts: cannot wait for the kernels\n");
    while (collect() > 0)
        ;
    PARAMS(CUpti_SassMetricsDisable, disable);
    disable.ctx = context;
    if (!FAILED(cuptiSassMetricsDisable(&disable)) && disable.numOfDroppedRecords)
        fprintf(stderr, "sass_counts: %zu dropped\n", disable.numOfDroppedRecords);
}

static void finish(void) {
    if (!out)
        return;
    end();
    if (wanted <= launched)
        fprintf(out, "# judged %s\n", kernels[wanted - 1]);
    fprintf(out, "# kernels %d\n", launched);
    fclose(out);
    out = NULL;
}

static void start(CUcontext created) {
    context = created;
    if (configure())
        enable();
}

// The number of a kernel that is launched. 0: there are too many.
static int number(const char *name) {
    for (int i = 0; i < launched; i++)
        if (strcmp(kernels[i], name) == 0)
            return i + 1;
    if (launched == KERNELS)
        return 0;
    kernels[launched] = strdup(name);
    return ++launched;
}

static void observe(void *unused, CUpti_CallbackDomain domain, CUpti_CallbackId id, const void *event) {
    if (!out)
        return;
    if (domain == CUPTI_CB_DOMAIN_RESOURCE) {
        const CUpti_ResourceData *resource = event;
        if (id == CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING && resource->context == context)
            end();
        return;
    }
    const CUpti_CallbackData *call = event;
    if (!call->symbolName || call->callbackSite != CUPTI_API_ENTER)
        return;
    pthread_mutex_lock(&mutex);
    if (number(call->symbolName) == wanted && !context)
        start(call->context);
    pthread_mutex_unlock(&mutex);
}

int InitializeInjection(void) {
    CUpti_SubscriberHandle subscriber;
    const char *path = getenv("SASS_OUT"), *kernel = getenv("SASS_KERNEL");
    wanted = kernel ? atoi(kernel) : 0;
    if (wanted < 1 || !path || !(out = fopen(path, "w")) || cuptiSubscribe(&subscriber, observe, NULL) != CUPTI_SUCCESS) {
        fprintf(stderr, "sass_counts: no SASS_KERNEL, or SASS_OUT cannot be written, or another tool uses CUPTI\n");
        return 0;
    }
    static const CUpti_CallbackId launches[] = {
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz, CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel,
        CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz,
    };
    for (unsigned i = 0; i < sizeof launches / sizeof *launches; i++)
        cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_DRIVER_API, launches[i]);
    cuptiEnableCallback(1, subscriber, CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
    atexit(finish);
    return 1;
}
