// The routines of lists.s, in a file of their own: only code objects that have lists contain it. The plugin names the function so
// that the linker takes this file from the archive, because the linker does not see symbols in assembly code. Nobody calls it.
__attribute__((visibility("hidden"), used, noinline, no_profile_instrument_function)) void __devprof_lists(void) {
    __asm__ volatile(
#include "lists.inc"
    );
}
