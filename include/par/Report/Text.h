// Lines of par-compile, from the values of Inspect: docs/plan.md §3.1.
#pragma once

#include "par/Inspect/Facts.h"

#include "llvm/Support/raw_ostream.h"

namespace par {

/// "14.3 MiB".
std::string humanBytes(double bytes);

/// `model   tiny-gpt.onnx: 118 nodes, 52 parameters (0.84 M, all trained), tied: lm_head.weight = wte.weight`
void printModel(const ModelFacts &model, bool trains, llvm::raw_ostream &os);

/// `module  in PyTorch: fc.weight frozen; wte.weight no gradient from lookups of row 0 (padding_idx)`; nothing if the
/// module has no training marks.
void printModule(const ModuleFacts &module, llvm::raw_ostream &os);

/// `plan    8 ranks: pp 2 x dp 2 x tp 2; 2 stages, 1f1b, 8 microbatches of 2 x 128; adamw f32`, and keys that change
/// the numbers, unless they have the default (docs/plan.md §1.4).
void printPlan(const PlanFacts &plan, llvm::raw_ostream &os);

/// `recipe  megatron cuts 62 % of the parameters; no rule for layers.*.attn.qkv.weight`
void printRecipes(const RecipeFacts &recipes, llvm::raw_ostream &os);

/// `padding NAME: 50257 of dim 0 in 8 shards are kept as 50264, 0 % more`; nothing without padded dims.
void printPadding(llvm::ArrayRef<PaddedDim> dims, llvm::raw_ostream &os);

/// `matches plan.yaml:4: h.*.attn.out.weight: 4 parameters: h.0.attn.out.weight and 3 more`, a line a pattern.
void printMatches(llvm::ArrayRef<PatternMatch> matches, llvm::raw_ostream &os);

/// `stages  0: wte, wpe, h.0, h.1 (49 % of the work)   1: h.2, h.3, ln_f, lm_head, loss (51 %)`; nothing of one stage.
void printStages(llvm::ArrayRef<StageShare> stages, llvm::raw_ostream &os);

/// `heads   tp 4 does not divide the 25 heads of h.*.attn: attention runs whole on each of its ranks, after gathers;
/// the nearest degree that divides them is 5`, a line a case.
void printHeads(llvm::ArrayRef<UnshardedHeads> heads, llvm::raw_ostream &os);

/// The table `memory per rank`, a line a role; with a column of host memory if a role uses it.
void printMemory(llvm::ArrayRef<RoleMemory> roles, std::optional<uint64_t> limit, llvm::raw_ostream &os);

/// Lines for the stages on the same ranks; none if nothing was asked for and nothing is recomputed:
///
///     recompute auto: stage 0 saves 899 KiB in place of 3.3 MiB, backward takes 0.5 ms more a step
///     recompute auto: stage 0: the cheapest choice for 6.0 MiB; 448.0 KiB less would take 0.3 ms more
void printRecompute(const RecomputeFacts &facts, llvm::raw_ostream &os);

/// --explain=memory: of a choice by budget, how far from the best it may be, and the bytes that stay.
void explainRecompute(const RecomputeFacts &facts, llvm::raw_ostream &os);

/// --explain=memory:
///
///     stage 0 saves 311808 bytes of a microbatch in 1 slot
///          2 x        65536  bf16[2x64x256]          h.0.mlp.c_fc, pytorch_utils.py:119
void printSavedValues(llvm::ArrayRef<RoleSaved> roles, llvm::raw_ostream &os);

/// The table `communication per rank and step`; `roles`: the number of the bundle's roles.
void printCommunication(llvm::ArrayRef<CommunicationTotal> totals, size_t roles, llvm::raw_ostream &os);

/// --explain=collectives: every communication with its place and the reason for it.
void explainCommunication(llvm::ArrayRef<Communication> all, size_t roles, llvm::raw_ostream &os);

/// --emit=kernels: a line for each kernel of a GPU.
void printKernels(const KernelFacts &facts, llvm::raw_ostream &os);

/// `predicted step 118 ms: compute 88 %, bubble 10 % (1f1b, m = 8: closed form 11.1 %), exposed communication 2 %`
void printPrediction(const Prediction &prediction, llvm::raw_ostream &os);

/// `mfu     38.4 %: 230 TFLOP/s a rank for the model, of 600 that h100-sxm has in bf16`
void printUtilization(const Utilization &utilization, llvm::raw_ostream &os);

/// "118 ms", "4.2 ms", "730 us": three digits at most.
std::string formatTime(int64_t ns);

/// The order of axes by which ranks are numbered, and the traffic along each axis:
///
///     order   ranks are numbered by dp, pp, tp (outermost first), of 6 orders that fit, 2 different: a step of 118 ms,
///             in the first one 140 ms, in the slowest 151 ms                                           (one line)
///       tp    8 ranks within node   14.3 MiB and 4.2 ms a step
void printRankOrder(const RankOrderFacts &facts, llvm::raw_ostream &os);

/// `bucket  4.0 MiB, of 9 sizes: a step of 118 ms, with 25 MiB 121 ms`
void printBucket(const BucketChoice &bucket, llvm::raw_ostream &os);

/// `proved  2 programs on 8 ranks: 1536 communications matched, no deadlock, every buffer live when read`
void printProof(const verify::Proof &proof, llvm::raw_ostream &os);

} // namespace par
