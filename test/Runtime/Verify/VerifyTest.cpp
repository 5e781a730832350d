// The proofs and refusals of par-verify.
#include "par/verify/Verify.h"
#include "Broken.h"
#include "ToyBundles.h"
#include "verify/Model.h"
#include <gmock/gmock.h>

#include <gtest/gtest.h>

#include <algorithm>

using namespace par;
using namespace par::format;
using namespace par::verify;

// The bundles built by hand are proved, and counted.
TEST(Verify, Toys) {
  for (const Bundle &bundle : {toy::allReduce(), toy::allReduce(5), toy::pipeline(), toy::pipeline(3), toy::groups(),
                               toy::halves(3), toy::offloaded(), toy::delayed()})
    EXPECT_EQ(complaint(bundle), "");
  Verdict verdict = verifyBundle(toy::pipeline(2));
  EXPECT_EQ(verdict.proof.programs, 2u);
  EXPECT_EQ(verdict.proof.ranks, 4u);
  EXPECT_EQ(verdict.proof.communications, 4u * 9);
  EXPECT_EQ(verdict.proof.longestChain, 9u);
  EXPECT_EQ(verifyBundle(toy::groups()).proof.groups, 4u);
  EXPECT_EQ(par::verify::format(verdict, "t"), "t: proved: 2 programs, 4 ranks: 36 communications, 0 groups, longest "
                                               "wait chain 9; arenas 0.001 and 0.000 MiB\n");
}

// V1: programs and manifest agree.
TEST(Verify, WellFormed) {
  EXPECT_EQ(broken(toy::pipeline(), [](Bundle &b) { b.programs[0].buffers[0].tensor = "w9"; }),
            "V1 program 'stage0', buffer 'w0': the manifest has no tensor 'w9'");
  EXPECT_EQ(broken(toy::pipeline(), [](Bundle &b) { b.programs[1].entries[0].name = "eval"; }),
            "V1 programs 'stage0' and 'stage1' have different entries");
  EXPECT_EQ(broken(toy::pipeline(), [](Bundle &b) { b.manifest.communicators[0].name = "qf"; }),
            "V1 program 'stage0': the manifest has no communicator 'pf'");
  EXPECT_EQ(broken(toy::pipeline(), [](Bundle &b) { b.programs[0].entries[0].runs[0].microbatch = 4; }),
            "V1 program 'stage0', block 'feed' runs for microbatch 4 of 4");
  auto twice = [](Bundle &b) { b.programs[0].entries[0].runs.push_back(b.programs[0].entries[0].runs[0]); };
  EXPECT_EQ(broken(toy::pipeline(), twice),
            "V1 program 'stage0', entry 'train': block 'feed' runs for microbatch 0 after microbatch 3");
  EXPECT_EQ(
      broken(toy::pipeline(), [](Bundle &b) { b.programs[0].buffers[0].index = Index::Mb; }),
      "V1 program 'stage0', buffer 'w0': it has a slot for each microbatch, and tensor 'w0' is not a counter: only "
      "counters have such slots");
  EXPECT_EQ(broken(toy::pipeline(), [](Bundle &b) { at(b.programs[0], "sendact", 1).peer = {0}; }),
            "V1 member 0 of communicator 'pf' is rank 0 itself | rank 0  stage0/sendact:1  send r act    "
            "block sendact, "
            "microbatch 0");
  EXPECT_EQ(broken(toy::pipeline(), [](Bundle &b) { at(b.programs[0], "sendact", 1).peer = {2}; }),
            "V1 member 2 of communicator 'pf' is not among its 2 members | rank 0  stage0/sendact:1  send r "
            "act    block "
            "sendact, microbatch 0");
  EXPECT_EQ(broken(toy::pipeline(), [](Bundle &b) { at(b.programs[0], "feed", 1).name = "z"; }),
            "V1 the manifest has no input 'z' | rank 0  stage0/feed:1  feed z w x    block feed, microbatch 0");
  EXPECT_EQ(broken(toy::pipeline(), [](Bundle &b) { b.manifest.outputs[0].ranks = {0, 1}; }),
            "V1 rank 0 gives output 'out', but its program 'stage0' never fetches it");
  EXPECT_EQ(broken(toy::pipeline(), [](Bundle &b) { at(b.programs[0], "feed", 1).provenance = 3; }),
            "V1 no line 3 of provenance | rank 0  stage0/feed:1  feed x w x    block feed, microbatch 0");
}

