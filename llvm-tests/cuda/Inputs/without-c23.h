// Includes math.h without functions of C23. The host compiler gets this file in all of nvcc's steps, also with sources that are
// preprocessed.
#ifdef __NVCC__
#include <features.h>
#undef __USE_GNU
#undef __GLIBC_USE_ISOC23
#define __GLIBC_USE_ISOC23 0
#include <math.h>
#define __USE_GNU 1
#undef __GLIBC_USE_ISOC23
#define __GLIBC_USE_ISOC23 1
#endif
