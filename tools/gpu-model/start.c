// Makes programs start on the GPU model in a tenth of a second, every time. tools/rocm-env preloads it.
//
// ROCr 7.2.4 in model mode sizes and clears a table by a variable that nothing has set (sys_props.NumNodes in
// hsaKmtOpenKFD), so what lies on the stack decides: 0.2 to 9 seconds, gigabytes of memory, and with a small value
// writes behind the table that end in an assertion. ROCr reads its environment before it comes there; each read
// leaves the stack below filled with a number of nodes that is enough and costs nothing.
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