// V1: buffers, immediates, communicators and outputs are those of the manifest.
TEST(Verify, WellFormedTables) {
  auto hyper = [](Bundle &b) -> Buffer & {
    Program &p = b.programs[0];
    Buffer lr = p.buffers.back();
    lr.name = "lr", lr.kind = BufferKind::Hyper, lr.tensor = "lr", lr.at = {p.arena.state + p.arena.pool};
    p.arena.pool += 64;
    b.manifest.peak[0].pool += 64;
    b.manifest.hypers = {{"lr", 0.1}};
    p.buffers.push_back(lr);
    return p.buffers.back();
  };
  EXPECT_EQ(broken(toy::pipeline(), [&](Bundle &b) { hyper(b); }), "");
  EXPECT_EQ(broken(toy::pipeline(), [&](Bundle &b) { hyper(b).tensor = "momentum"; }),
            "V1 program 'stage0', buffer 'lr': 'momentum' is no hyperparameter of the manifest, or the buffer is "
            "not one f32 (one a call, by version)");
  // The weight that the update changes.
  EXPECT_THAT(broken(toy::pipeline(),
                     [&](Bundle &b) {
                       for (Tensor &tensor : b.manifest.tensors)
                         tensor.kind = TensorKind::Constant, tensor.value = 0;
                     }),
              ::testing::HasSubstr("holds a constant, which nothing writes"));
  EXPECT_EQ(
      broken(toy::pipeline(), [&](Bundle &b) { hyper(b), at(b.programs[0], "update", 0).operands[0].buffer = 6; }),
      "V1 'lr' is written only by the host | rank 0  stage0/update:0  fill w lr    block update, "
      "microbatch 0");
  EXPECT_EQ(broken(toy::pipeline(),
                   [](Bundle &b) {
                     b.programs[0].arena.state += 64;
                     for (Buffer &buffer : b.programs[0].buffers)
                       for (uint64_t &place : buffer.at)
                         place += buffer.kind == BufferKind::State ? 0 : 64;
                     b.programs[0].buffers.push_back(b.programs[0].buffers[0]);
                     b.programs[0].buffers.back().name = "again", b.programs[0].buffers.back().at = {64};
                   }),
            "V1 program 'stage0', buffer 'again': another buffer holds tensor 'w0'");
  EXPECT_EQ(broken(toy::pipeline(2), [](Bundle &b) { b.manifest.tensors[0].layout.parts[0].ranks = {0}; }),
            "V1 program 'stage0', buffer 'w0': rank 1 holds no part of tensor 'w0'");
  EXPECT_EQ(broken(toy::pipeline(), [](Bundle &b) { b.manifest.tensors[0].layout.parts[0].ranks = {0, 1}; }),
            "V1 rank 1 holds tensor 'w0', but its program 'stage1' has no buffer for it");
  EXPECT_EQ(broken(toy::pipeline(), [](Bundle &b) { b.manifest.tensors[0].type = DType::F64; }),
            "V1 program 'stage0', buffer 'w0': it is f32[4x4], tensor 'w0' is f64[4x4]");
  EXPECT_NE(broken(toy::pipeline(2), [](Bundle &b) { b.manifest.inputs[0].layout.parts.back().ranks.clear(); })
                .find("V1 rank 1 holds no part of input 'x'"),
            std::string::npos);
  EXPECT_NE(broken(toy::pipeline(), [](Bundle &b) { b.manifest.outputs.clear(); })
                .find("V1 the manifest has no output 'out'"),
            std::string::npos);
  EXPECT_NE(broken(toy::pipeline(2), [](Bundle &b) { b.manifest.communicators[0].groups = {{0, 2}}; })
                .find("V1 rank 3 is not in communicator 'pf'"), // rank 1 may leave its send out
            std::string::npos);
  EXPECT_NE(broken(toy::stack({}),
                   [](Bundle &b) {
                     b.programs[0].kernels[0].imms = 1;
                     for (Block &block : b.programs[0].blocks)
                       for (Instruction &it : block.instructions)
                         if (it.op == Op::Kernel && it.kernel == 0)
                           it.imms = {{0, "ep", 1}};
                   })
                .find("V1 the mesh has no axis 'ep'"),
            std::string::npos);
  EXPECT_NE(broken(toy::groups(), [](Bundle &b) { at(b.programs[0], "step", 5).coll = CollKind::AllGather; })
                .find("V1 2 parts of 8 elements do not fit 'a', f32[8]"),
            std::string::npos);
  EXPECT_EQ(broken(toy::pipeline(), [](Bundle &b) { b.programs.push_back(b.programs[0]); }),
            "V1 3 programs for 2 roles");
}

