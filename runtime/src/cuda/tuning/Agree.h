// What ranks agree on: the algorithms and engines that rank 0 chose; and the products of a program, ready to run with
// theirs.
#pragma once

#include "TuningFile.h"
#include "par/comm/job/Control.h"
#include "par/device/Device.h"

#include <span>

namespace par::cuda {

/// The largest power of two, at most 256, that divides the address of every operand of an instruction.
uint32_t alignmentOf(const format::Program &program, const format::Instruction &instruction);

bool anyProduct(const format::Bundle &bundle);

/// What rank 0 has decided, and how much of it is in no file yet.
struct Decided {
  TuningFile file;
  size_t fresh = 0;
};

/// What ranks agree with on algorithms and engines.
struct Agreement {
  const Gpu &gpu;
  const core::DeviceOptions &options;
  comm::Control &control;
  Stream stream;             ///< to time on
  std::span<std::byte> lent; ///< memory of the GPU to time on, which is overwritten
  Decided &decided;
};

/// What the file of an earlier part of this run says; `here` is what it must be for but for the library's release,
/// where that is not given. Nothing where it is for other ones: `why` then says so.
TuningFile recall(const core::Tuning &tuning, const TunedFor &here, std::string &why);
/// Writes what was decided, where a file is wanted and does not say it yet.
void keep(const core::Tuning &tuning, const Decided &decided);

/// Collective: the products of this rank's program, by number. Replicas must not diverge, so rank 0 decides
/// for the shapes of all programs, by its file, by timing or by the heuristic, and tells the others. `remark`
/// is what it has to say of that.
std::vector<std::unique_ptr<Product>> agreeOnProducts(const Agreement &of, const Blas &blas, std::string &remark);

} // namespace par::cuda
