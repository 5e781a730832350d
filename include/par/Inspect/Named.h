// One name of the model: rules, shardings, communication and bytes at it.
#pragma once

#include "par/Compiler/Compiler.h"
#include "par/Inspect/Collectives.h"

namespace par {

/// A parameter, node, module, input or output of a model.
struct NamedThing {
  std::string kind;                 ///< "parameter", "node", "module", "input" or "output"
  std::string name, module;         ///< the module is itself, or the one that it is in
  std::string about;                ///< "f32[128, 512]", "Gemm, pytorch_utils.py:119"
  std::vector<unsigned> parameters; ///< the parameter itself, or those in the module: indices of the table
};

/// All that `name` means: a name or pattern of a plan, an ONNX node's own name, or that of a value, which stands for
/// its node.
std::vector<NamedThing> findNamed(llvm::StringRef name, const Model &model);

/// Names of the model that are spelled nearly so, or contain the last part of it; at most four, those of equal layers
/// once.
std::vector<std::string> findNearNames(llvm::StringRef name, const NameTable &names);

/// A rule of the plan.
struct MetRule {
  std::string origin, text; ///< "megatron.yaml:11", "mlp.c_fc.weight {1: tp}"
};

/// Values whose type and sharding are alike.
struct ValueSharding {
  std::string stage, part; ///< "s0"; "stored", "forward", "backward", "step"
  std::string what;        ///< the op, "dot"; of a variable its kind, "state"
  std::string type;        ///< of the whole value, "f32[4x128x512]"
  std::string sharding;    ///< "[{dp}, {}, {tp}]"
  size_t count = 0;
  bool operator==(const ValueSharding &other) const {
    return std::tie(stage, part, what, type, sharding) ==
           std::tie(other.stage, other.part, other.what, other.type, other.sharding);
  }
};

/// Buffers of a rank that are alike.
struct NamedBytes {
  std::string role, use, type; ///< "saved" or another column of the memory, "in host memory"; of one rank
  size_t count = 0;
  uint64_t bytes = 0; ///< of all
};

struct NameFacts {
  NamedThing thing;
  std::vector<MetRule> rules; ///< that match it or parameters in its module, and keys whose axes it has
  std::vector<ValueSharding> shardings;
  std::vector<Communication> communications;
  std::vector<NamedBytes> bytes; ///< the most first
};

/// `compiled` kept its module after Propagate.
NameFacts describeNamed(const NamedThing &thing, const Compiled &compiled,
                        llvm::ArrayRef<Communication> communications);

} // namespace par
