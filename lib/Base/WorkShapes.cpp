#include "par/Base/WorkShapes.h"

using namespace par;

int64_t MatmulShape::bytes() const {
  int64_t read = (m * k + k * n) * int64_t(sizeOf(type)), written = m * n * int64_t(sizeOf(result));
  return batch * (read + (adds ? 2 : 1) * written);
}

int64_t AttentionShape::flops() const {
  int64_t each = backward ? 3 * dim + 2 * valueDim : dim + valueDim;
  return 2 * batch * heads * queries * keys * each / (causal ? 2 : 1);
}

int64_t AttentionShape::bytes() const {
  int64_t rows = heads * queries + groups * keys;
  return (backward ? 2 : 1) * batch * rows * (dim + valueDim) * int64_t(sizeOf(type));
}

int64_t ConvolutionShape::bytes() const {
  int64_t images = this->images * positions * (groups * channels + outputs), filter = outputs * channels * window;
  return (images + filter) * int64_t(sizeOf(type));
}
