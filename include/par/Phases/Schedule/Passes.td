#ifndef PAR_SCHEDULE_PASSES_TD
#define PAR_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def BuildProgramsPass : Pass<"par-build-programs", "::mlir::ModuleOp"> {
  let summary = "turns steps into one program per role: buffers, blocks, and the order in which they run";
  let description = [{
    Expects: steps of local fragments (after Partition). Leaves: no step. Each list of ranks has a program of all stages
    on it, with a buffer for each value that outlives a block, a block for each run of fragments and each communication,
    and an entry for each step. The order of compute on a device is the schedule's table. One global order of all
    communication follows the start times of a simulated step; a buffer has as few slots as that order allows.
    - Sums: the first microbatch (`.first`) stores, the others add; the reduction over ranks is in the last one's
      block (`.last`). The buffer of a gradient names its variable.
    - Microbatch indices: in a program that computes with them, an entry first runs a block `number` for each
      microbatch, which stores the index in the microbatch's slot.
    - Several calls a flush: what depends only on forward sums runs with the call's last forward.
    - Several stages on the same ranks: blocks carry the stage's name (`forward.s2`). A transfer between two of them is
      no block, as the value is there; neither is a transfer of a value that the device had or received before.
    - Stages of different meshes: a value goes in parts (`par.send_parts`, `par.recv_parts`), each sent by one rank. In
      an all-reduce across such stages, each user stage adds up the parts of the others.
    Fails: if shards of a transfer to another mesh do not nest, if stages have different meshes and several lie on the
    same ranks, if a loop slices a value that is neither an input nor stacked, if an op other than a microbatch's reads
    a stale variable, if stages on the same ranks have different meshes or hold a variable or input in different parts,
    or if the schedule puts a stage on other ranks.

    ```
    %a = par.run @train.s0.forward(%w, %x) : ...      // in a par.loop 4 of @train, w read from @w
    ```
    becomes
    ```
    par.block @train.forward {
      %w = par.load @w : tensor<64x128xf32>
      %x = par.load @train.x : tensor<4x64xf32>
      %a = par.exec @train.s0.forward(%w, %x) : (tensor<64x128xf32>, tensor<4x64xf32>) -> tensor<4x128xf32>
      par.store %a to @train.forward.0 : tensor<4x128xf32>
    }
    par.entry @train runs [@train.forward, ...] microbatches [0, ...]
    ```
  }];
  let options = [
    Option<"schedule", "schedule", "std::string", "\"1f1b\"",
           "order of forwards and backwards: a schedule of the solver, or the path of a table">,
    Option<"hardware", "hardware", "std::string", "\"cpu\"", "hardware file that costs are predicted from">
  ];
}

def VerifySchedulePass : Pass<"par-verify-schedule", "::mlir::ModuleOp"> {
  let summary = "gate after Schedule: programs fit together";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails if:
    - a step is left, or a stage has no program or two;
    - programs have different entries;
    - a send has no receive of its tag and types on the stage of its peers;
    - a rank receives a part that no rank sends;
    - the entries of all programs, executed with one communication at a time a rank, deadlock;
    - a block loads a slot that is not stored, or that another microbatch stored;
    - a buffer that accumulates a gradient names no variable, or is no shard of it.

    ```
    par.step @train(...) { ... }    // error
    ```
  }];
}

#endif
