// Invalid programs and manifests are refused.
#include "ToyBundles.h"
#include "par/format/Sha256.h"
#include "par/verify/Verify.h"

#include <gtest/gtest.h>

#include <functional>

using namespace par;
using namespace par::format;

namespace {
template <typename T>
struct Case {
  std::function<void(T &)> change;
  const char *message;
};

Instruction &at(Program &program, const char *block, size_t n) {
  return program.blocks[program.findBlock(block)].instructions[n];
}

/// A view of two elements in the middle of x.
Buffer view(Program &program) {
  Buffer alias = program.buffers[program.findBuffer("x")];
  alias.name = "view";
  alias.of = program.findBuffer("x");
  alias.offset = 8;
  alias.shape = {2};
  alias.at.clear();
  return alias;
}

/// Checks each case on a fresh stage 0, in memory: numbers that no file could hold are among them.
void expectRefused(const std::vector<Case<Program>> &cases) {
  for (const Case<Program> &it : cases) {
    Bundle bundle = toy::pipeline();
    it.change(bundle.programs[0]);
    verify::Verdict verdict = verify::verifyBundle(bundle);
    ASSERT_FALSE(verdict) << "accepted, but expected " << it.message;
    EXPECT_NE(verdict.counterexample->message.find(it.message), std::string::npos)
        << verdict.counterexample->message << "\nexpected " << it.message;
    EXPECT_EQ(verify::toString(verdict.counterexample->property), "V1");
  }
}
} // namespace

// Tables: names, buffers, aliases.
TEST(Check, Buffers) {
  expectRefused({
      {[](Program &p) { p.buffers[1].name = "a b"; }, "role-0.json: buffers: 'a b' is not a name"},
      {[](Program &p) { p.buffers[1].name = "act"; }, "buffers: 'act' stands there twice"},
      {[](Program &p) { p.queues.clear(); }, "queues: 0 queues, expected 1 to 8"},
      {[](Program &p) { p.arena.pool = uint64_t(1) << 60; }, "arena: more than 2^47 bytes"},
      {[](Program &p) { p.buffers[0].tensor.clear(); },
       "buffers.w0: a buffer of kind 'state' or 'hyper' names its tensor or hyperparameter"},
      {[](Program &p) { p.buffers[1].tensor = "w0"; },
       "buffers.x: only a buffer of kind 'state' or 'hyper' names a tensor"},
      {[](Program &p) { p.buffers[1].shape = {-1}; },
       "buffers.x: its shape f32[-1] has a dim below 0 or more than 2^47 bytes"},
      {[](Program &p) { p.buffers[1].at.clear(); }, "buffers.x: 0 slots, expected 1 to 2^20"},
      {[](Program &p) { p.buffers[1].at[1] += 1 << 20; }, "are outside its arena's [64, 576)"},
      {[](Program &p) {
         p.buffers.push_back(view(p)), p.buffers.push_back(view(p)), p.buffers.back().name = "v",
                                                                     p.buffers.back().of = 6;
       },
       "buffers.v: an alias must lie in a buffer that is not an alias"},
      {[](Program &p) { p.buffers.push_back(view(p)), p.buffers.back().of = 99; },
       "buffers.view: an alias must lie in a buffer that is not an alias"},
      {[](Program &p) { p.buffers.push_back(view(p)), p.buffers.back().index = Index::None; },
       "buffers.view: space, kind and index must be those of 'x', in which it lies"},
      {[](Program &p) { p.buffers.push_back(view(p)), p.buffers.back().at = {64}; },
       "buffers.view: an alias has no offsets of its own"},
      {[](Program &p) { p.buffers.push_back(view(p)), p.buffers.back().offset = 28; },
       "buffers.view: bytes [28, +8) exceed the 32 of 'x'"},
      {[](Program &p) { p.buffers.push_back(view(p)), p.buffers.back().offset = ~uint64_t(3); },
       "exceed the 32 of 'x'"},
      {[](Program &p) { p.buffers.push_back(view(p)), p.buffers.back().offset = 6; },
       "buffers.view: offset 6 is not a multiple of its element's 4 bytes"},
  });
}

