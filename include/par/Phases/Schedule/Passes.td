#ifndef PAR_SCHEDULE_PASSES_TD
#define PAR_SCHEDULE_PASSES_TD

include "mlir/Pass/PassBase.td"

def BuildProgramsPass : Pass<"par-build-programs", "::mlir::ModuleOp"> {
  let summary = "turns steps into one program for each list of ranks: buffers, blocks, and the order in which they run";
  let description = [{
    Expects: steps of local fragments (after Partition). Leaves: no step; for each list of ranks a program, of all
    stages that lie on it, with a buffer for whatever outlives a block, a block for each run of fragments and each
    communication, and an entry for each step. The order is the schedule's table on the devices and one global order of
    all communication, by the start times of a simulated step; a buffer has as few slots as that order lets it have.
    Sums over microbatches are stored by the first one (`.first`) and added to by the others; what reduces them over
    ranks joins the last one (`.last`). The buffer of a gradient says of which variable it is. A program that computes
    with the number of the microbatch begins each call of the step with a run for each microbatch (`number`), which
    leaves the number in the microbatch's slot. Where calls follow one another, what is made of a forward's sums alone
    joins the last forward of the call. Of several stages on the same ranks each has its name on its blocks
    (`forward.s2`); a transfer between two of them is no block, since the value is there, and neither is one that brings
    a device what it had or got before. Between stages of different meshes a value goes in parts (`par.send_parts`,
    `par.recv_parts`), each of which one rank sends; a stage_reduce over such stages is added up by each that wants the
    whole.
    Fails: where what crosses to another mesh does not nest, stages have different meshes and several lie on the same
    ranks, a loop slices a value that is neither an input nor stacked, a step reads behind, stages on the same ranks
    have different meshes or hold a variable or input in different parts, or the schedule puts a stage on other ranks.

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
  let summary = "gate: what must hold after Schedule";
  let description = [{
    Expects: anything. Leaves: it unchanged. Fails: where a step is left; a stage has no program or two; programs have
    other entries than each other; a send has no receive of its tag and types on the stage that its peers belong to;
    nobody sends a rank a part that it receives; the
    entries of all programs, played with one communication at a time a rank, come to a halt; a block loads from a slot
    what another microbatch stored there, or nobody; a buffer that accumulates a gradient names no variable, or is no
    shard of it.

    ```
    par.step @train(...) { ... }    // error
    ```
  }];
}

#endif