// V1: a builtin touches the bytes that follow from its immediates.
TEST(Verify, Builtins) {
  auto softmax = [](Bundle &b) -> std::pair<Kernel &, Instruction &> {
    Program &p = b.programs[0];
    p.kernels.push_back({"softmax", true, "softmax", {{Access::Read, 32}, {Access::Write, 32}}, 1, 0, 2});
    Instruction &it = at(p, "forward", 2);
    it.op = Op::Kernel;
    it.operands.erase(it.operands.begin() + 1);
    it.imms = {{2}, {4}};
    return {p.kernels.back(), it};
  };
  EXPECT_EQ(broken(toy::pipeline(), [&](Bundle &b) { softmax(b); }), "");
  std::string tail = " | rank 0  stage0/forward:2  kernel softmax r x, w act    block forward, microbatch 0";
  EXPECT_EQ(broken(toy::pipeline(), [&](Bundle &b) { softmax(b).second.imms[0].value = 3; }),
            "V1 operand 0 ('x') of builtin softmax is 12 elements by its immediates, 32 bytes by the kernel table" +
                tail);
  EXPECT_EQ(broken(toy::pipeline(), [&](Bundle &b) { softmax(b).second.imms[0].axis = "dp"; }),
            "V1 operand 0 ('x') of builtin softmax is an unknown number of elements by its immediates, 32 "
            "bytes by the "
            "kernel table" +
                tail);
  std::string text = broken(toy::pipeline(), [&](Bundle &b) {
    Buffer alias = b.programs[0].buffers[2];
    alias.name = "whole", alias.of = 2, alias.at.clear(), alias.type = DType::I32;
    softmax(b).second.operands[1].buffer = uint32_t(b.programs[0].buffers.size());
    b.programs[0].buffers.push_back(alias);
  });
  EXPECT_EQ(text.find("V1 operand 1 ('y') of builtin softmax is f32, 'whole' is i32[2x4] | "), 0u) << text;
  EXPECT_EQ(broken(toy::pipeline(),
                   [&](Bundle &b) {
                     auto [kernel, it] = softmax(b);
                     kernel.operands[1].access = it.operands[1].access = Access::ReadWrite;
                   })
                .substr(0, 50),
            "V1 operand 1 ('y') of builtin softmax is not 'rw' ");
  EXPECT_EQ(broken(toy::pipeline(),
                   [&](Bundle &b) {
                     auto [kernel, it] = softmax(b);
                     kernel.imms = 1, it.imms.pop_back();
                   }),
            "V1 builtin softmax takes 2 immediates, found 1" + tail);
  EXPECT_EQ(broken(toy::pipeline(),
                   [&](Bundle &b) {
                     auto [kernel, it] = softmax(b);
                     kernel.operands.pop_back(), it.operands.pop_back();
                   })
                .substr(0, 71),
            "V1 builtin softmax takes 2 operands with these immediates, found 1 | ra");
  // Products of sizes do not wrap.
  EXPECT_EQ(
      broken(toy::pipeline(), [&](Bundle &b) { softmax(b).second.imms = {{int64_t(1) << 62}, {4}}; }).substr(0, 64),
      "V1 operand 0 ('x') of builtin softmax is an unknown number of el");
  // Blocks that no entry runs are loaded, too.
  EXPECT_EQ(broken(toy::pipeline(),
                   [&](Bundle &b) {
                     Program &p = b.programs[0];
                     softmax(b).second.imms[0].value = 3;
                     p.blocks.push_back({"idle", {at(p, "forward", 2)}});
                     at(p, "forward", 2).imms[0].value = 2;
                   }),
            "V1 program 'stage0', block 'idle': operand 0 ('x') of builtin softmax is 12 elements by its immediates, "
            "32 bytes by the kernel table");
}

// V1: the form of a convolution that keeps all in bf16 touches bf16.
TEST(Verify, NarrowConvolutions) {
  auto convolution = [](const char *form, std::initializer_list<size_t> narrow) {
    return broken(toy::pipeline(), [&](Bundle &b) {
      Program &p = b.programs[0];
      Instruction &it = at(p, "forward", 2); // r x, r w0, w act: 8, 16 and 8 elements
      it.op = Op::Kernel;
      it.kernel = static_cast<uint32_t>(p.kernels.size());
      p.kernels.push_back(
          {"windows", true, form, {{Access::Read, 32}, {Access::Read, 64}, {Access::Write, 32}}, 1, 0, 25});
      // 2 images of 4 channels, 4 filters, all of one element.
      for (int64_t value : {2, 1, 4, 4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1})
        it.imms.push_back({value});
      for (size_t operand : narrow) {
        Buffer view = p.buffers[it.operands[operand].buffer];
        view.of = it.operands[operand].buffer, view.at.clear(), view.name += ".narrow";
        view.type = DType::BF16, view.shape = {2 * view.shape[0], view.shape[1]};
        it.operands[operand].buffer = static_cast<uint32_t>(p.buffers.size());
        p.buffers.push_back(view);
      }
    });
  };
  EXPECT_EQ(convolution("convolution", {}), "");
  auto begins = [](const std::string &text, const std::string &begin) {
    EXPECT_EQ(text.substr(0, begin.size()), begin);
  };
  begins(convolution("convolution_bf16", {}),
         "V1 operand 0 ('x') of builtin convolution_bf16 is bf16, 'x' is f32[2x4] | ");
  begins(convolution("convolution", {2}),
         "V1 operand 2 ('y') of builtin convolution is f32, 'act.narrow' is bf16[4x4] | ");
  begins(convolution("convolution_bf16", {0, 1, 2}),
         "V1 operand 0 ('x') of builtin convolution_bf16 is 8 elements by its immediates, 32 bytes by the "
         "kernel table");
}