// Tables: library calls, events, entries.
TEST(Check, CallsEventsEntries) {
  expectRefused({
      {[](Program &p) { p.calls[0].type = DType::I32; }, "calls.product: a matmul of i32 is not supported"},
      {[](Program &p) { p.calls[0].typeC = DType::BF16; }, "calls.product: a matmul of f32 into bf16 is not supported"},
      {[](Program &p) { p.calls[0].epilogue = Epilogue::Gelu, p.calls[0].ldc = 12; },
       "calls.product: epilogue gelu needs one matmul with alpha 1, beta 0, C of the operands' type and ldc a "
       "multiple of 8"},
      {[](Program &p) {
         p.calls[0].epilogue = Epilogue::GeluGrad, p.calls[0].ldc = 8, p.calls[0].beta = 0, p.calls[0].bias = true;
       },
       "calls.product: epilogue gelu_grad has no bias"},
      {[](Program &p) { p.calls[0].epilogue = Epilogue::SumB, p.calls[0].bias = true; },
       "calls.product: epilogue sum_b needs one matmul without a batch, C of f32 and no bias"},
      {[](Program &p) { p.calls[0].epilogue = Epilogue::SumA, p.calls[0].type = p.calls[0].typeC = DType::BF16; },
       "calls.product: epilogue sum_a needs one matmul without a batch, C of f32 and no bias"},
      {[](Program &p) { p.calls[0].epilogue = Epilogue::SumA, p.calls[0].transA = false; },
       "calls.product: epilogue sum_a needs its operand stored with the sum's elements side by side"},
      {[](Program &p) { p.calls[0].epilogue = Epilogue::SumB, p.calls[0].transB = true; },
       "calls.product: epilogue sum_b needs its operand stored with the sum's elements side by side"},
      {[](Program &p) { p.calls[0].batch = {2}; }, "calls.product: every batch dim needs a stride of A, B and C"},
      {[](Program &p) {
         p.calls[0].batch = {2}, p.calls[0].strideA = p.calls[0].strideC = {8}, p.calls[0].strideB = {-8};
       },
       "calls.product: negative batch dim or stride -8"},
      {[](Program &p) {
         p.calls[0].batch = {2}, p.calls[0].strideA = p.calls[0].strideB = {8}, p.calls[0].strideC = {0};
       },
       "calls.product: C repeats over batch dim 0"},
      {[](Program &p) {
         Call &call = p.calls[0];
         call.batch = {96, 96, 96, 96}, call.strideA = call.strideB = {0, 0, 0, 0}, call.strideC = {1, 1, 1, 1};
       },
       "calls.product: a batch of more than 2^24 matmuls"},
      {[](Program &p) { p.calls[0].epilogue = Epilogue::Gelu, p.calls[0].type = p.calls[0].typeC = DType::F64; },
       "calls.product: epilogue gelu of f64 is not supported"},
      {[](Program &p) { p.calls[0].lda = int64_t(1) << 60; },
       "calls.product: the extent of operand a is more than 2^47 elements"},
      {[](Program &p) { p.calls[0].k = 0; }, "calls.product: m, n and k must be at least 1"},
      {[](Program &p) { p.calls[0].ldc = INT64_MAX, p.calls[0].m = INT64_MAX; },
       "calls.product: the extent of operand a is more than 2^47 elements"},
      {[](Program &p) { p.comms[0].queue = 9; }, "comms.pf: no queue 9"},
      {[](Program &p) { p.events[0].depth = 2; }, "events.grads: a depth of 2 does not fit its index"},
      {[](Program &p) { p.entries[0].runs[0].block = 99; }, "entries.train[0]: no block 99"},
      {[](Program &p) { p.entries[0].runs[0].version = -1; },
       "entries.train[0]: microbatch or version is not in [0, 2^31)"},
      {[](Program &p) { p.entries[0].runs.resize(9'000'000, p.entries[0].runs[1]); },
       "the entry expands to more than 2^24 instructions"},
  });
}

