// Keys and words of other systems, and Par's for each: two tables and their lookups. A test compiles every plan text in
// them. If a number has another meaning in Par (of one rank or of all, of elements or of bytes), the note says so.
#include "par/Plan/Language/ForeignNames.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace llvm;

namespace par {

// clang-format off
static constexpr const char *byElements = "in bytes (25MiB), where that counts elements";
static constexpr const char *ofTheRecipe =
    "if the recipe does not know the model's names, shard the weights by rules of shard";
static constexpr const char *notForSequences = "context parallelism is not supported yet";
static constexpr const char *ofExperts =
    "here ep multiplies the ranks: M is the replicas there, divided by N; shard says which weights are experts'";
static constexpr const char *eachLayer = "each layer keeps its inputs and computes the rest again";
static constexpr const char *inMesh = "-1, for all that is left, must be said as a number";
static constexpr const char *bothBetas = "both in one list: [0.9, 0.999]";
static constexpr const char *inSteps = "in steps";
static constexpr const char *momentumStays =
    "one number for all steps, as OneCycleLR(cycle_momentum=False); a momentum that cycles is not supported";

static constexpr ForeignKey keys[] = {
  // Sizes of meshes.
  {"tensor_model_parallel_size", "mesh: {tp: N} with use: [megatron]", ofTheRecipe},
  {"tensor_parallel_degree", "mesh: {tp: N} with use: [megatron]", ofTheRecipe},
  {"tensor_parallel_size", "mesh: {tp: N} with use: [megatron]", ofTheRecipe},
  {"tensor_parallel", "mesh: {tp: N} with use: [megatron]", ofTheRecipe},
  {"model_parallel_size", "mesh: {tp: N} with use: [megatron]", ofTheRecipe},
  {"tp_size", "mesh: {tp: N} with use: [megatron]", ofTheRecipe},
  {"tp_degree", "mesh: {tp: N} with use: [megatron]", ofTheRecipe},
  {"tp", "mesh: {tp: N} with use: [megatron]", ofTheRecipe},
  {"tp_plan", "mesh: {tp: N} with use: [megatron]", ofTheRecipe},
  {"parallelize_plan", "shard"},
  {"sequence_parallel", "mesh: {tp: N} with use: [megatron-sp]"},
  {"enable_sequence_parallel", "mesh: {tp: N} with use: [megatron-sp]"},
  {"pipeline_model_parallel_size", "mesh: {pp: N}"},
  {"pipeline_parallel_degree", "mesh: {pp: N}"},
  {"pipeline_parallel_size", "mesh: {pp: N}"},
  {"pipeline_parallel", "mesh: {pp: N}"},
  {"pp_size", "mesh: {pp: N}"},
  {"pp_degree", "mesh: {pp: N}"},
  {"pp", "mesh: {pp: N}"},
  {"data_parallel_size", "mesh: {dp: N}"},
  {"data_parallel_degree", "mesh: {dp: N}"},
  {"data_parallel", "mesh: {dp: N}"},
  {"dp_size", "mesh: {dp: N}"},
  {"dp", "mesh: {dp: N}"},
  {"ddp", "mesh: {dp: N}"},
  {"data_parallel_shard_degree", "mesh: {dp: N} with zero: 3", inMesh},
  {"dp_shard_size", "mesh: {dp: N} with zero: 3", inMesh},
  {"dp_shard", "mesh: {dp: N} with zero: 3", inMesh},
  {"fsdp_size", "mesh: {dp: N} with zero: 3", inMesh},
  {"fsdp", "mesh: {dp: N} with zero: 3"},
  {"fully_shard", "mesh: {dp: N} with zero: 3"},
  {"fsdp_config", "mesh: {dp: N} with zero: 3"},
  {"fsdp_plugin", "mesh: {dp: N} with zero: 3"},
  {"data_parallel_replicate_degree", "mesh: {rep: N, dp: M} with batch: {over: [rep, dp]}",
   "zero: {level: 3, over: dp} shards only over dp"},
  {"dp_replicate_size", "mesh: {rep: N, dp: M} with batch: {over: [rep, dp]}",
   "zero: {level: 3, over: dp} shards only over dp"},
  {"dp_replicate", "mesh: {rep: N, dp: M} with batch: {over: [rep, dp]}",
   "zero: {level: 3, over: dp} shards only over dp"},
  {"context_parallel_size", "sequence", notForSequences},
  {"context_parallel_degree", "sequence", notForSequences},
  {"cp_size", "sequence", notForSequences},
  {"cp", "sequence", notForSequences},
  {"expert_model_parallel_size", "mesh: {dp: M, ep: N} with batch: {over: [dp, ep]}", ofExperts},
  {"expert_parallel_degree", "mesh: {dp: M, ep: N} with batch: {over: [dp, ep]}", ofExperts},
  {"expert_parallel_size", "mesh: {dp: M, ep: N} with batch: {over: [dp, ep]}", ofExperts},
  {"ep_size", "mesh: {dp: M, ep: N} with batch: {over: [dp, ep]}", ofExperts},
  {"ep", "mesh: {dp: M, ep: N} with batch: {over: [dp, ep]}", ofExperts},
  {"device_mesh", "mesh"},
  {"mesh_shape", "mesh"},
  {"world_size", "ranks"},
  {"num_processes", "ranks"},
  {"num_gpus", "ranks"},
  {"n_gpu", "ranks"},
  {"devices", "ranks"},
  // Batch sizes of one rank and one microbatch.
  {"micro_batch_size", "batch.microbatch_size"},
  {"train_micro_batch_size_per_gpu", "batch.microbatch_size"},
  {"per_device_train_batch_size", "batch.microbatch_size"},
  {"per_gpu_train_batch_size", "batch.microbatch_size"},
  {"pipeline_parallel_microbatch_size", "batch.microbatch_size"},
  {"local_batch_size", "batch.microbatch_size", "with a pipeline that one is this times batch.microbatches"},
  {"per_device_eval_batch_size", "batch", "an evaluation has the batches of the training"},
  // Batch sizes of all ranks and all microbatches.
  {"global_batch_size", "batch.size"},
  {"train_batch_size", "batch.size"},
  {"total_batch_size", "batch.size"},
  {"batch_size", "batch.size",
   "the samples of a step on all ranks; a DataLoader's is that of one process: batch.microbatch_size"},
  {"gradient_accumulation_steps", "batch.microbatches"},
  {"gradient_accumulation", "batch.microbatches"},
  {"accumulate_grad_batches", "batch.microbatches"},
  {"grad_accumulation_steps", "batch.microbatches"},
  {"grad_accum_steps", "batch.microbatches"},
  {"num_microbatches", "batch.microbatches"},
  {"n_microbatches", "batch.microbatches"},
  {"num_micro_batches", "batch.microbatches"},
  {"chunks", "batch.microbatches"},
  {"seq_length", "dims", "under the name that the model has for it (--list=inputs): dims: {seq: 1024}"},
  {"seq_len", "dims", "under the name that the model has for it (--list=inputs): dims: {seq: 1024}"},
  {"sequence_length", "dims", "under the name that the model has for it (--list=inputs): dims: {seq: 1024}"},
  {"max_seq_length", "dims", "under the name that the model has for it (--list=inputs): dims: {seq: 1024}"},
  {"max_seq_len", "dims", "under the name that the model has for it (--list=inputs): dims: {seq: 1024}"},
  {"max_length", "dims", "under the name that the model has for it (--list=inputs): dims: {seq: 1024}"},
  {"block_size", "dims", "under the name that the model has for it (--list=inputs): dims: {seq: 1024}"},
  // Pipelines.
  {"num_stages", "pipeline.stages"},
  {"num_layers_per_virtual_pipeline_stage", "pipeline.stages", "the number of stages: layers, divided by that number"},
  {"virtual_pipeline_model_parallel_size", "pipeline.stages", "of all ranks: that number times the ranks on pp"},
  {"pipeline_model_parallel_layout", "pipeline.cuts"},
  {"scatter_gather_tensors_in_pipeline", "pipeline.scatter_gather"},
  {"pipeline_parallel_split_points", "pipeline.cuts"},
  {"split_points", "pipeline.cuts"},
  {"partition_method", "pipeline.cuts"},
  {"pipeline_parallel_schedule", "pipeline.schedule"},
  {"pipeline_schedule", "pipeline.schedule"},
  // Memory.
  {"zero_optimization", "zero"},
  {"zero_stage", "zero"},
  {"zero.stage", "zero.level"},
  {"zero_level", "zero"},
  {"deepspeed", "zero"},
  {"use_distributed_optimizer", "zero: 1"},
  {"distributed_optimizer", "zero: 1"},
  {"fsdp_sharding_strategy", "zero", "FULL_SHARD is 3, SHARD_GRAD_OP {level: 3, gather: step}, NO_SHARD 0"},
  {"sharding_strategy", "zero", "FULL_SHARD is 3, SHARD_GRAD_OP {level: 3, gather: step}, NO_SHARD 0"},
  {"fsdp_reshard_after_forward", "zero.gather", "true is use, false step"},
  {"reshard_after_forward", "zero.gather", "true is use, false step"},
  {"offload_optimizer", "offload: [states]"},
  {"offload_param", "offload: [params]"},
  {"offload_params", "offload: [params]"},
  {"fsdp_offload_params", "offload: [params]"},
  {"enable_cpu_offload", "offload: [params, states]"},
  {"cpu_offload", "offload: [params, states]"},
  {"gradient_checkpointing", "recompute: {each: P}", eachLayer},
  {"gradient_checkpointing_enable", "recompute: {each: P}", eachLayer},
  {"activation_checkpointing", "recompute: {each: P}", eachLayer},
  {"activation_checkpoint", "recompute: {each: P}", eachLayer},
  {"fsdp_activation_checkpointing", "recompute: {each: P}", eachLayer},
  {"checkpoint_activations", "recompute: {each: P}", eachLayer},
  {"recompute_granularity", "recompute: {each: P}", eachLayer},
  {"recompute_activations", "recompute: {each: P}", eachLayer},
  {"recompute_method", "recompute: {each: P}", eachLayer},
  {"checkpoint", "recompute: {each: P}", eachLayer},
  {"use_flash_attn", "attention", "auto is fused, as flash attention is; unfused has scores in memory"},
  // Communication.
  {"overlap_grad_reduce", "collectives.overlap"},
  {"overlap_comm", "collectives.overlap"},
  {"bucket_cap_mb", "collectives.bucket", "with its unit: 25MiB"},
  {"ddp_bucket_size", "collectives.bucket", byElements},
  {"reduce_bucket_size", "collectives.bucket", byElements},
  {"allgather_bucket_size", "collectives.bucket", byElements},
  // Optimizers and rates.
  {"optim", "train.optimizer"},
  {"optimizer_type", "train.optimizer"},
  {"optimizer_name", "train.optimizer"},
  {"learning_rate", "train.optimizer.lr"},
  {"base_lr", "train.optimizer.lr"},
  {"max_lr", "train.optimizer.lr.peak"},
  {"warmup_max_lr", "train.optimizer.lr.peak"},
  {"min_lr", "train.optimizer.lr.floor"},
  {"eta_min", "train.optimizer.lr.floor"},
  {"warmup_steps", "train.optimizer.lr.warmup"},
  {"num_warmup_steps", "train.optimizer.lr.warmup"},
  {"warmup_num_steps", "train.optimizer.lr.warmup"},
  {"lr_warmup_iters", "train.optimizer.lr.warmup"},
  {"lr_warmup_steps", "train.optimizer.lr.warmup"},
  {"warmup_iters", "train.optimizer.lr.warmup"},
  {"warmup_ratio", "train.optimizer.lr.warmup", "in steps, where that is a share of all"},
  {"lr_warmup_fraction", "train.optimizer.lr.warmup", "in steps, where that is a share of all"},
  {"warmup_epochs", "train.optimizer.lr.warmup", inSteps},
  {"lr_scheduler_type", "train.optimizer.lr.decay"},
  {"lr_decay_style", "train.optimizer.lr.decay"},
  {"decay_type", "train.optimizer.lr.decay"},
  {"lr_scheduler", "train.optimizer.lr"},
  {"lr_schedule", "train.optimizer.lr"},
  {"scheduler", "train.optimizer.lr"},
  {"lr_decay_iters", "train.optimizer.lr.steps"},
  {"lr_decay_steps", "train.optimizer.lr.steps"},
  {"num_training_steps", "train.optimizer.lr.steps"},
  {"total_num_steps", "train.optimizer.lr.steps"},
  {"total_steps", "train.optimizer.lr.steps"},
  {"cycle_momentum", "train.optimizer.momentum", momentumStays},
  {"base_momentum", "train.optimizer.momentum", momentumStays},
  {"max_momentum", "train.optimizer.momentum", momentumStays},
  {"anneal_strategy", "train.optimizer.lr.anneal"},
  {"adam_beta1", "train.optimizer.betas", bothBetas},
  {"adam_beta2", "train.optimizer.betas", bothBetas},
  {"beta1", "train.optimizer.betas", bothBetas},
  {"beta2", "train.optimizer.betas", bothBetas},
  {"adam_eps", "train.optimizer.eps"},
  {"adam_epsilon", "train.optimizer.eps"},
  {"epsilon", "train.optimizer.eps"},
  {"clip_grad", "train.clip"},
  {"clip_grad_norm", "train.clip"},
  {"clip_grad_norm_", "train.clip"},
  {"gradient_clipping", "train.clip"},
  {"gradient_clip_val", "train.clip"},
  {"max_grad_norm", "train.clip"},
  {"max_norm", "train.clip"},
  {"grad_clip", "train.clip"},
  {"clip_grad_value", "train.clip.value"},
  {"clip_grad_value_", "train.clip.value"},
  {"init_method_std", "train.init", "of the weights: {weight: normal(0.02)}"},
  {"initializer_range", "train.init", "of the weights: {weight: normal(0.02)}"},
  // Losses.
  {"ignore_index", "train.loss.ignore"},
  {"label_smoothing", "train.loss.smoothing"},
  {"label_smoothing_factor", "train.loss.smoothing"},
  {"criterion", "train.loss"},
  {"loss_fn", "train.loss"},
  {"class_weight", "train.loss.class_weights"},
  {"weight", "train.loss.class_weights"},
  {"ema_decay", "train.ema"},
  {"model_ema_decay", "train.ema"},
  {"prescale_gradients", "train.loss", "it is a mean over the whole batch"},
  // Formats.
  {"mixed_precision", "precision"},
  {"torch_dtype", "precision"},
  {"dtype", "precision"},
  {"bf16", "precision: bf16"},
  {"bfloat16", "precision: bf16"},
  {"fp16", "precision: fp16"},
  {"float16", "precision: fp16"},
  {"mixed_precision_param", "precision.params"},
  {"mixed_precision_reduce", "precision.reduce"},
  // Options of a run: its length and its checkpoints.
  {"num_train_epochs", "par-run --epochs"},
  {"num_epochs", "par-run --epochs"},
  {"max_epochs", "par-run --epochs"},
  {"epochs", "par-run --epochs"},
  {"max_steps", "par-run --steps"},
  {"train_iters", "par-run --steps"},
  {"train_steps", "par-run --steps"},
  {"save_steps", "par-run --save-every"},
  {"save_interval", "par-run --save-every"},
  {"save_total_limit", "par-run --keep"},
  {"eval_steps", "par-run --eval-every"},
  {"eval_interval", "par-run --eval-every"},
  {"logging_steps", "par-run --log-every"},
  {"log_interval", "par-run --log-every"},
  {"output_dir", "par-run --save"},
  {"resume_from_checkpoint", "par-run --resume"},
  {"stage3_gather_16bit_weights_on_model_save", "par-run --export"},
  {"data_seed", "seed"},
};

static constexpr const char *withoutDecay = "Adam is adamw without weight decay";
static constexpr const char *withMomentum = "momentum is SGD with momentum, 0.9 unless said";

static constexpr ForeignWord words[] = {
  {"train.optimizer", "adam", "{kind: adamw, weight_decay: 0}", withoutDecay},
  {"train.optimizer", "fusedadam", "{kind: adamw, weight_decay: 0}", withoutDecay},
  {"train.optimizer", "adamw_torch", "adamw"},
  {"train.optimizer", "adamw_torch_fused", "adamw"},
  {"train.optimizer", "adamw_hf", "adamw"},
  {"train.optimizer", "torch.optim.adamw", "adamw"},
  {"train.optimizer", "torch.optim.sgd", "sgd", withMomentum},
  {"train.optimizer", "sgd_momentum", "momentum"},
  {"train.optimizer", "sgdm", "momentum"},
  {"train.optimizer.kind", "adam", "adamw", "Adam is adamw with weight_decay: 0"},
  {"train.optimizer.kind", "adamw_torch", "adamw"},
  {"train.optimizer.kind", "torch.optim.adamw", "adamw"},
  {"train.optimizer.kind", "torch.optim.sgd", "sgd", withMomentum},
  {"train.optimizer.kind", "sgd_momentum", "momentum"},
  {"train.optimizer.lr.decay", "inverse_sqrt", "rsqrt"},
  {"train.optimizer.lr.decay", "inverse_square_root", "rsqrt"},
  {"train.optimizer.lr.decay", "constant_with_warmup", "constant", "warmup is a key beside decay"},
  {"train.optimizer.lr.decay", "none", "constant"},
  {"train.optimizer.lr.decay", "multistep", "step"},
  {"train.optimizer.lr.decay", "multisteplr", "step"},
  {"train.optimizer.lr.decay", "steplr", "step"},
  {"train.optimizer.lr.decay", "onecycle", "one_cycle"},
  {"train.optimizer.lr.decay", "onecyclelr", "one_cycle"},
  {"train.loss", "crossentropy", "cross_entropy"},
  {"train.loss", "crossentropyloss", "cross_entropy"},
  {"train.loss", "cross_entropy_loss", "cross_entropy"},
  {"train.loss", "mseloss", "mse"},
  {"train.loss", "mse_loss", "mse"},
  {"train.loss", "l1loss", "l1"},
  {"train.loss", "l1_loss", "l1"},
  {"train.loss", "mae", "l1"},
  {"train.loss", "bcewithlogitsloss", "bce"},
  {"train.loss", "bce_with_logits", "bce"},
  {"train.loss", "binary_cross_entropy_with_logits", "bce"},
  {"train.loss.kind", "crossentropyloss", "cross_entropy"},
  {"train.loss.kind", "mseloss", "mse"},
  {"train.loss.kind", "bcewithlogitsloss", "bce"},
  {"precision", "bfloat16", "bf16"},
  {"precision", "torch.bfloat16", "bf16"},
  {"precision", "bf16_mixed", "bf16"},
  {"precision", "float16", "fp16"},
  {"precision", "torch.float16", "fp16"},
  {"precision", "16_mixed", "fp16"},
  {"precision", "half", "fp16"},
  {"precision", "float32", "f32"},
  {"precision", "torch.float32", "f32"},
  {"precision", "fp32", "f32"},
  {"precision", "no", "f32"},
  {"pipeline.schedule", "interleaved1f1b", "interleaved"},
  {"pipeline.schedule", "interleaved_1f1b", "interleaved"},
  {"pipeline.schedule", "zbvzerobubble", "zb-v"},
  {"pipeline.schedule", "zbv", "zb-v"},
  {"recompute", "true", "{each: P}", eachLayer},
  {"recompute", "false", "none"},
  {"zero", "stage1", "1"},
  {"zero", "stage2", "2"},
  {"zero", "stage3", "3"},
};
// clang-format on

ArrayRef<ForeignKey> foreignKeys() { return keys; }
ArrayRef<ForeignWord> foreignWords() { return words; }

static std::string plain(StringRef name) {
  std::string text = name.ltrim('-').lower();
  llvm::replace(text, '-', '_');
  return text;
}

const ForeignKey *findForeignKey(StringRef name, StringRef place) {
  if (!place.empty())
    if (const ForeignKey *inside = findForeignKey((place + "." + name).str()))
      return inside;
  std::string text = plain(name);
  const ForeignKey *found = llvm::find_if(keys, [&](const ForeignKey &key) { return text == key.name; });
  return found == std::end(keys) ? nullptr : found;
}

const ForeignWord *findForeignWord(StringRef key, StringRef name) {
  std::string text = plain(name);
  const ForeignWord *found =
      llvm::find_if(words, [&](const ForeignWord &word) { return key == word.key && text == word.name; });
  return found == std::end(words) ? nullptr : found;
}

StringRef findUnit(StringRef key) {
  return StringSwitch<StringRef>(key)
      .Cases({"train.optimizer.lr.warmup", "train.optimizer.lr.steps", "train.optimizer.lr.step_size"},
             "in steps, not as a share of all")
      .Default("");
}

std::string foreignAxisHint(StringRef axis) {
  std::string name = plain(axis);
  if (llvm::is_contained({"fsdp", "dp_shard", "shard", "zero"}, name))
    return ("; as replicas that shard their parameters: batch: {over: " + axis + "} with zero: 3").str();
  if (llvm::is_contained({"ddp", "data", "data_parallel", "dp_replicate", "replica", "replicate", "batch"}, name))
    return ("; as replicas: batch: {over: " + axis + "}").str();
  if (llvm::is_contained({"pipe", "pipeline", "stage", "stages"}, name))
    return ("; as stages: pipeline: {over: " + axis + "}").str();
  if (llvm::is_contained({"tensor", "model", "mp"}, name))
    return "; the recipe megatron calls its axis tp";
  return "";
}

} // namespace par
