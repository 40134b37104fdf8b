// A box blur: a kernel template with two instances that are launched.
#include "image.h"

template <int RADIUS> __global__ void box_blur(Image in, Image out) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y;
  if (x >= in.width)
    return;
  int sum = 0;
  for (int dy = -RADIUS; dy <= RADIUS; dy++)
    for (int dx = -RADIUS; dx <= RADIUS; dx++)
      sum += pixel(in, x + dx, y + dy);
  int area = (2 * RADIUS + 1) * (2 * RADIUS + 1);
  out.pixels[y * in.width + x] = sum / area;
}

void blur(Image in, Image out, int radius) {
  dim3 grid((in.width + 31) / 32, in.height);
  switch (radius) {
  case 1:
    return box_blur<1><<<grid, 32>>>(in, out);
  case 2:
    return box_blur<2><<<grid, 32>>>(in, out);
  default:
    check(hipErrorInvalidValue, "blur");
  }
}