// Instructions: indices, operands, signatures.
TEST(Check, Instructions) {
  auto kernel = [](Program &p) -> Instruction & {
    p.kernels.push_back({"k", true, "k", {{Access::Read, 32}}, 1, 0});
    Instruction &it = at(p, "forward", 2);
    it.op = Op::Kernel;
    it.operands = {{Access::Read, 1, {SlotExpr::Mb, 0}}};
    return it;
  };
  auto group = [](Program &p, uint64_t n) {
    Instruction head;
    head.op = Op::Group, head.n = n, head.queue = 1;
    auto &list = p.blocks[p.findBlock("sendact")].instructions;
    list.insert(list.begin() + 1, head);
  };
  expectRefused({
      {[](Program &p) { at(p, "feed", 1).queue = 9; }, "blocks.feed[1]: no queue 9"},
      {[](Program &p) { at(p, "feed", 1).operands[0].buffer = 99; }, "blocks.feed[1]: no buffer 99"},
      {[](Program &p) { at(p, "feed", 1).operands[0].slot = {SlotExpr::Fixed, 2}; },
       "blocks.feed[1]: the slot of 'w x@2' does not fit its index 'mb' and depth 2"},
      {[&](Program &p) { kernel(p).kernel = 7; }, "blocks.forward[2]: no kernel 7"},
      {[&](Program &p) { kernel(p).imms = {{}}; },
       "blocks.forward[2]: kernel 'k' takes 1 operands and 0 immediates, got 1 and 1"},
      {[&](Program &p) { kernel(p).operands[0].access = Access::Write; },
       "blocks.forward[2]: operand 0 of kernel 'k' is 'r', got 'w x'"},
      {[&](Program &p) { kernel(p), p.kernels[0].operands[0].bytes = 33; },
       "blocks.forward[2]: operand 0 of kernel 'k' touches 33 bytes, 'x' has 32"},
      {[&](Program &p) { kernel(p).operands[0].access = Access::Write, p.kernels[0].operands[0] = {Access::Write, 0}; },
       "blocks.forward[2]: operand 0 of kernel 'k' touches 0 bytes, 'x' has 32"},
      {[](Program &p) { at(p, "forward", 2).call = 99; }, "blocks.forward[2]: no call 99"},
      {[](Program &p) { at(p, "forward", 2).operands.pop_back(); },
       "blocks.forward[2]: call 'product' takes 3 operands, got 2"},
      {[](Program &p) { at(p, "forward", 2).operands[2].access = Access::ReadWrite; },
       "blocks.forward[2]: operand 2 of call 'product' is 'w', got 'rw act'"},
      {[](Program &p) { p.calls[0].m = 3; },
       "blocks.forward[2]: operand 0 of call 'product' touches 48 bytes of f32, 'x' is f32[2x4]"},
      {[](Program &p) { at(p, "sendact", 1).comm = 9; }, "blocks.sendact[1]: no communicator 9"},
      {[](Program &p) { at(p, "sendact", 1).peer.clear(); }, "blocks.sendact[1]: no peer"},
      {[](Program &p) { at(p, "sendact", 1).type = DType::I32; }, "blocks.sendact[1]: 'act' is f32[2x4], not of i32"},
      {[&](Program &p) { group(p, 2); },
       "blocks.sendact[1]: instruction 3 is in a group, but is not a communication on queue 'forward'"},
      {[&](Program &p) { group(p, 65); },
       "blocks.sendact[1]: a group of 65 communications, expected 1 to 64 that all stand in its block"},
      {[](Program &p) { at(p, "feed", 0).event = 99; }, "blocks.feed[0]: no event 99"},
      {[](Program &p) { at(p, "feed", 0).eventSlot = {SlotExpr::Ver, 0}; },
       "blocks.feed[0]: the slot of event 'xdone' does not fit its index"},
      {[](Program &p) { at(p, "feed", 0).op = Op(99); }, "blocks.feed[0]: unknown opcode"},
  });
}

// A generated kernel of a GPU: its limits, and that its bundle is for that device.
TEST(Check, Launches) {
  auto launch = [](Program &p) -> Kernel & {
    p.kernels.push_back({"k", false, "k", {}, 1, 0, 0, {{64, 1, 1}, {256, 1, 1}, 1024}});
    return p.kernels.back();
  };
  expectRefused({
      {[&](Program &p) { launch(p).builtin = true; }, "kernels.k: the runtime chooses the launch of a builtin"},
      {[&](Program &p) { launch(p).launch.grid[2] = 0; }, "kernels.k: a launch of no threads"},
      {[&](Program &p) { launch(p).launch.grid[1] = 1 << 16; },
       "kernels.k: a grid of more than 2^31-1 x 65535 x 65535 blocks"},
      {[&](Program &p) { launch(p).launch.block[1] = 8; },
       "kernels.k: a block of 2048 threads, at most 1024 and 64 along z"},
      {[&](Program &p) { launch(p).launch.shared = 232449; },
       "kernels.k: 232449 bytes of shared memory, at most 232448"},
      {[&](Program &p) { launch(p).tiles = 2; }, "kernels.k: 2 tiles; a GPU's kernel is one launch"},
      {[&](Program &p) { launch(p); }, "kernel 'k': a launch on a GPU in a bundle for cpu"},
  });
  Bundle bundle = toy::pipeline();
  bundle.manifest.device = "cuda";
  launch(bundle.programs[0]);
  EXPECT_EQ(verify::verifyBundle(bundle).counterexample->message,
            "program 'stage0', buffer 'x': offset 64 is not a multiple of 256, as those of a bundle for cuda are");
  bundle.programs[0].kernels.back().launch = {};
  EXPECT_EQ(verify::verifyBundle(bundle).counterexample->message,
            "program 'stage0', kernel 'k': no launch in a bundle for cuda");
}

