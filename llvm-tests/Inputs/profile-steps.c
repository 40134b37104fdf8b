// profile-steps CODE-OBJECT [NAME[=VALUE]…]: executes the steps of step() in the given order.
#include "execute.h"
#include "hsa.h"
#include <sys/resource.h>
#include <sys/wait.h>

void __llvm_profile_set_filename(const char *) __attribute__((weak));
void __llvm_profile_initialize_file(void) __attribute__((weak));

static hsa_executable_t executable;
static const char *code_object;

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

static void load_file(const char *name) {
    size_t size;
    void *bytes = read_file(name, &size);
    if (!gpu.handle)
        start();
    executable = load(bytes, size);
}

// Goes on in a child, and exits with its status; only before `load`.
static void go_on_in_child(void) {
    int status;
    pid_t child = fork();
    if (child != 0) {
        waitpid(child, &status, 0);
        exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
    }
}

static void change_directory(const char *name) {
    if (chdir(name) != 0)
        exit(2);
}

static void step(const char *name, char *value) {
    ON("set", __llvm_profile_set_filename(value)) // without a value: null
    ON("env", set_environment("LLVM_PROFILE_FILE", value)) // without a value: removed
    ON("tmp", set_environment("TMPDIR", value))
    ON("initialize", __llvm_profile_initialize_file())
    ON("directory", change_directory(value))
    ON_DEVPROF
    ON("fork", go_on_in_child())
    ON("load", load_file(value ? value : code_object)) // with a value: another code object, for the next steps
    ON("unload", CHECK(hsa_executable_destroy(executable)))
    ON("down", CHECK(hsa_shut_down()))
    ON("count", count(strtoull(value, NULL, 0))) // adds to the counters of the fixture's functions
    ON("pid", printf("%d\n", getpid()))
    ON("memory", limit_memory(value)) // so many more bytes of address space; without a value: no limit
    no_such_step(name);
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    code_object = argv[1];
    execute(argc, argv);
}
