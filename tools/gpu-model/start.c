// Makes programs on the GPU model start reliably in a tenth of a second. tools/rocm-env preloads it.
//
// In model mode, hsaKmtOpenKFD of ROCr 7.2.4 allocates and clears a table whose size is an uninitialized variable
// (sys_props.NumNodes), so it depends on the contents of the stack. A large value costs 0.2 to 9 seconds and gigabytes of
// memory. With a small value ROCr writes beyond the end of the table and an assertion fails. ROCr reads environment
// variables before that, so this getenv fills the stack below its frame with a suitable number of nodes.
#include <string.h>

extern char **environ;

enum { NODES = 16, STACK_WORDS = 8192 };

__attribute__((noinline)) static void fill_stack(void) {
    unsigned words[STACK_WORDS];
    for (unsigned i = 0; i < STACK_WORDS; i++)
        words[i] = NODES;
    __asm__ volatile("" : : "r"(words) : "memory");
}

char *getenv(const char *name) {
    fill_stack();
    size_t length = strlen(name);
    for (char **entry = environ; entry && *entry; entry++)
        if (!strncmp(*entry, name, length) && (*entry)[length] == '=')
            return *entry + length + 1;
    return NULL;
}