// The manifest's parts agree with each other.
TEST(Check, Manifest) {
  const std::vector<Case<Manifest>> cases = {
      {[](Manifest &m) { m.ranks.clear(); }, "ranks: 0 ranks, expected 1 to 2^20"},
      {[](Manifest &m) { m.peak.pop_back(); }, "roles: 2 roles with 1 peaks for 2 ranks"},
      {[](Manifest &m) { m.ranks[0].coordinate.pop_back(); }, "ranks[0]: 1 coordinates for 2 axes"},
      {[](Manifest &m) { m.ranks[0].role = 1; }, "roles: no rank has role 0"},
      {[](Manifest &m) { m.communicators[0].groups = {{0, 1}, {}}; }, "communicators.pf: a group without ranks"},
      {[](Manifest &m) { m.tensors[0].layout.local = {4}; },
       "tensors.w0: global and local shape have different numbers of dims"},
      {[](Manifest &m) { m.tensors[0].layout.parts[0].start = {0}; }, "tensors.w0: a rectangle has not 2 dims"},
      {[](Manifest &m) { m.inputs[0].layout.parts.clear(); },
       "inputs.x: its rectangles hold 0 elements, the whole has 8"},
      {[](Manifest &m) { m.inputs[0].layout.parts[0].ranks.clear(); }, "inputs.x: no rank holds it"},
      {[](Manifest &m) { m.inputs[0].layout.shape = {4, 4}; },
       "inputs.x: its rectangles hold 8 elements, the whole has 16"},
      {[](Manifest &m) {
         m.inputs[0].layout.local = {3, 4}, m.inputs[0].layout.parts[0].start = {1, 0},
         m.inputs[0].layout.parts[0].size = {1, 4};
       },
       "inputs.x: in dim 0, 1 is not a multiple of the local 3"},
      {[](Manifest &m) { m.inputs[0].layout.parts.push_back({{0, 0}, {1, 4}, {1}}); },
       "inputs.x: its rectangles hold 12 elements, the whole has 8"},
      {[](Manifest &m) {
         m.inputs[0].layout.parts[0].size = {1, 4};
         m.inputs[0].layout.parts.push_back({{0, 0}, {1, 4}, {1}});
       },
       "inputs.x: two rectangles begin at one place"},
      {[](Manifest &m) { m.inputs[0].layout.shape = {int64_t(1) << 40, 256}; }, "inputs.x: more than 2^47 elements"},
      {[](Manifest &m) { m.microbatches = 8; }, "inputs.x: its shape is not that of its layout in 8 microbatches"},
      {[](Manifest &m) { m.inputs[0].shape = {4, 4}; },
       "inputs.x: its shape is not that of its layout in 4 microbatches"},
      {[](Manifest &m) { m.inputs[0].microbatched = false; },
       "inputs.x: its shape is not that of its layout in 1 microbatches"},
      {[](Manifest &m) { m.batch = 9; }, "inputs.x: 8 rows for a batch of 9"},
      {[](Manifest &m) { m.outputs[0].ranks = {}; }, "outputs.out: no ranks"},
      {[](Manifest &m) { m.files = {{"role-0.json", 1, sha256("")}}; }, "files: role-1.json is missing"},
      {[](Manifest &m) { m.tensors[0].of = "w9"; }, "tensors.w0: no tensor called 'w9'"},
      {[](Manifest &m) { m.tensors[0].source = Source{"weights", 0, 60, DType::F32}; },
       "tensors.w0: a source of 60 bytes for 16 elements of f32"},
      {[](Manifest &m) { m.data = {{"../w", 64, sha256("")}}; }, "data: no tensor has its source in '../w'"},
      {[](Manifest &m) {
         m.tensors[0].source = Source{"w..bin", 0, 64, DType::F32};
         m.data = {{"w..bin", 64, sha256("")}, {"w..bin", 64, sha256("")}};
       },
       "data: 'w..bin' stands there twice"},
      {[](Manifest &m) { m.tensors[0].source = Source{"a/../../w", 0, 64, DType::F32}; },
       "tensors.w0: source 'a/../../w' leaves the model's folder"},
      {[](Manifest &m) { m.data = {{"w", 64, "abc"}}; },
       "data[0].sha256: 'abc' is not a SHA-256 in 64 lower-case hex digits"},
      {[](Manifest &m) { m.tensors[0].kind = TensorKind::Constant; }, "tensors.w0: a constant without a value"},
      {[](Manifest &m) {
         m.tensors[0].value = 64;
         m.files = {{"role-0.json", 1, sha256("")}, {"role-1.json", 1, sha256("")}, {"constants.bin", 127, sha256("")}};
       },
       "tensors.w0: its 64 bytes at 64 of constants.bin end outside of the file, which has 127"},
  };
  for (const Case<Manifest> &it : cases) {
    Manifest manifest = toy::pipeline().manifest;
    it.change(manifest);
    Expected<Manifest> read = parseManifest(writeManifest(manifest), "m");
    ASSERT_FALSE(read) << "accepted, but expected " << it.message;
    EXPECT_EQ(read.message(), std::string("m: ") + it.message);
  }
}