// V1: vector accesses of a GPU's kernels are aligned, and host memory is only copied.
TEST(Verify, OnGpu) {
  auto gpu = [](auto change) {
    return broken(toy::pipeline(), [&](Bundle &b) {
      b.manifest.device = "cuda";
      for (size_t role = 0; role < b.programs.size(); ++role) {
        Program &p = b.programs[role];
        for (Buffer &buffer : p.buffers)
          for (uint64_t &place : buffer.at)
            place *= 4;
        b.manifest.peak[role].state = p.arena.state *= 4;
        b.manifest.peak[role].pool = p.arena.pool *= 4;
      }
      change(b);
    });
  };
  EXPECT_EQ(gpu([](Bundle &) {}), "");
  auto half = [&](uint64_t offset) {
    return gpu([&](Bundle &b) {
      Program &p = b.programs[0];
      Buffer alias = p.buffers[p.findBuffer("x")];
      alias.name = "half", alias.of = p.findBuffer("x"), alias.at.clear(), alias.shape = {1, 4}, alias.offset = offset;
      p.buffers.push_back(alias);
      p.kernels.push_back({"softmax", true, "softmax", {{Access::Read, 16}, {Access::Write, 16}}, 1, 0, 2});
      Instruction &it = at(p, "forward", 2);
      it.op = Op::Kernel;
      it.operands.erase(it.operands.begin() + 1);
      it.operands[0].buffer = uint32_t(p.buffers.size() - 1);
      it.imms = {{1}, {4}};
    });
  };
  EXPECT_EQ(half(8),
            "V1 'half' begins 8 bytes into 'x', not at a multiple of the 16 bytes of an access, as operands of "
            "kernels and calls of a bundle for cuda do | rank 0  stage0/forward:2  kernel softmax r half, w "
            "act    block forward, microbatch 0");
  EXPECT_EQ(half(16).substr(0, 3), "V5 "); // the other half of its result is missing
  EXPECT_EQ(gpu([](Bundle &b) {
              Program &p = b.programs[0];
              p.arena.host = 256;
              p.buffers[p.findBuffer("x")].space = Space::Host;
              for (uint64_t &place : p.buffers[p.findBuffer("x")].at)
                place = 0;
            }),
            "V1 'x' lies in the host's memory, which only copies touch in a bundle for cuda | rank 0  stage0/feed:1  "
            "feed x w x    block feed, microbatch 0");
}

// V5: ranks with the same tensors have corresponding values, though each reads only its own writes.
TEST(Verify, ReplicaConsistency) {
  auto alone = [](Bundle &b) -> std::vector<Instruction> & {
    b.manifest.ranks[3].role = b.manifest.roles++;
    b.manifest.peak.push_back(b.manifest.peak[0]);
    b.programs.push_back(b.programs[0]);
    return b.programs.back().blocks[b.programs.back().findBlock("forward")].instructions;
  };
  EXPECT_EQ(broken(toy::stack({}), [&](Bundle &b) { alone(b); }), "");
  EXPECT_EQ(broken(toy::stack({}),
                   [&](Bundle &b) {
                     auto &list = alone(b);
                     std::swap(list[3], list[4]),
                         std::swap(list[4], list[5]); // the sum follows the next layer's matmul
                   }),
            "V5 diverged: ranks 0 and 3 hold the same tensors, but give a communication values that were "
            "made in different "
            "ways | rank 0  stage0/forward:3  coll rw t1    block forward, microbatch 0 | rank 3  "
            "stage0/forward:5  coll rw "
            "t1    block forward, microbatch 0");
  EXPECT_EQ(broken(toy::stack({}),
                   [&](Bundle &b) {
                     alone(b);
                     at(b.programs.back(), "update", 1).operands[1].buffer = 1; // both gradients into p1
                     at(b.programs.back(), "update", 2).operands[1].buffer = 0;
                   }),
            "V5 diverged: ranks 0 and 3 compute tensor 'w0' of entry train in different ways");
  // Both copy a row over a summed value, but not the same one.
  auto copyRow = [](Program &program, uint64_t from) {
    auto row = [&](std::string_view of, uint64_t offset) {
      auto whole = std::ranges::find(program.buffers, of, &Buffer::name);
      Buffer alias = *whole;
      alias.name += ".row", alias.shape = {1, 16}, alias.at.clear();
      alias.of = uint32_t(whole - program.buffers.begin()), alias.offset = offset;
      program.buffers.push_back(alias);
      return uint32_t(program.buffers.size() - 1);
    };
    auto &list = program.blocks[program.findBlock("forward")].instructions;
    auto sum = std::ranges::find(list, Op::Coll, &Instruction::op);
    Instruction copy;
    copy.op = Op::Copy, copy.queue = sum->queue, copy.n = 16;
    copy.operands = {{Access::Read, row("p0", from)}, {Access::Write, row("t1", 0)}};
    list.insert(sum, copy);
  };
  auto copyRows = [&](uint64_t first, uint64_t second) {
    return broken(toy::stack({}), [&](Bundle &b) {
      alone(b);
      copyRow(b.programs.front(), first), copyRow(b.programs.back(), second);
    });
  };
  EXPECT_EQ(copyRows(64, 64), "");
  EXPECT_THAT(copyRows(64, 128),
              ::testing::HasSubstr("V5 diverged: ranks 0 and 3 hold the same tensors, but give a communication"));
  // A result that is fetched before its last matmul.
  std::string text = broken(toy::stack({}), [&](Bundle &b) {
    alone(b);
    auto &list = b.programs.back().blocks[b.programs.back().findBlock("backward.first")].instructions;
    auto fetch = std::find_if(list.begin(), list.end(), [](const Instruction &it) { return it.op == Op::Fetch; });
    ASSERT_NE(fetch, list.end());
    std::rotate(list.begin() + 7, fetch, fetch + 1);
  });
  EXPECT_EQ(text.find("V5 diverged: ranks 0 and 3 hold the same tensors, but give output 'gx' values that were made in "
                      "different ways | rank 0  stage0/backward.first:"),
            0u)
      << text;
}

