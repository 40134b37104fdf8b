// profile-steps CODE-OBJECT [STEP…]: executes the steps in the given order:
//   set=NAME         __llvm_profile_set_filename(NAME); set: with null
//   env=NAME         sets LLVM_PROFILE_FILE; env: removes it
//   tmp=NAME         sets TMPDIR
//   initialize       __llvm_profile_initialize_file
//   directory=NAME   chdir
//   collect, reset   collects or resets the devices' counters
//   fork             continues in a child, and exits with its status; only before load
//   load             initializes HSA and loads the code object; load=FILE: another one, for the next steps
//   unload           destroys the code object
//   down             hsa_shut_down
//   count=N          adds N to the counters of the fixture's functions
//   pid              prints the process id
//   memory=N         allows N more bytes of address space; memory: no limit
#include "hsa.h"
#include <dlfcn.h>
#include <sys/resource.h>
#include <sys/wait.h>

void __llvm_profile_set_filename(const char *) __attribute__((weak));
void __llvm_profile_initialize_file(void) __attribute__((weak));
int __llvm_profile_hip_collect_device_data(void) __attribute__((weak));
int devprof_reset_counters(void) __attribute__((weak));

static hsa_executable_t executable;

static void count(uint64_t more) {
    const char *names[] = {"__profc__Z6halvedj", "__profc_branch", "__profc_loop"};
    static uint64_t *values;
    if (!values)
        values = host_memory(4096);
    for (int n = 0; n < 3; n++) {
        void *counters = (void *)symbol_u64(executable, names[n], HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS);
        CHECK(hsa_memory_copy(values, counters, 16));
        values[0] += more, values[1] += more;
        CHECK(hsa_memory_copy(counters, values, 16));
    }
}

static void set_environment(const char *name, const char *value) {
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void limit_memory(const char *more) {
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = limit.rlim_max;
    if (more) {
        long pages = 0;
        FILE *file = fopen("/proc/self/statm", "r");
        if (!file || fscanf(file, "%ld", &pages) != 1)
            exit(3);
        fclose(file);
        limit.rlim_cur = pages * getpagesize() + strtoull(more, NULL, 0);
    }
    setrlimit(RLIMIT_AS, &limit);
}

// A function of devprof: the linked one, or the one in a preloaded library.
static int call(int (*function)(void), const char *name) {
    if (!function)
        *(void **)&function = dlsym(RTLD_DEFAULT, name);
    return function();
}

static void step(const char *code_object, char *what) {
    char *value = strchr(what, '=');
    if (value)
        *value++ = 0;
    if (!strcmp(what, "set"))
        __llvm_profile_set_filename(value);
    else if (!strcmp(what, "env"))
        set_environment("LLVM_PROFILE_FILE", value);
    else if (!strcmp(what, "tmp"))
        set_environment("TMPDIR", value);
    else if (!strcmp(what, "initialize"))
        __llvm_profile_initialize_file();
    else if (!strcmp(what, "directory") && value && chdir(value) == 0)
        return;
    else if (!strcmp(what, "collect"))
        printf("collect: %d\n",
               call(__llvm_profile_hip_collect_device_data, "__llvm_profile_hip_collect_device_data"));
    else if (!strcmp(what, "reset"))
        printf("reset: %d\n", call(devprof_reset_counters, "devprof_reset_counters"));
    else if (!strcmp(what, "down"))
        CHECK(hsa_shut_down());
    else if (!strcmp(what, "load")) {
        size_t size;
        void *bytes = read_file(value ? value : code_object, &size);
        if (!gpu.handle)
            start();
        executable = load(bytes, size);
    } else if (!strcmp(what, "unload"))
        CHECK(hsa_executable_destroy(executable));
    else if (!strcmp(what, "count") && value)
        count(strtoull(value, NULL, 0));
    else if (!strcmp(what, "memory"))
        limit_memory(value);
    else if (!strcmp(what, "pid"))
        printf("%d\n", getpid());
    else if (!strcmp(what, "fork")) {
        int status;
        pid_t child = fork();
        if (child != 0) {
            waitpid(child, &status, 0);
            exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
        }
    } else {
        perror(what);
        exit(2);
    }
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int n = 2; n < argc; n++)
        step(argv[1], argv[n]);
}