// JSON of another shape is refused where it differs.
TEST(Check, Json) {
  std::string text = writeManifest(toy::pipeline().manifest);
  const std::tuple<const char *, const char *, const char *> cases[] = {
      {"\"par_manifest\":[1,14]", "\"par_manifest\":[1]", "m: par_manifest: a version is [major, minor]"},
      {"\"par_manifest\":[1,14]", "\"par_manifest\":[1,99]",
       "m: par_manifest: version 1.99, this runtime reads 1.0 to 1.14"},
      {"\"roles\":2", "\"rolls\":2", "m: unknown key 'rolls'"},
      {"\"microbatches\":4,", "", "m: missing key 'microbatches'"},
      {"\"needs\":[]", "\"needs\":{}", "m: needs: expected a list"},
      {"\"seed\":0", "\"seed\":\"0\"", "m: seed: expected an integer"},
      {"\"microbatched\":true", "\"microbatched\":1", "m: inputs[0].microbatched: expected true or false"},
      {"[\"pp\",2]", "[\"pp\"]", "m: mesh[0]: an axis is [name, size]"},
      {"[\"pp\",2]", "[\"p p\",2]", "m: mesh[0][0]: a name has no blank, '@', quote or control character: 'p p'"},
      {"[\"pp\",2]", "[\"\",2]", "m: mesh[0][0]: a name has 1 to 256 characters, this one 0"},
      {"\"layout\":0", "\"layout\":9", "m: tensors[0].layout: no layout 9, there are 4"},
      {"[\"normal\",0,0.5]", "[\"normal\",0]", "m: tensors[0]: init is [rule, a, b]"},
      {"[\"normal\",0,0.5]", "[\"normal\",0,\"x\"]", "m: tensors[0].init[2]: expected a number"},
      {"[\"normal\",0,0.5]", "[7,0,0.5]", "m: tensors[0].init[0]: expected a string"},
      {"\"hypers\":[]", "\"hypers\":[[\"lr\"]]", "m: hypers[0]: a hyperparameter is [name, default]"},
      {"\"hypers\":[]",
       "\"hypers\":[],\"lr\":{\"decay\":\"one_cycle\",\"peak\":1,\"floor\":0,\"warmup\":0,\"steps\":9,"
       "\"linear\":true,\"phases\":[[1,2]]}",
       "m: lr.phases[0]: a phase is [end, from, to]"},
      {"\"hypers\":[]",
       "\"hypers\":[],\"lr\":{\"decay\":\"one_cycle\",\"peak\":1,\"floor\":0,\"warmup\":0,\"steps\":9,"
       "\"linear\":true,\"phases\":[]}",
       "m: lr.phases: a cycle has phases"},
      {"{\"state\":64,", "[{\"state\":64,", "m: not JSON at byte "},
  };
  for (const auto &[from, to, message] : cases) {
    std::string changed = text;
    size_t place = changed.find(from);
    ASSERT_NE(place, std::string::npos) << from;
    changed.replace(place, std::string(from).size(), to);
    Expected<Manifest> read = parseManifest(changed, "m");
    ASSERT_FALSE(read) << "accepted " << to;
    EXPECT_EQ(read.message().substr(0, std::string(message).size()), message);
  }
  EXPECT_EQ(parseManifest("[]", "m").message(), "m: missing key 'par_manifest'");
  EXPECT_EQ(
      parseManifest("{\"par_manifest\":[1,0],\"mesh\":3,\"bundle\":\"\",\"plan\":\"\",\"model\":7}", "m").message(),
      "m: model: expected an object");
}
