// A thread requests its first copy under a lock for which a library's destructor waits in dlclose, as HIP's streams and
// __hipUnregisterFatBinary do.
#include "packets.h"
#include <dlfcn.h>

#ifdef LIBRARY
extern void in_library(void);
__attribute__((destructor)) static void call(void) { in_library(); }
#else

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;

static hsa_signal_t copy(char *memory) {
    hsa_signal_t done = signal_of(1);
    CHECK(hsa_amd_memory_async_copy(memory + 64, cpu, memory, cpu, 8, 0, NULL, done));
    return done;
}

static void *copy_locked(void *memory) {
    pthread_mutex_lock(&lock);
    pthread_barrier_wait(&both);
    // Until the other thread waits for the lock: it has the loader's lock then.
    usleep(100000);
    hsa_signal_t done = copy(memory);
    pthread_mutex_unlock(&lock);
    await(done);
    return NULL;
}

void in_library(void) {
    pthread_barrier_wait(&both);
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

int main(int argc, char **argv) {
    (void)argc;
    // A hang is a failure.
    alarm(120);
    begin(argv[1]);
    char *memory = host_memory(4096);
    // The simulator's threads start with the first copy.
    await(copy(memory));
    pthread_t thread;
    void *library = dlopen("./library.so", RTLD_NOW);
    pthread_barrier_init(&both, NULL, 2);
    pthread_create(&thread, NULL, copy_locked, memory);
    dlclose(library);
    pthread_join(thread, NULL);
    printf("closed\n");
    end();
}
#endif
