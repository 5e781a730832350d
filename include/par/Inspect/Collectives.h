// Communications of a step, and the lines of the plan that forced them.
#pragma once

#include "par/Base/Hardware.h"
#include "par/Phases/Annotate/Passes.h"
#include "par/format/Bundle.h"

namespace par {

/// The rule of `shard` that a communication is from.
struct ForcingRule {
  std::string origin; ///< "megatron.yaml:10"
  std::string text;   ///< "attn.c_proj.weight {0: tp}"
};

/// Communications of one rank of a role in a step that are alike; those of a group count as one.
struct Communication {
  std::string role;                ///< the program's name
  std::string axis;                ///< as the plan names it: "dp", "dp+tp"
  std::string kind;                ///< "all_reduce", "send, recv"; between ranks of several hosts "all_reduce in hosts"
  std::string type;                ///< "f32"; of a group also "bf16+f32"
  uint64_t bytes = 0;              ///< of the whole tensor: what a gather ends with and a scatter begins with
  uint64_t count = 0;              ///< a step
  std::string place;               ///< module and source line that it is from; empty: not known
  std::string overlap;             ///< the compute that it overlaps with, if it has its own queue; empty: none
  std::optional<ForcingRule> rule; ///< of the plan, on a parameter of that module
  std::string reason;              ///< "3d.yaml:6: batch.over is dp, so ..."; empty: none is known
};

/// The axes of a communicator as the plan names them: "dp.0+tp.data", a half of dp and all of tp on a queue of its own,
/// is "dp+tp"; `stageAxis` of one that joins stages.
std::string axesOfCommunicator(llvm::StringRef name, llvm::StringRef stageAxis);

/// By role, then axis and kind.
std::vector<Communication> findCommunications(const format::Bundle &bundle, llvm::StringRef entry,
                                              const ModelPlan &model, const Hardware &hardware);

/// Communications of one kind over one axis, of the role that has most bytes of them.
struct CommunicationTotal {
  std::string axis, kind;
  std::vector<Communication> parts;
};

/// By axis and kind.
std::vector<CommunicationTotal> totalCommunications(llvm::ArrayRef<Communication> all);

} // namespace par