// V5: a gradient is complete when it is first read.
TEST(Verify, AccumulatesBeforeReading) {
  std::string text = broken(toy::stack({2, 1, 2, 4, 1, true}), [](Bundle &b) {
    Program &p = b.programs[0];
    p.entries[0].runs.push_back({uint32_t(p.blocks.size()), 3, 0}); // the last summand once more, after the update
    p.blocks.push_back({"more", {at(p, "backward.last", 1)}});
  });
  EXPECT_EQ(text, "V5 early: 'g0' is accumulated into after another run has read it | rank 0  stage0/update:0  kernel "
                  "descend r g0, rw p0    block update, microbatch 0 | rank 0  stage0/more:0  kernel gradient r "
                  "x0, r t2, acc g0    block more, microbatch 3");
}

// In-place gather and scatter share their operand between members: values not gathered need not exist before, and those
// of other ranks are gone after.
TEST(Verify, GatherAndScatter) {
  auto build = [](CollKind kind) {
    Bundle bundle = toy::allReduce(2);
    Program &p = bundle.programs[0];
    at(p, "step", 7).coll = kind;
    at(p, "step", 7).n = 4;
    at(p, "step", 4).n = kind == CollKind::AllGather ? 4 : 8; // the copy into y
    return bundle;
  };
  // Member 1 gathers from a part that the copy has not written.
  std::string text = complaint(build(CollKind::AllGather));
  EXPECT_EQ(text.find("V5 uninitialised: bytes [144, 160) are read as 'y'"), 0u) << text;
  text = complaint(build(CollKind::ReduceScatter));
  EXPECT_EQ(text.find("V5 undefined: bytes [144, 160) are read as 'y', but a collective left them undefined"), 0u)
      << text;
}

// Members other than the root of a reduction are swept too: their operand is lost.
TEST(Verify, Rooted) {
  Bundle bundle = toy::allReduce(2);
  at(bundle.programs[0], "step", 7).coll = CollKind::Reduce;
  std::string text = complaint(bundle);
  EXPECT_EQ(text.find("V5 undefined: bytes ["), 0u) << text;
  EXPECT_NE(text.find("rank 1  all/step:"), std::string::npos) << text;
}

// V4: communications of a group move together, so none may need another.
TEST(Verify, WithinGroup) {
  for (bool received : {false, true}) {
    std::string text = broken(toy::groups(), [&](Bundle &b) {
      for (Instruction &it : b.programs[0].blocks[0].instructions)
        if (received && it.op == Op::Recv)
          it.operands[0].buffer = b.programs[0].findBuffer("a"); // which the group sends
        else if (!received && it.op == Op::Coll)
          it.operands[0].buffer = 0, it.n = 4; // both of the group reduce it
      if (!received)
        for (Instruction &it : b.programs[1].blocks[0].instructions)
          if (it.op == Op::Coll)
            it.operands[0].buffer = 0, it.n = 4;
    });
    EXPECT_EQ(text.find("V4 race: two instructions touch 'a'"), 0u) << text;
    EXPECT_NE(text.find(received ? "recv w a" : "coll rw a"), std::string::npos) << text;
  }
}

