#include "FilterBlocks.h"

namespace par::kernels {

static constexpr int64_t side = 16;

std::optional<FilterBlocks> FilterBlocks::read(const dnnl::memory::desc &blocked) {
  const dnnl_memory_desc_t &desc = blocked.data;
  const dnnl_blocking_desc_t &blocks = desc.format_desc.blocking;
  if (desc.format_kind != dnnl_blocked || desc.data_type != dnnl_f32 || desc.offset0 != 0 || desc.ndims < 3 ||
      blocks.inner_nblks != 2 || blocks.inner_blks[0] != side || blocks.inner_blks[1] != side ||
      blocks.inner_idxs[0] + blocks.inner_idxs[1] != 1 || desc.dims[0] % side != 0 || desc.dims[1] % side != 0)
    return std::nullopt;
  int64_t window = 1;
  for (int dim = desc.ndims - 1; dim >= 2; --dim) {
    if (blocks.strides[dim] != window * side * side)
      return std::nullopt;
    window *= desc.dims[dim];
  }
  return FilterBlocks{desc.dims[0],      desc.dims[1],      window,
                      blocks.strides[0], blocks.strides[1], blocks.inner_idxs[1] == 0};
}

void FilterBlocks::unpack(const float *blocked, float *plain) const {
  int64_t outputStep = outputsInside ? 1 : side, cStep = outputsInside ? side : 1;
  for (int64_t output = 0; output < o; output += side)
    for (int64_t first = 0; first < c; first += side) {
      const float *block = blocked + output / side * outputStride + first / side * cStride;
      for (int64_t i = 0; i < side; ++i) {
        float *to = plain + ((output + i) * c + first) * window;
        for (int64_t j = 0; j < side; ++j)
          for (int64_t k = 0; k < window; ++k)
            *to++ = block[k * side * side + i * outputStep + j * cStep];
      }
    }
}

} // namespace par::kernels
