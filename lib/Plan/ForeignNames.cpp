//===- ForeignNames.cpp - what other systems call Par's keys
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "par/Plan/Schema.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace par {

/// A name as another system writes it, lower case with underscores, and Par's word.
using ForeignName = std::pair<const char *, const char *>;

static constexpr ForeignName megatronNames[] = {
    {"tensor_model_parallel_size", "mesh: {tp: N} with use: [megatron]"},
    {"pipeline_model_parallel_size", "mesh: {pp: N}"},
    {"context_parallel_size", "mesh: {cp: N} with sequence: {over: cp}"},
    {"expert_model_parallel_size", "mesh: {ep: N}"},
    {"data_parallel_size", "mesh: {dp: N}"},
    {"sequence_parallel", "use: [megatron-sp]"},
    {"micro_batch_size", "batch.microbatch_size"},
    {"global_batch_size", "batch.size"},
    {"num_layers_per_virtual_pipeline_stage", "pipeline.stages"},
    {"virtual_pipeline_model_parallel_size", "pipeline.stages"},
    {"pipeline_model_parallel_layout", "pipeline.cuts"},
    {"recompute_granularity", "recompute"},
    {"recompute_activations", "recompute: selective"},
    {"recompute_method", "recompute"},
    {"use_distributed_optimizer", "zero: 1"},
    {"overlap_grad_reduce", "collectives.overlap"},
    {"ddp_bucket_size", "collectives.bucket"},
    {"clip_grad", "train.clip"},
    {"lr_warmup_iters", "train.optimizer.lr.warmup"},
    {"lr_decay_style", "train.optimizer.lr.decay"},
    {"lr_decay_iters", "train.optimizer.lr.steps"},
    {"min_lr", "train.optimizer.lr.floor"},
    {"adam_beta1", "train.optimizer.betas"},
    {"adam_beta2", "train.optimizer.betas"},
    {"adam_eps", "train.optimizer.eps"},
    {"init_method_std", "train.init"},
};

static constexpr ForeignName deepSpeedNames[] = {
    {"train_batch_size", "batch.size"},
    {"train_micro_batch_size_per_gpu", "batch.microbatch_size"},
    {"gradient_accumulation_steps", "batch.microbatches"},
    {"gradient_clipping", "train.clip"},
    {"zero_optimization", "zero"},
    {"zero_stage", "zero"},
    {"stage3_gather_16bit_weights_on_model_save", "par-run --export"},
    {"offload_optimizer", "offload: [states]"},
    {"offload_param", "offload: [params]"},
    {"reduce_bucket_size", "collectives.bucket"},
    {"allgather_bucket_size", "collectives.bucket"},
    {"overlap_comm", "collectives.overlap"},
    {"activation_checkpointing", "recompute"},
    {"partition_method", "pipeline.cuts"},
    {"scheduler", "train.optimizer.lr"},
    {"prescale_gradients", "train.loss (the loss is a mean over the whole batch)"},
};

static constexpr ForeignName torchtitanNames[] = {
    {"data_parallel_replicate_degree", "mesh: {rep: N} with batch.over"},
    {"data_parallel_shard_degree", "zero: 3"},
    {"tensor_parallel_degree", "mesh: {tp: N} with use: [megatron]"},
    {"pipeline_parallel_degree", "mesh: {pp: N}"},
    {"context_parallel_degree", "mesh: {cp: N} with sequence: {over: cp}"},
    {"expert_parallel_degree", "mesh: {ep: N}"},
    {"pipeline_parallel_schedule", "pipeline.schedule"},
    {"pipeline_parallel_split_points", "pipeline.cuts"},
    {"pipeline_parallel_microbatch_size", "batch.microbatch_size"},
    {"local_batch_size", "batch.microbatch_size"},
    {"fsdp_reshard_after_forward", "zero.gather"},
    {"warmup_steps", "train.optimizer.lr.warmup"},
    {"max_norm", "train.clip"},
    {"enable_cpu_offload", "offload"},
    {"mixed_precision_param", "precision.params"},
    {"mixed_precision_reduce", "precision.reduce"},
};

/// Of accelerate, FSDP and PyTorch itself.
static constexpr ForeignName pytorchNames[] = {
    {"mixed_precision", "precision"},
    {"dtype", "precision"},
    {"fsdp", "zero: 3"},
    {"fsdp_config", "zero: 3"},
    {"fsdp_sharding_strategy", "zero"},
    {"fsdp_offload_params", "offload: [params]"},
    {"fsdp_activation_checkpointing", "recompute: {each: P}"},
    {"bucket_cap_mb", "collectives.bucket"},
    {"num_processes", "ranks"},
    {"world_size", "ranks"},
    {"tp_size", "mesh: {tp: N} with use: [megatron]"},
    {"cp_size", "mesh: {cp: N} with sequence: {over: cp}"},
    {"dp_shard_size", "zero: 3"},
    {"dp_replicate_size", "mesh: {dp: N}"},
    {"parallelize_plan", "shard"},
    {"batch_size", "batch.size"},
    {"max_grad_norm", "train.clip"},
    {"grad_clip", "train.clip"},
    {"gradient_checkpointing", "recompute: full"},
    {"learning_rate", "train.optimizer.lr"},
    {"ignore_index", "train.loss.ignore"},
    {"label_smoothing", "train.loss.smoothing"},
    {"class_weight", "the module's own loss: train: {}"},
    {"weight", "the module's own loss, which holds class weights: train: {}"},
    {"num_microbatches", "batch.microbatches"},
    {"num_stages", "pipeline.stages"},
    {"chunks", "batch.microbatches"},
    {"checkpoint", "recompute"},
    {"device_mesh", "mesh"},
};

StringRef foreignPlanKey(StringRef name) {
  SmallString<64> plain(name.ltrim('-'));
  for (char &c : plain)
    c = c == '-' ? '_' : toLower(c);
  for (ArrayRef<ForeignName> names : {ArrayRef(megatronNames), ArrayRef(deepSpeedNames),
                                      ArrayRef(torchtitanNames), ArrayRef(pytorchNames)})
    for (auto [foreign, ours] : names)
      if (plain == foreign)
        return ours;
  return "";
}

} // namespace par
