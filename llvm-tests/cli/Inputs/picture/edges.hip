// Edges by the Sobel operator. The kernels are local to this file.
#include "image.h"

namespace {

#define DIFFERENCE(a, b) ((a) - (b))

__device__ int gradient(const Image &image, int x, int y) {
  int across = 0, down = 0;
  for (int i = -1; i <= 1; i++) {
    int weight = i == 0 ? 2 : 1;
    across += weight * DIFFERENCE(pixel(image, x + 1, y + i), pixel(image, x - 1, y + i));
    down += weight * DIFFERENCE(pixel(image, x + i, y + 1), pixel(image, x + i, y - 1));
  }
  return abs(across) + abs(down);
}

__device__ bool strongest(const Image &image, int x, int y, int own) {
  // An edge is kept only if no neighbor is stronger.
  for (int i = -1; i <= 1; i += 2)
    if (gradient(image, x + i, y) > own || gradient(image, x, y + i) > own)
      return false;
  return true;
}

__global__ void find_edges(Image in, Image out, int threshold, bool thin) {
  int x = blockIdx.x * blockDim.x + threadIdx.x;
  int y = blockIdx.y;
  if (x >= in.width)
    return;
  int strength = gradient(in, x, y);
  bool edge = strength > threshold && (!thin || strongest(in, x, y, strength));
  out.pixels[y * in.width + x] = edge ? 255 : 0;
}

// Never launched.
__global__ void rotate(Image in, Image out) {
  int x = threadIdx.x, y = blockIdx.x;
  out.pixels[x * in.height + y] = pixel(in, x, y);
}

} // namespace

void edges(Image in, Image out, int threshold, bool thin) {
  find_edges<<<dim3((in.width + 31) / 32, in.height), 32>>>(in, out, threshold, thin);
}

void quarter_turn(Image in, Image out) { rotate<<<in.height, in.width>>>(in, out); }
