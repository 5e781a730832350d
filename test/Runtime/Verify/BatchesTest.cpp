//===- BatchesTest.cpp - V5: of which batch, version and microbatches a value is ----------===//
//
// Part of Par, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "Broken.h"
#include "ToyBundles.h"

#include <gtest/gtest.h>

#include <algorithm>

using namespace par;
using namespace par::format;
using namespace par::verify;

namespace {
using Runs = std::vector<Run>;
} // namespace

// V5: a sum to which a kernel adds in place is whole when it is first read.
TEST(Batches, AddsInPlaceBeforeReading) {
  std::string text = broken(toy::stack({2, 1, 2, 4, 1, true}), [](Bundle &b) {
    Program &p = b.programs[0];
    auto inPlace = [](auto &operands) {
      for (auto &operand : operands)
        if (operand.access == Access::Accumulate)
          operand.access = Access::ReadWrite;
    };
    for (Block &block : p.blocks)
      for (Instruction &it : block.instructions)
        inPlace(it.operands);
    for (Kernel &kernel : p.kernels)
      inPlace(kernel.operands);
    auto &runs = p.entries[0].runs;
    std::rotate(runs.end() - 3, runs.end() - 1, runs.end());
  });
  EXPECT_EQ(text.substr(0, text.find(" | ")), "V5 early: 'g0' is accumulated into after another run has read it") << text;
}

// V5: of a receive that is read for some microbatches no other one is lost.
TEST(Batches, ReceivedIsRead) {
  std::string text = broken(toy::pipeline(), [](Bundle &b) {
    auto leaveOut = [&](uint32_t role, std::vector<std::string> names) {
      Program &p = b.programs[role];
      std::erase_if(p.entries[0].runs, [&](const auto &run) {
        return run.microbatch == 1 && std::count(names.begin(), names.end(), p.blocks[run.block].name) > 0;
      });
    };
    leaveOut(0, {"recvgrad", "backward"});
    leaveOut(1, {"both", "sendgrad"});
  });
  EXPECT_EQ(text.substr(0, text.find(" | ")), "V5 lost: what is received for microbatch 1 is never read, that of others is");
}

// V5: where batches begin before the one before them has updated, each computes with its own version of the weights and its own
// values of a batch.
TEST(Batches, Versions) {
  auto says = [](auto change, const std::string &what) {
    std::string text = broken(toy::delayed(), [&](Bundle &b) { change(b.programs[0], b.programs[0].entries[0].runs); });
    EXPECT_EQ(text.substr(0, text.find(" | ")), what) << text;
  };
  says([](Program &p, Runs &runs) { runs[5].block = p.findBlock("first"); },
       "V5 version: a run of version 0 reads parameter 'w' after 1 updates");
  says([](Program &p, Runs &) { std::swap(at(p, "update", 0), at(p, "update", 1)); },
       "V5 version: a run of version 0 reads parameter 'w' after 1 updates");
  says([](Program &, Runs &runs) { runs[9].version = 0; }, "V5 overwritten: bytes [320, 336) are read as 'older' of version 0, but hold 'older' of version 1");
  says([](Program &p, Runs &) { at(p, "update", 1).operands[1].slot = {SlotExpr::Fixed, 0}; },
       "V5 version: a run of version 1 reads hyper 'lr' of version 0");
  says([](Program &, Runs &runs) { runs.pop_back(); }, "V5 version: entry train ends after 2 updates of parameter 'w', of 3 batches");
  says([](Program &, Runs &runs) { std::rotate(runs.begin() + 1, runs.begin() + 4, runs.begin() + 5); },
       "V5 batch: 'scale' is read for batch 0, but was made for batch 1");
}

// V5: what several microbatches sum is read before another sum takes its place.
TEST(Batches, SumsBegunAnew) {
  std::string text = broken(toy::delayed(), [](Bundle &b) {
    b.programs[0].entries[0].runs[2].block = b.programs[0].findBlock("first");
  });
  EXPECT_EQ(text.substr(0, text.find(" | ")), "V5 lost: 'g' is summed anew before the sum that it has is read");
}

// V5: a buffer of one slot that is indexed by the microbatch holds one microbatch's value, and that of no other is read there.
TEST(Batches, OneSlot) {
  std::string text = broken(toy::delayed(), [](Bundle &b) {
    std::swap(at(b.programs[0], "next", 0), at(b.programs[0], "next", 1)); // the kernel before what feeds it
  });
  EXPECT_NE(text.find("are read as 'x' of microbatch 1, but hold 'x' of microbatch 0"), std::string::npos) << text;
}
