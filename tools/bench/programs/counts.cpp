// Counts the allocations, mutex locks and HSA signals of each thread. It is preloaded after libdevprof.so, to count
// allocations and locks, and it is the first tool in HSA_TOOLS_LIB, so that the calls of all other tools go through it.
// Locks of Rust's standard library are inlined and not counted here; when they block, they are system calls.
#define AMD_INTERNAL_BUILD
#include <dlfcn.h>
#include <hsa/hsa.h>
#include <hsa/hsa_api_trace.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

struct Counts {
  uint64_t allocations, signals, handlers, locks;
};

// In the static TLS block, because an access must not allocate.
static thread_local __attribute__((tls_model("initial-exec"))) Counts counts;

extern "C" {
Counts *thread_counts() { return &counts; }

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) {
  counts.allocations++;
  return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
  counts.allocations++;
  return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size) {
  counts.allocations++;
  return __libc_realloc(old, size);
}

void *memalign(size_t alignment, size_t size) {
  counts.allocations++;
  return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **result, size_t alignment, size_t size) {
  *result = memalign(alignment, size);
  return *result ? 0 : 12; // ENOMEM
}

int pthread_mutex_lock(pthread_mutex_t *mutex) {
  static auto original = reinterpret_cast<int (*)(pthread_mutex_t *)>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  counts.locks++;
  return original(mutex);
}

int pthread_mutex_trylock(pthread_mutex_t *mutex) {
  static auto original = reinterpret_cast<int (*)(pthread_mutex_t *)>(dlsym(RTLD_NEXT, "pthread_mutex_trylock"));
  counts.locks++;
  return original(mutex);
}
}

static decltype(&hsa_signal_create) signal_create;
static decltype(&hsa_amd_signal_create) amd_signal_create;
static decltype(&hsa_amd_signal_async_handler) async_handler;

static hsa_status_t counted_create(hsa_signal_value_t value, uint32_t number, const hsa_agent_t *consumers,
                                   hsa_signal_t *signal) {
  counts.signals++;
  return signal_create(value, number, consumers, signal);
}

static hsa_status_t counted_amd_create(hsa_signal_value_t value, uint32_t number, const hsa_agent_t *consumers,
                                       uint64_t attributes, hsa_signal_t *signal) {
  counts.signals++;
  return amd_signal_create(value, number, consumers, attributes, signal);
}

static hsa_status_t counted_handler(hsa_signal_t signal, hsa_signal_condition_t condition, hsa_signal_value_t value,
                                    hsa_amd_signal_handler handler, void *data) {
  counts.handlers++;
  return async_handler(signal, condition, value, handler, data);
}

extern "C" bool OnLoad(HsaApiTable *table, uint64_t, uint64_t, const char *const *) {
  signal_create = table->core_->hsa_signal_create_fn;
  amd_signal_create = table->amd_ext_->hsa_amd_signal_create_fn;
  async_handler = table->amd_ext_->hsa_amd_signal_async_handler_fn;
  table->core_->hsa_signal_create_fn = counted_create;
  table->amd_ext_->hsa_amd_signal_create_fn = counted_amd_create;
  table->amd_ext_->hsa_amd_signal_async_handler_fn = counted_handler;
  return true;
}

extern "C" void OnUnload() {}
