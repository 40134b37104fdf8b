// A tool for HSA_TOOLS_LIB, listed before devprof: SIGUSR1, whose handler calls exit, interrupts the creation of the
// third HSA signal after the tool was loaded. devprof creates its signals while it holds the lock of the trace.
#define AMD_INTERNAL_BUILD
#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>
#include <signal.h>
#include <stdlib.h>

static AmdExtTable amd_ext;

static hsa_status_t create(hsa_signal_value_t value, uint32_t count, const hsa_agent_t *consumers, uint64_t attributes,
                           hsa_signal_t *signal) {
    static int calls;
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED) == 3)
        raise(SIGUSR1);
    return amd_ext.hsa_amd_signal_create_fn(value, count, consumers, attributes, signal);
}

extern "C" bool OnLoad(HsaApiTable *table, uint64_t, uint64_t, const char *const *) {
    amd_ext = *table->amd_ext_;
    table->amd_ext_->hsa_amd_signal_create_fn = create;
    signal(SIGUSR1, [](int) { exit(7); });
    return true;
}

extern "C" void OnUnload() {}