// V2: both sides of a communication say the same.
TEST(Verify, Matching) {
  EXPECT_EQ(broken(toy::pipeline(), [](Bundle &b) { at(b.programs[1], "recvact", 1).n = 4; }),
            "V2 mismatch: ranks 0 and 1 differ on communicator 'pf' of entry train: count, 8 and 4 | rank 0  "
            "stage0/sendact:1  send f32[2x4] to 1    block sendact, microbatch 0 | rank 1  stage1/recvact:1  "
            "recv f32[4] "
            "from 0    block recvact, microbatch 0");
  EXPECT_NE(broken(toy::pipeline(), [](Bundle &b) { at(b.programs[1], "recvact", 1).tag = 7; }).find("tag, 1 and 7"),
            std::string::npos);
  EXPECT_NE(broken(toy::pipeline(),
                   [](Bundle &b) { b.programs[1].entries[0].runs.erase(b.programs[1].entries[0].runs.begin()); })
                .find("microbatch, 0 and 1"),
            std::string::npos);
  EXPECT_NE(broken(toy::pipeline(),
                   [](Bundle &b) { b.programs[1].entries[0].runs.erase(b.programs[1].entries[0].runs.begin() + 7); })
                .find("one has 4 operations, the other 3"),
            std::string::npos);
  EXPECT_NE(broken(toy::groups(), [](Bundle &b) { at(b.programs[1], "step", 5).reduction = Reduction::Max; })
                .find("reduction, sum and max"),
            std::string::npos);
  EXPECT_NE(broken(toy::groups(),
                   [](Bundle &b) {
                     auto &list = b.programs[1].blocks[0].instructions;
                     list.erase(list.begin() + 4);
                   })
                .find("size of group, 2 and 0"),
            std::string::npos);
  EXPECT_NE(broken(toy::groups(),
                   [](Bundle &b) {
                     auto &list = b.programs[0].blocks[0].instructions;
                     list.erase(list.begin() + 7, list.begin() + 9); // the group and its send
                   })
                .find("nothing is sent for this receive"),
            std::string::npos);
}

// V3: two ranks that send before they receive wait for each other; in a group they do not.
TEST(Verify, Deadlock) {
  std::string text = broken(toy::groups(), [](Bundle &b) {
    for (Program &program : b.programs)
      program.blocks[0].instructions.erase(program.blocks[0].instructions.begin() + 7);
  });
  EXPECT_EQ(text,
            "V3 deadlock: ranks 0 and 1 wait for each other in entry train | rank 0  rank0/step:7  send f32[8] to "
            "1    block step, microbatch 0; rank 1 joins later, at rank1/step:8 | rank 1  rank1/step:7  send "
            "f32[8] "
            "to 0    block step, microbatch 0; rank 0 joins later, at rank0/step:8");
  // Receive before use, send after produce: the obvious order of 1F1B (docs/phases/schedule.md).
  text = broken(toy::pipeline(), [](Bundle &b) {
    auto &runs = b.programs[0].entries[0].runs;
    std::swap(runs[10], runs[11]); // recvgrad 1 after sendact 2, which stage 1 receives after sendgrad 1
  });
  EXPECT_NE(text.find("V3 deadlock: ranks 0 and 1 wait for each other in entry train"), std::string::npos) << text;
  // Half a group waits for itself: its other half comes later.
  text = broken(toy::groups(), [](Bundle &b) {
    auto &list = b.programs[0].blocks[0].instructions;
    list.erase(list.begin() + 7);
  });
  EXPECT_NE(text.find("V3 deadlock: rank 0 waits for itself in entry train"), std::string::npos) << text;
}

// V4: without the wait between them, an asynchronous reduction races with writes and reads of its operand.
TEST(Verify, Race) {
  for (auto [block, n] : {std::pair("update", 2), std::pair("update", 5), std::pair("sendact", 0),
                          std::pair("forward", 1), std::pair("recvgrad", 0), std::pair("feed", 0)}) {
    std::string text = broken(toy::pipeline(2), [&](Bundle &b) {
      auto &list = b.programs[0].blocks[b.programs[0].findBlock(block)].instructions;
      ASSERT_EQ(list[n].op, Op::Wait);
      list.erase(list.begin() + n);
    });
    EXPECT_EQ(text.find("V4 race: two instructions touch '"), 0u) << block << ": " << text;
  }
}

