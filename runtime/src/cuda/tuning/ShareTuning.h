// Ranks agree on the algorithms and engines that rank 0 chose; makes the matmuls of a program, ready to run with
// theirs.
#pragma once

#include "TuningFile.h"
#include "par/comm/job/Control.h"
#include "par/device/Device.h"

#include <span>

namespace par::cuda {

/// The largest power of two, at most 256, that divides the address of every operand of an instruction.
uint32_t alignmentOf(const format::Program &program, const format::Instruction &instruction);

bool anyGemm(const format::Bundle &bundle);

/// Rank 0's decisions, and how many of them are in no file yet.
struct Decided {
  TuningFile file;
  size_t fresh = 0;
};

/// Inputs of the agreement on algorithms and engines.
struct SharedTuning {
  const Gpu &gpu;
  const core::DeviceOptions &options;
  comm::Control &control;
  Stream stream;             ///< to time on
  std::span<std::byte> lent; ///< memory of the GPU to time on, which is overwritten
  Decided &decided;
};

/// Choices from the file of an earlier part of this run. The file must be for `here`, except the library's release if
/// that is not given; otherwise nothing, and `why` says so.
TuningFile recall(const core::Tuning &tuning, const TunedFor &here, std::string &why);
/// Writes the decisions, if a file is wanted and does not hold them yet.
void keep(const core::Tuning &tuning, const Decided &decided);

/// Collective: the products of this rank's program, by number. Replicas must not diverge, so rank 0 decides for the
/// shapes of all programs, by its file, by timing or by the heuristic, and tells the others. `remark` is its line for
/// the user.
std::vector<std::unique_ptr<Gemm>> shareMatmulTuning(const SharedTuning &of, const Blas &blas, std::string &remark);

} // namespace par::cuda
