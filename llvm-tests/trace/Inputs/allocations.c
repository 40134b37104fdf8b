// Preloaded after libdevprof.so: counts the allocations of the calling thread, and the allocations of libdevprof.so on
// any thread. The return address shows whether a call comes from libdevprof.so, which is linked with its own standard
// library and calls malloc itself.
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static uintptr_t first, last;
static uint64_t by_devprof;
// In the static TLS block, because accessing it must not allocate.
static _Thread_local __attribute__((tls_model("initial-exec"))) uint64_t here;

uint64_t allocations_here(void) { return here; }

uint64_t allocations_by_devprof(void) { return __atomic_load_n(&by_devprof, __ATOMIC_RELAXED); }

static int find(struct dl_phdr_info *info, size_t size, void *data) {
    (void)size;
    (void)data;
    if (strstr(info->dlpi_name, "libdevprof.so"))
        for (int n = 0; n < info->dlpi_phnum; ++n)
            if (info->dlpi_phdr[n].p_type == PT_LOAD && info->dlpi_phdr[n].p_flags & PF_X) {
                first = info->dlpi_addr + info->dlpi_phdr[n].p_vaddr;
                last = first + info->dlpi_phdr[n].p_memsz;
            }
    return 0;
}

__attribute__((constructor)) static void begin(void) { dl_iterate_phdr(find, NULL); }

static void count(void *caller) {
    ++here;
    if ((uintptr_t)caller >= first && (uintptr_t)caller < last)
        __atomic_fetch_add(&by_devprof, 1, __ATOMIC_RELAXED);
}

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);

void *malloc(size_t size) {
    count(__builtin_return_address(0));
    return __libc_malloc(size);
}

void *calloc(size_t number, size_t size) {
    count(__builtin_return_address(0));
    return __libc_calloc(number, size);
}

void *realloc(void *old, size_t size) {
    count(__builtin_return_address(0));
    return __libc_realloc(old, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    count(__builtin_return_address(0));
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size) {
    count(__builtin_return_address(0));
    *result = __libc_memalign(alignment, size);
    return *result ? 0 : 12; // ENOMEM
}
