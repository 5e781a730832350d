/* A kernel object as the compiler links it: one kernel, out = imm[0] * in, element by element of its tiles. */
#include <stdint.h>

void scale(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1) {
  const float *in = ptr[0];
  float *out = ptr[1];
  for (uint32_t i = tile0; i < tile1; ++i)
    out[i] = (float)imm[0] * in[i];
}