// V5: every read sees the value that was last written under its buffer and microbatch.
TEST(Verify, Values) {
  EXPECT_EQ(broken(toy::pipeline(), [](Bundle &b) { at(b.programs[0], "forward", 2).operands[0].buffer = 3; }),
            "V5 uninitialised: bytes [320, 352) are read as 'gact' of microbatch 0, but nothing wrote them in this "
            "entry | "
            "rank 0  stage0/forward:2  call product r gact, r w0, w act    block forward, microbatch 0");
  for (const char *name : {"x", "act"}) {
    // A depth of one: the second microbatch overwrites the first.
    std::string text = broken(toy::pipeline(),
                              [&](Bundle &b) { b.programs[0].buffers[b.programs[0].findBuffer(name)].at.pop_back(); });
    EXPECT_TRUE(text.find("V5 overwritten: ") == 0 || text.find("V4 race: ") == 0) << text;
  }
  // Shifted onto live bytes.
  std::string shifted = broken(toy::pipeline(), [](Bundle &b) {
    Program &p = b.programs[0];
    p.buffers[p.findBuffer("act")].at[0] = p.buffers[p.findBuffer("x")].at[0];
  });
  EXPECT_EQ(shifted.find("V5 overlap: operands 0 and 2 of one instruction share bytes"), 0u) << shifted;
  EXPECT_NE(broken(toy::pipeline(), [](Bundle &b) { at(b.programs[0], "backward", 1).operands[0].slot.offset = -1; })
                .find("V5 microbatch 1 touches 'x' of microbatch 0"),
            std::string::npos);
  // A kernel does not overwrite its operand.
  EXPECT_NE(broken(toy::allReduce(), [](Bundle &b) { at(b.programs[0], "step", 10).operands[1].buffer = 0; })
                .find("V5 overlap: "),
            std::string::npos);
}

/// The toy whose matmul also sums its second operand, into a buffer of its own.
static Bundle withSum() {
  Bundle bundle = toy::allReduce();
  Program &p = bundle.programs[0];
  Buffer sum = p.buffers[p.findBuffer("y")];
  sum.name = "sum";
  sum.shape = {8};
  sum.at = {(p.arena.deviceBytes() + arenaAlignment - 1) / arenaAlignment * arenaAlignment};
  p.buffers.push_back(sum);
  p.arena.pool = sum.at[0] + arenaAlignment - p.arena.state;
  bundle.manifest.peak[0].pool = p.arena.pool;
  p.calls[0].epilogue = Epilogue::SumB;
  std::vector<Operand> &operands = at(p, "step", 10).operands;
  Operand written = operands[1];
  written.access = Access::Write, written.buffer = p.findBuffer("sum");
  operands.insert(operands.begin() + 2, written);
  return bundle;
}

// V1, V5: a matmul's sum is an operand that it writes.
TEST(Verify, SumsBesideProducts) {
  EXPECT_EQ(complaint(withSum()), "");
  auto isFetched = [](Bundle &b) {
    at(b.programs[0], "step", 13).operands[0].buffer = b.programs[0].findBuffer("sum");
  };
  EXPECT_EQ(broken(withSum(), isFetched), "");
  auto sum = [](Bundle &b) -> Buffer & { return b.programs[0].buffers.back(); };
  auto operands = [](Bundle &b) -> std::vector<Operand> & { return at(b.programs[0], "step", 10).operands; };
  auto says = [&](auto change, const std::string &what) {
    std::string text = broken(withSum(), change);
    EXPECT_NE(text.find(what), std::string::npos) << text;
  };
  says([&](Bundle &b) { operands(b)[2].access = Access::Read; },
       "V1 role-0.json: blocks.step[10]: operand 2 of call 'add' is 'w', got 'r sum'");
  says([&](Bundle &b) { sum(b).shape = {7}; },
       "V1 role-0.json: blocks.step[10]: operand 2 of call 'add' touches 32 bytes of f32, 'sum' is f32[7]");
  says([&](Bundle &b) { sum(b).type = DType::I32; },
       "V1 role-0.json: blocks.step[10]: operand 2 of call 'add' touches 32 bytes of f32, 'sum' is i32[8]");
  says([&](Bundle &b) { operands(b).erase(operands(b).begin() + 2); },
       "V1 role-0.json: blocks.step[10]: call 'add' takes 4 operands, got 3");
  says([&](Bundle &b) { operands(b)[2].buffer = operands(b)[1].buffer; }, "V5 overlap: ");
  says([&](Bundle &b) { operands(b)[2].buffer = operands(b)[3].buffer; }, "V5 overlap: ");
}

// V5: state is whole at the end of an entry, and results of communication are used.
TEST(Verify, StateAndResults) {
  EXPECT_NE(broken(toy::allReduce(),
                   [](Bundle &b) {
                     auto &list = b.programs[0].blocks[0].instructions;
                     list.erase(list.begin() + 10); // total += y
                     list.back().operands[0].buffer = 1;
                     list.back().name = "y";
                   })
                .find("V5 lost: the result of a communication is never read"),
            std::string::npos);
  // The first microbatch multiplies rows of the weights instead of received ones.
  std::string text = broken(toy::pipeline(1), [](Bundle &b) {
    Program &stage = b.programs[1];
    Buffer rows = stage.buffers[stage.findBuffer("w1")];
    rows.name = "w1.rows", rows.shape = {2, 4}, rows.at.clear();
    rows.of = stage.findBuffer("w1");
    uint32_t act = stage.findBuffer("act");
    stage.buffers.push_back(rows);
    for (Instruction &it : stage.blocks[stage.findBlock("both.first")].instructions)
      for (Operand &operand : it.operands)
        if (operand.buffer == act)
          operand = {operand.access, uint32_t(stage.buffers.size() - 1)};
  });
  EXPECT_EQ(text.find("V5 lost: what is received for microbatch 0 is never read, that of others is"), 0u) << text;
}

