// The names of a model, and which of them a plan means.
#pragma once

#include "par/Plan/Model/Plan.h"

namespace par {

/// Every name of a model that a plan can write. Import fills it; a gap in a list is an empty list.
struct NameTable {
  struct Parameter {
    std::string name;                 ///< the one that errors and exports use
    std::vector<std::string> aliases; ///< further names it answers to (tied weights, folded initializers)
    std::vector<int64_t> shape;
    std::string type; ///< "f32"
    bool trainable = true;
    std::string source; ///< "modeling_gpt2.py:573", may be empty
    /// PyTorch's names of the matrix that this is the transpose of, which weight files hold. It answers to them too;
    /// the dims that a rule of `shard` gives it under one of them are PyTorch's.
    std::vector<std::string> transposed = {};
    bool renamed = false; ///< the exporter computed it, and gave it a name of its own
    /// Of the module's own training, as par.export notes it: needs no gradient, and what `--list` adds about others.
    bool frozen = false;
    std::string gradientNote = {}; ///< "no gradient from lookups of row 1 (padding_idx)", mostly empty

    /// Whether its type in the model's file is narrower than its f32 master.
    bool hasNarrowType() const { return type == "bf16" || type == "f16"; }
    /// Name, aliases and names of the transposed, that order.
    template <class Predicate>
    bool anyName(Predicate predicate) const {
      return predicate(name) || llvm::any_of(aliases, predicate) || llvm::any_of(transposed, predicate);
    }
  };
  struct Node {
    std::string name;   ///< "transformer.h.0.mlp/Gelu.1"
    std::string module; ///< "transformer.h.0.mlp"; empty for a stripped model
    std::string opType; ///< "Gelu"
    std::string source;
  };
  struct Value {
    std::string name;
    std::vector<std::string> shape; ///< sizes or symbols
    std::string type;
    std::string node = {}; ///< of an output: the name of its node
  };

  std::string model; ///< file name, the text before "error:" if the plan has no place
  std::vector<Parameter> parameters;
  std::vector<std::string> modules; ///< every module path, outer before inner, in execution order
  std::vector<Node> nodes;          ///< in file order
  std::vector<Value> inputs, outputs;
  std::vector<std::string> symbols; ///< symbolic dims without a size
};

/// The matches of a pattern: indices into the lists of the table.
struct PatternMatches {
  std::vector<unsigned> parameters, modules, nodes, inputs, outputs;
  bool empty() const {
    return parameters.empty() && modules.empty() && nodes.empty() && inputs.empty() && outputs.empty();
  }
};

/// All that `pattern` matches. Name, out() and in() look at parameters (Name only), modules, nodes, graph
/// inputs and outputs; grad() and state() at parameters; op() at nodes.
PatternMatches matchPattern(const NamePattern &pattern, const NameTable &names);

/// As above, and error 2 with the nearest name if nothing matches and the pattern has no "?".
PatternMatches resolvePattern(const PatternWithOrigin &pattern, const NameTable &names, PlanErrors &errors);

/// Indices of the parameters that a pattern matches, or that are in the modules that it matches; error 2 if there are
/// none.
std::vector<unsigned> resolveParameters(const PatternWithOrigin &pattern, const NameTable &names, PlanErrors &errors);

/// The merged rules of `shard` for one name, later rules over earlier ones, dim by dim.
struct ResolvedShard {
  enum Kind { Parameter, Gradient, State, ModuleOutput, ModuleInput, NodeOutput, NodeInput, GraphInput, GraphOutput };
  Kind kind;
  unsigned index = 0;                                         ///< into the table's list of that kind
  unsigned input = 0;                                         ///< of ModuleInput, NodeInput: which one
  std::vector<std::pair<int64_t, WithOrigin<PlanAxes>>> dims; ///< negative dims stay so where the rank is not known
  WithOrigin<bool> closed;
  std::optional<WithOrigin<int64_t>> blocks;
  std::optional<WithOrigin<int64_t>> priority;
  std::optional<WithOrigin<PlanAxes>> partial;
  Origin origin; ///< of the last matching rule
};

/// Resolves all rules; errors 2, 3, dims out of range or smaller than their axes, recipes that match nothing.
std::vector<ResolvedShard> resolveShards(const Plan &plan, const NameTable &names, PlanErrors &errors);

/// Error 4: an axis above size 1 that neither the batch, the pipeline nor a matching rule uses.
void checkAxesUsed(const Plan &plan, llvm::ArrayRef<ResolvedShard> shards, const NameTable &names, PlanErrors &errors);

/// Whether parameter `index` is trained: matched by train.only if given, else trainable by the table and not frozen in
/// the module; and not matched by train.freeze. One flag a parameter; all false in an inference plan.
std::vector<bool> resolveTrained(const Plan &plan, const NameTable &names, PlanErrors &errors);

/// A parameter that `train.tie` makes another one under a second name.
struct ParameterTie {
  std::string name, owner; ///< as the model calls them
  bool transposed = false; ///< the exporter kept one of the two as the transpose of PyTorch's
  Origin origin = {};      ///< the origin in the plan
};

/// The ties of `train.tie`: each parameter that equals another one, with that one. Afterwards the table has them as one
/// parameter, under all their names:
///
///     train.tie: {lm_head.weight: wte.weight}
///     onnx::MatMul_30 [8, 32], the transposed lm_head.weight; wte.weight [32, 8]
///     -> onnx::MatMul_30 is wte.weight transposed, and lm_head.weight is another name of wte.weight
///
/// Errors: a pattern matches no parameter, or the right side several; shapes or types differ; only one of the two is
/// trained.
std::vector<ParameterTie> tieParameters(const Plan &plan, NameTable &names, PlanErrors &errors);

/// An output that becomes an input of the next call.
struct CarriedPair {
  std::string output, input;
};

/// The pairs of `carry`: each output that its pattern matches, with the input whose name has the same text in place of
/// the wildcards:
///
///     carry: {present.**: past.**}
///     present.0.key -> past.0.key, present.0.value -> past.0.value, ...
///
/// Errors: a pattern matches nothing; an output has no such input; an input gets two outputs, or also a value of
/// `inputs`; the plan trains, or splits the batch into microbatches.
std::vector<CarriedPair> resolveCarries(const Plan &plan, const NameTable &names, PlanErrors &errors);

/// A dim of an input.
struct InputDim {
  unsigned input;
  int64_t dim; ///< may be none of the input's
};

/// The dim that has the batch's size or symbol: in the first input that `inputs` does not exempt, dim 0 unless `inputs`
/// or a number in `batch.dim` gives another. Nothing if `batch.dim` is a symbol, or if no input has a batch.
std::optional<InputDim> findBatchDim(const Plan &plan, const NameTable &names);

/// The batch dim that `inputs` gives an input, a negative one counted from the last; -1: it has none.
std::optional<int64_t> saidBatchDim(const Plan &plan, const NameTable &names, unsigned input);

/// Checks every pattern of the plan against the names, and the symbols of `dims`; errors as above. par-compile calls it
/// once after Import, so that one run reports all of them.
void checkPlanNames(const Plan &plan, const NameTable &names, PlanErrors &errors);

/// Warns of each key that is given and has no effect in this plan of this model: `zero: 1` on one rank.
void warnOfUnused(const Plan &plan, const NameTable &names, PlanErrors &errors);

} // namespace par
