// The lines that par-compile prints: docs/plan.md §3.1.
#pragma once

#include "par/Phases/Annotate/Passes.h"

namespace par {

/// `model   tiny-gpt.onnx: 118 nodes, 52 parameters (0.84 M, all trained), tied: lm_head.weight = wte.weight`
void printModelLine(const ModelPlan &model, llvm::raw_ostream &os);

/// `module  in PyTorch: fc.weight frozen; wte.weight no gradient from lookups of row 0 (padding_idx)`, where the file
/// says so.
void printModuleLine(const ModelPlan &model, llvm::raw_ostream &os);

/// `plan    8 ranks: pp 2 x dp 2 x tp 2; 2 stages, 1f1b, 8 microbatches of 2 x 128; adamw f32`
void printPlanLine(const ModelPlan &model, llvm::raw_ostream &os);

/// `recipe  megatron cuts 62 % of the parameters; no rule for layers.*.attn.qkv.weight`, where recipes leave matrices
/// whole that are more than a twentieth of all parameters.
void printRecipeLine(const ModelPlan &model, llvm::raw_ostream &os);
/// Parameters that rules cut into parts of which more than a tenth is padding; nothing where there are none.
void printPaddingLine(const ModelPlan &model, llvm::raw_ostream &os);

/// `matches plan.yaml:4: h.*.attn.out.weight: 4 parameters: h.0.attn.out.weight and 3 more`, for every pattern of the
/// plan.
void printMatches(const ModelPlan &model, llvm::raw_ostream &os);

/// `stages  0: wte, wpe, h.0, h.1 (49 % of the work)   1: h.2, h.3, ln_f, lm_head, loss (51 %)`, of a module
/// after Annotate.
void printStagesLine(mlir::ModuleOp module, llvm::raw_ostream &os);

} // namespace par
