// What the kernels of this program share: functions that host and device both compile, and one that only kernels use.
#pragma once
#include <hip/hip_runtime.h>
#include <stdio.h>
#include <stdlib.h>

struct Image {
  int width, height;
  unsigned char *pixels;
};

__host__ __device__ inline int clamp(int value, int low, int high) {
  if (value < low)
    return low;
  if (value > high)
    return high;
  return value;
}

__host__ __device__ inline int luma(int red, int green, int blue) {
  return (77 * red + 150 * green + 29 * blue) >> 8;
}

__device__ inline int pixel(const Image &image, int x, int y) {
  x = clamp(x, 0, image.width - 1);
  y = clamp(y, 0, image.height - 1);
  return image.pixels[y * image.width + x];
}

inline void check(hipError_t error, const char *what) {
  if (error == hipSuccess)
    return;
  fprintf(stderr, "%s: %s\n", what, hipGetErrorString(error));
  exit(1);
}

void blur(Image in, Image out, int radius);
void sharpen(Image in, Image out);
void edges(Image in, Image out, int threshold, bool diagonal);
void histogram(Image in, unsigned *bins);
