// Products of a program, ready to run, with the algorithms that rank 0 chose.
#pragma once

#include "par/comm/Control.h"
#include "par/core/Device.h"
#include "par/cuda/Products.h"

#include <span>

namespace par::cuda {

/// The largest power of two, at most 256, that divides the address of every operand of an instruction.
uint32_t alignmentOf(const format::Program &program, const format::Instruction &instruction);

bool anyProduct(const format::Bundle &bundle);

/// What products are agreed on with.
struct Agreement {
  const Gpu &gpu;
  const Blas &blas;
  const core::DeviceOptions &options;
  comm::Control &control;
  Stream stream;             ///< to time on
  std::span<std::byte> lent; ///< memory of the GPU to time on, which is overwritten
};

/// Collective: the products of this rank's program, by number. Replicas must not diverge, so rank 0 decides
/// for the shapes of all programs, by its file, by timing or by the heuristic, and tells the others. `remark`
/// is what it has to say of that.
std::vector<std::unique_ptr<Product>> agreeOnProducts(const Agreement &of, std::string &remark);

} // namespace par::cuda
