// What a rank of each stage holds.
#pragma once

#include "par/Driver/Finding.h"
#include "par/Plan/Model/Plan.h"
#include "par/format/Bundle.h"

namespace par {

/// Bytes of one rank of a role by what they are for. `buffers` is what of the peak no other column explains;
/// `host` are those in the host's memory, which no other column counts.
struct RoleMemory {
  std::string name;
  size_t ranks = 0;
  uint64_t params = 0, grads = 0, states = 0, saved = 0, buffers = 0, peak = 0, host = 0;
};

/// One row a role: state by its tensor's kind; accumulators of gradients; what forward keeps for backward, and all else
/// that has a slot for each microbatch. Where gradients grow into the space of what is saved, that column has what is
/// left.
std::vector<RoleMemory> measureMemory(const format::Bundle &bundle);

/// The lines `memory per rank ...`, one a role; with a column of the host's memory where some role uses it.
void printMemory(llvm::ArrayRef<RoleMemory> roles, std::optional<uint64_t> limit, llvm::raw_ostream &os);

/// `--explain=memory`: for each role what forward keeps of a microbatch for backward, by the place that makes it, in
/// bytes:
///
///     stage 0 saves 311808 bytes of a microbatch in 1 slot
///          2 x        65536  bf16[2x64x256]          h.0.mlp.c_fc, pytorch_utils.py:119
void explainMemory(const format::Bundle &bundle, llvm::raw_ostream &os);

/// Error 12 for every role above the limit, at the place of `place`; the first one with the notes of `waysOut`, which
/// is asked then. Returns whether all fit.
bool checkMemory(llvm::ArrayRef<RoleMemory> roles, std::optional<uint64_t> limit, const Finding &place,
                 llvm::function_ref<std::vector<std::string>(uint64_t)> waysOut, FindingSink sink);

/// What a program is called: "stage 0", of two on the same ranks "stages 0+2".
std::string stagesOf(llvm::StringRef program);

/// "14.3 MiB".
std::string humanBytes(double bytes);

} // namespace par
