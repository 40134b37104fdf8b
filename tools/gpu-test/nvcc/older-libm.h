// The GPU machine's C library may be older than the one that the programs are linked with: of functions that have several versions,
// the oldest are linked.
#ifndef __CUDA_ARCH__
#define OLDER(name) __asm__(".symver " #name "," #name "@GLIBC_2.2.5");
OLDER(acosf) OLDER(acoshf) OLDER(asinf) OLDER(atan2f) OLDER(atanhf) OLDER(coshf) OLDER(lgammaf) OLDER(log10f) OLDER(remainder)
OLDER(remainderf) OLDER(sinhf) OLDER(sqrtf) OLDER(tgammaf)
#undef OLDER
#endif
