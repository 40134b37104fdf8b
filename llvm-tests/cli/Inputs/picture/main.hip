// Makes a picture, blurs, sharpens and outlines it, and prints how many pixels are white.
#include "image.h"

static Image image(int width, int height) {
  Image made = {width, height, nullptr};
  check(hipMalloc((void **)&made.pixels, width * height), "hipMalloc");
  return made;
}

int main(int argc, char **argv) {
  const int width = 90, height = 40;
  unsigned char *drawn = (unsigned char *)malloc(width * height);
  for (int y = 0; y < height; y++)
    for (int x = 0; x < width; x++) {
      bool inside = (x - 45) * (x - 45) + 4 * (y - 20) * (y - 20) < 900;
      drawn[y * width + x] = clamp(luma(inside ? 255 : 20, x * 3, y * 8), 0, 255);
    }
  Image one = image(width, height), two = image(width, height);
  check(hipMemcpy(one.pixels, drawn, width * height, hipMemcpyHostToDevice), "hipMemcpy");
  blur(one, two, 1);
  blur(two, one, 2);
  sharpen(one, two);
  edges(two, one, argc > 1 ? atoi(argv[1]) : 150, false);
  unsigned *bins, counts[16];
  check(hipMalloc((void **)&bins, sizeof counts), "hipMalloc");
  histogram(one, bins);
  check(hipMemcpy(counts, bins, sizeof counts, hipMemcpyDeviceToHost), "hipMemcpy");
  printf("%u of %d pixels are white\n", counts[15], width * height);
  return 0;
}
