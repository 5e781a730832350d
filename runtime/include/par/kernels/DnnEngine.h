// oneDNN's processor, which convolutions and matmuls share.
#pragma once

#include <cstddef>
#include <dnnl.hpp>

namespace par::kernels {

inline const dnnl::engine &engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

/// Bytes up to the next boundary of a line of the cache, where the library's scratch begins.
constexpr size_t padded(size_t bytes) { return (bytes + 63) / 64 * 64; }

} // namespace par::kernels