/// toy::groups() with one group of two all_gathers: each of two elements of `a`, into its half of `theirs`.
static Bundle parts() {
  Bundle b = toy::groups();
  for (Program &p : b.programs) {
    auto part = [&](const char *of, uint64_t offset, int64_t n) {
      Buffer alias = p.buffers[p.findBuffer(of)];
      alias.of = p.findBuffer(of);
      alias.name = std::string(of) + "." + std::to_string(offset);
      alias.shape = {n};
      alias.offset = offset;
      alias.at.clear();
      p.buffers.push_back(alias);
      return uint32_t(p.buffers.size() - 1);
    };
    auto &list = p.blocks[0].instructions;
    for (size_t i : {0, 1}) {
      Instruction &it = list[5 + i];
      it.coll = CollKind::AllGather;
      it.n = 2;
      it.operands = {it.operands[0], it.operands[0]};
      it.operands[0].access = Access::Read, it.operands[0].buffer = part("a", 8 * i, 2);
      it.operands[1].access = Access::Write, it.operands[1].buffer = part("theirs", 16 * i, 4);
    }
    list.erase(list.begin() + 7, list.begin() + 10); // the exchange
  }
  return b;
}

// V5: the blocks of one value are one result, and are taken from different places.
TEST(Verify, Parts) {
  EXPECT_EQ(complaint(parts()), "");
  auto fetchHalf = [](Bundle &b) {
    for (Program &p : b.programs)
      at(p, "step", 9).operands[0].buffer = p.findBuffer("theirs.0");
    b.manifest.outputs[0].shape = {4};
  };
  EXPECT_EQ(broken(parts(), fetchHalf), "");
  auto apart = [&](Bundle &b) {
    fetchHalf(b);
    for (Program &p : b.programs)
      p.blocks[0].instructions.erase(p.blocks[0].instructions.begin() + 4); // the group
  };
  EXPECT_NE(broken(parts(), apart).find("V5 lost: the result of a communication is never read"), std::string::npos);
  auto move = [](uint64_t offset) {
    return [offset](Bundle &b) {
      for (Program &p : b.programs)
        p.buffers[p.findBuffer("a.8")].offset = offset;
    };
  };
  EXPECT_EQ(broken(parts(), move(0)), "");
  EXPECT_NE(broken(parts(), move(4)).find("V5 overlap: two collectives of one group read parts that overlap"),
            std::string::npos);
}

// V6: the peak of the manifest is the arena, and reached.
TEST(Verify, Peak) {
  EXPECT_EQ(broken(toy::allReduce(), [](Bundle &b) { b.manifest.peak[0].pool += 64; }),
            "V6 program 'all' has an arena of 64 + 192 bytes, the manifest says 64 + 256");
  EXPECT_EQ(broken(toy::allReduce(), [](Bundle &b) { b.manifest.peak[0].pool = b.programs[0].arena.pool = 4096; }),
            "V6 program 'all' has an arena of 64 + 4096 bytes, but its buffers end at 32 and 196");
  EXPECT_EQ(broken(toy::offloaded(), [](Bundle &b) { b.manifest.peak[0].host = 0; }),
            "V6 program 'all' has 64 bytes in the host's memory, the manifest says 0");
  EXPECT_EQ(broken(toy::offloaded(), [](Bundle &b) { b.manifest.peak[0].host = b.programs[0].arena.host = 4096; }),
            "V6 program 'all' has 4096 bytes in the host's memory, but its buffers end at 64");
}

// V4 and V5 know both spaces: a copy that nothing orders is a race there as elsewhere.
TEST(Verify, HostSpace) {
  auto without = [](size_t n) {
    return broken(toy::offloaded(), [&](Bundle &b) {
      auto &list = b.programs[0].blocks[0].instructions;
      list.erase(list.begin() + std::ptrdiff_t(n));
    });
  };
  EXPECT_EQ(without(1).substr(0, 3), "V4 ") << without(1); // read by the block before
  EXPECT_EQ(without(5).substr(0, 3), "V4 ") << without(5); // the state is not there yet
  EXPECT_EQ(without(8).substr(0, 3), "V4 ") << without(8); // it is taken before it is made
  EXPECT_EQ(without(2).substr(0, 3), "V5 ") << without(2); // it is never brought
}
