// V1 and V5 of all programs at once.
#include "Broken.h"
#include "ToyBundles.h"

#include <gtest/gtest.h>

using namespace par;
using namespace par::format;
using namespace par::verify;

namespace {
/// The message, without the notes.
template <typename Change>
std::string says(const Bundle &bundle, Change change) {
  std::string text = broken(bundle, change);
  return text.substr(0, text.find(" | "));
}

Tensor tensor(const char *name, TensorKind kind, const char *of) {
  Layout whole{{4, 4}, {4, 4}, {{{0, 0}, {4, 4}, {0}}}};
  return {name, kind, of, DType::F32, {4, 4}, whole, {InitRule::Normal, 0, 1}, std::nullopt};
}

/// One rank, two microbatches: y = x w, g += x^T y, y is given; then w and v are updated by g, each with its own m.
Bundle twoParameters() {
  toy::ProgramBuilder b("all", {"compute"});
  for (const char *name : {"w", "v", "w.m", "v.m", "v.v"})
    b.buffer(name, BufferKind::State, {4, 4}, Index::None, 1, name);
  b.buffer("x", BufferKind::Input, {2, 4}, Index::Mb, 2);
  b.buffer("y", BufferKind::Temp, {2, 4});
  b.buffer("g", BufferKind::Temp, {4, 4});
  b.buffer("one", BufferKind::Temp, {1});
  b.buffer("apart", BufferKind::Temp, {4, 4});
  b.comm("self", "compute");
  b.product("product", 2, 4, 4, false, false, 1, 0);
  b.product("gradient.first", 4, 4, 2, true, false, 1, 0);
  b.product("gradient", 4, 4, 2, true, false, 1, 1);
  for (const char *suffix : {".first", ""}) {
    b.block(std::string("step") + suffix);
    b.feed("compute", "x", "x");
    b.call("compute", "product", {"x", "w", "y"});
    b.call("compute", std::string("gradient") + suffix, {"x", "y", "g"});
    b.fetch("compute", "y", "y");
  }
  b.block("update");
  b.fill("compute", 1, 1.0, "one");
  b.kernel("compute", "moved", {"acc w.m", "r g", "r one"});
  b.kernel("compute", "moved", {"acc v.m", "r g", "r one"});
  b.kernel("compute", "squared", {"acc v.v", "r g", "r one"});
  b.kernel("compute", "opt", {"acc w", "r w.m"});
  b.kernel("compute", "opt", {"acc v", "r v.m"});
  b.run("train", "step.first", 0), b.run("train", "step", 1), b.run("train", "update");
  b.run("eval", "step.first", 0);
  b.program.entries[1].runs.clear();
  Bundle bundle = toy::alone(b.program);
  Manifest &m = bundle.manifest;
  m.communicators = {{"self", {{0}}}};
  m.tensors = {tensor("w", TensorKind::Parameter, ""), tensor("v", TensorKind::Parameter, ""),
               tensor("w.m", TensorKind::State, "w"), tensor("v.m", TensorKind::State, "v"),
               tensor("v.v", TensorKind::State, "v")};
  m.microbatches = 2, m.batch = 4;
  m.inputs = {{"x", DType::F32, {4, 4}, true, {{2, 4}, {2, 4}, {{{0, 0}, {2, 4}, {0}}}}}};
  m.outputs = {{"y", DType::F32, {4, 4}, false, {0}, true, {{2, 4}, {2, 4}, {{{0, 0}, {2, 4}, {0}}}}}};
  return bundle;
}

/// Each rank adds the sum of all rows to its part of `total`.
Bundle sumOfRows() {
  Bundle bundle = toy::allReduce(2);
  Tensor &total = bundle.manifest.tensors[0];
  total.stored = total.layout.shape = {16};
  total.layout.parts = {{{0}, {8}, {0}}, {{8}, {8}, {1}}};
  return bundle;
}

void erase(Program &program, const char *block, size_t n) {
  std::vector<Instruction> &list = program.blocks[program.findBlock(block)].instructions;
  list.erase(list.begin() + int64_t(n));
}

void again(Program &program, const char *block, size_t n) {
  std::vector<Instruction> &list = program.blocks[program.findBlock(block)].instructions;
  list.insert(list.begin() + int64_t(n), Instruction(list[n]));
}

/// Two ranks of two programs that give the same output in two entries.
Bundle bothGive() {
  Bundle bundle;
  for (const char *name : {"one", "two"}) {
    toy::ProgramBuilder b(name, {"compute"});
    b.buffer("y", BufferKind::Temp, {1});
    b.block("give");
    b.fill("compute", 1, 1.0, "y");
    b.fetch("compute", "y", "y");
    b.run("train", "give"), b.run("eval", "give");
    if (bundle.programs.empty())
      bundle = toy::alone(b.program);
    else
      bundle.programs.push_back(b.program);
  }
  Manifest &m = bundle.manifest;
  m.roles = 2, m.mesh = {{"pp", 2}}, m.ranks = {{0, {0}}, {1, {1}}};
  m.peak.push_back(m.peak[0]);
  m.outputs = {{"y", DType::F32, {1}, true, {0, 1}}};
  return bundle;
}

constexpr auto asItIs = [](Bundle &) {};
} // namespace

// V5: ranks that hold the same parameter end with the same values of it: not where its gradient is not summed.
TEST(Joint, Replicas) {
  EXPECT_EQ(broken(toy::pipeline(2), asItIs), "");
  EXPECT_EQ(says(toy::pipeline(2), [](Bundle &b) { erase(b.programs[0], "update", 3); }),
            "V5 replicas: ranks 0 and 1 end tensor 'w0' of entry train with different values");
}

// V5: a sum that is made again adds the same value from each rank.
TEST(Joint, SummedTwice) {
  EXPECT_EQ(says(toy::pipeline(2),
                 [](Bundle &b) {
                   again(b.programs[0], "update", 3);
                   at(b.programs[0], "update", 4).tag = 9;
                 }),
            "V5 twice: ranks 0 and 1 add the same value to a sum over communicator 'dp' of entry train");
}

// V5: a sum over microbatches is not reduced by a maximum over ranks; nor is an update of a tensor, or a number.
TEST(Joint, OtherReduction) {
  EXPECT_EQ(says(toy::pipeline(2), [](Bundle &b) { at(b.programs[0], "update", 3).reduction = Reduction::Max; }),
            "V5 reduction: 'g0' is reduced by max, but it is a sum over microbatches, of which ranks have partial "
            "sums");
  EXPECT_EQ(says(toy::allReduce(2),
                 [](Bundle &b) {
                   for (Block &block : b.programs[0].blocks)
                     for (Instruction &it : block.instructions)
                       it.reduction = it.op == Op::Coll ? Reduction::Min : it.reduction;
                 }),
            "V5 reduction: 'total' is updated by what ranks have reduced by min, not by a sum");
  EXPECT_EQ(says(toy::allReduce(2),
                 [](Bundle &b) {
                   std::vector<Instruction> &list = b.programs[0].blocks[0].instructions;
                   Instruction product = list[10];
                   product.operands[1].buffer = b.programs[0].findBuffer("x");
                   product.operands[2].buffer = b.programs[0].findBuffer("y");
                   list[7].reduction = Reduction::Max;
                   list.insert(list.begin() + 5, product);
                 }),
            "V5 reduction: 'y' is reduced by max, but it is a matmul, of which ranks have partial sums");
}

// V5: values made from one rank's part of a sum are summed over those ranks, too.
TEST(Joint, PartialSums) {
  EXPECT_EQ(says(sumOfRows(), asItIs), "");
  EXPECT_EQ(says(sumOfRows(),
                 [](Bundle &b) {
                   std::vector<Instruction> &list = b.programs[0].blocks[0].instructions;
                   std::rotate(list.begin() + 5, list.begin() + 10, list.begin() + 11);
                 }),
            "V5 unreduced: 'y' is read before it is summed over 'dp' in entry train, and what is made of that part is "
            "not summed");
}

// V5: ranks past the end of a padded tensor hold no equal values; values of constants are not theirs.
TEST(Joint, NothingAlike) {
  EXPECT_EQ(broken(sumOfRows(),
                   [](Bundle &b) {
                     Layout &layout = b.manifest.tensors[0].layout;
                     layout.shape = b.manifest.tensors[0].stored = {8};
                     layout.parts = {{{0}, {8}, {0}}, {{8}, {0}, {1}}};
                   }),
            "");
  EXPECT_EQ(broken(toy::allReduce(2),
                   [](Bundle &b) {
                     std::vector<Instruction> &list = b.programs[0].blocks[0].instructions;
                     list[4].op = Op::Fill, list[4].value = 2, list[4].operands.erase(list[4].operands.begin());
                   }),
            "");
}

// Bundles from before 1.12 are proved program by program, and the proof says so.
TEST(Joint, EarlierFormats) {
  Bundle bundle = toy::pipeline(2);
  erase(bundle.programs[0], "update", 3);
  EXPECT_EQ(says(bundle, asItIs), "V5 replicas: ranks 0 and 1 end tensor 'w0' of entry train with different values");
  bundle.manifest.minor = 11;
  Verdict verdict = verifyBundle(bundle);
  EXPECT_FALSE(verdict.proof.together);
  std::string line = verify::format(verdict, "b");
  EXPECT_NE(line.find("; programs not compared together (a bundle from before format 1.12)\n"), std::string::npos)
      << line;
}

// V5: a sum without the last microbatch, where that was the only one that added; a summand twice.
TEST(Joint, Summands) {
  EXPECT_EQ(broken(twoParameters(), asItIs), "");
  EXPECT_EQ(says(twoParameters(), [](Bundle &b) { erase(b.programs[0], "step", 2); }),
            "V5 lacks: 'g' is read for a whole batch, but microbatch 1 has not added to it in entry train");
  EXPECT_EQ(says(twoParameters(), [](Bundle &b) { again(b.programs[0], "step", 2); }),
            "V5 twice: the same is added to 'g' two times in entry train");
}

// V5: every computed value is read.
TEST(Joint, Unread) {
  EXPECT_EQ(says(twoParameters(), [](Bundle &b) { again(b.programs[0], "step", 1); }),
            "V5 unread: nothing of what an instruction makes is ever read");
}

// V5: state is written wholly, once a batch, and moves.
TEST(Joint, Written) {
  EXPECT_EQ(says(twoParameters(), [](Bundle &b) { erase(b.programs[0], "update", 5); }),
            "V5 written: entry train writes 0 of 64 bytes of tensor 'v' on rank 0");
  EXPECT_EQ(says(twoParameters(),
                 [](Bundle &b) {
                   again(b.programs[0], "update", 4);
                   at(b.programs[0], "update", 4).operands[1].buffer = b.programs[0].findBuffer("g");
                 }),
            "V5 written: entry train computes tensor 'w' 2 times on rank 0, for 1 batches");
  EXPECT_EQ(says(twoParameters(),
                 [](Bundle &b) {
                   Instruction out;
                   out.op = Op::Copy, out.n = 16;
                   out.operands = {{Access::Read, b.programs[0].findBuffer("v"), {}},
                                   {Access::Write, b.programs[0].findBuffer("apart"), {}}};
                   Instruction back = out;
                   std::swap(back.operands[0].buffer, back.operands[1].buffer);
                   std::vector<Instruction> &list =
                       b.programs[0].blocks[b.programs[0].findBlock("update")].instructions;
                   list[5] = out;
                   list.push_back(back);
                 }),
            "V5 written: entry train leaves tensor 'v' on rank 0 as it was, other parameters are updated");
}

// V5: a buffer without slots holds a later microbatch's value.
TEST(Joint, LaterMicrobatch) {
  Bundle bundle = twoParameters();
  Program &p = bundle.programs[0];
  Block use0{"use.first", {at(p, "step.first", 2)}}, use{"use", {at(p, "step", 2)}};
  erase(p, "step", 2), erase(p, "step.first", 2);
  p.blocks.push_back(use0), p.blocks.push_back(use);
  uint32_t first = uint32_t(p.blocks.size() - 2);
  auto &runs = p.entries[0].runs;
  Bundle sound = bundle;
  runs = {runs[0], runs[1], {first, 0, 0}, {first + 1, 1, 0}, runs[2]};
  EXPECT_EQ(says(bundle, asItIs), "V5 microbatch: 'y' is read for microbatch 0, but was made for microbatch 1");
  sound.programs[0].entries[0].runs = {runs[0], runs[2], runs[1], runs[3], runs[4]};
  EXPECT_EQ(broken(sound, asItIs), "");
}

// V5: of values that a block makes for each microbatch none is left out.
TEST(Joint, UnreadMicrobatch) {
  Bundle bundle = twoParameters();
  Program &p = bundle.programs[0];
  p.buffers[p.findBuffer("y")].index = Index::Mb;
  p.buffers[p.findBuffer("y")].at.push_back(p.arena.state + p.arena.pool);
  bundle.manifest.peak[0].pool = p.arena.pool += 64;
  for (Block &block : p.blocks)
    for (Instruction &it : block.instructions)
      for (Operand &operand : it.operands)
        if (operand.buffer == p.findBuffer("y"))
          operand.slot.base = SlotExpr::Mb;
  p.blocks.push_back({"make", {at(p, "step", 0), at(p, "step", 1)}});
  p.blocks.push_back({"give", {at(p, "step", 3)}});
  uint32_t make = uint32_t(p.blocks.size() - 2);
  p.entries[1].runs = {{make, 0, 0}, {make, 1, 0}, {make + 1, 0, 0}, {make + 1, 1, 0}};
  EXPECT_EQ(broken(bundle, asItIs), "");
  p.entries[1].runs.pop_back();
  EXPECT_EQ(says(bundle, asItIs),
            "V5 unread: what microbatch 1 makes is never read in entry eval, that of microbatch 0 is");
}

// V1: a communication, copy or fill takes its whole operand.
TEST(Joint, WholeOperands) {
  EXPECT_EQ(says(toy::allReduce(2),
                 [](Bundle &b) {
                   for (Instruction &it : b.programs[0].blocks[0].instructions)
                     it.n = it.op == Op::Coll ? 4 : it.n;
                 }),
            "V1 part: it takes 4 of the 8 elements of 'y'; a part of a buffer has an alias");
}

// V1: outputs are given once, by all.
TEST(Joint, Fetched) {
  EXPECT_EQ(says(twoParameters(), [](Bundle &b) { again(b.programs[0], "step", 3); }),
            "V1 output 'y' is fetched twice for microbatch 1 in entry train");
  EXPECT_EQ(broken(bothGive(), asItIs), "");
  EXPECT_EQ(says(bothGive(), [](Bundle &b) { b.programs[1].entries[1].runs.clear(); }),
            "V1 rank 1 does not give output 'y' in entry eval, others do");
}

// V1: a buffer with the name of a tensor holds that one.
TEST(Joint, StateNames) {
  EXPECT_EQ(says(twoParameters(),
                 [](Bundle &b) {
                   Program &p = b.programs[0];
                   for (const char *suffix : {"", ".m"})
                     std::swap(p.buffers[p.findBuffer(std::string("w") + suffix)].tensor,
                               p.buffers[p.findBuffer(std::string("v") + suffix)].tensor);
                 }),
            "V1 buffer 'w' of all has the name of a tensor, but holds 'v'");
}

// V1: an update takes its own parameter's state, each kind at its place.
TEST(Joint, OwnState) {
  EXPECT_EQ(
      says(twoParameters(),
           [](Bundle &b) { at(b.programs[0], "update", 5).operands[1].buffer = b.programs[0].findBuffer("w.m"); }),
      "V1 tensor 'w.m' of parameter 'w' takes part in an update of 'v' in all/update:5");
  EXPECT_EQ(
      says(twoParameters(),
           [](Bundle &b) { at(b.programs[0], "update", 5).operands[1].buffer = b.programs[0].findBuffer("v.v"); }),
      "V1 tensor 'v.v' is operand 1 of builtin opt in all/update:5, which has '.m' of other parameters there");
}

// V1: groups, rectangles and rows are in the order of coordinates.
TEST(Joint, Coordinates) {
  EXPECT_EQ(says(toy::pipeline(2), [](Bundle &b) { b.manifest.communicators[2].groups = {{1, 0}, {2, 3}}; }),
            "V1 communicator 'dp' has collectives, but lists rank 1's group in another order than that of ranks");
  EXPECT_EQ(says(toy::pipeline(2), [](Bundle &b) { b.manifest.communicators[0].groups = {{0, 3}, {1, 2}}; }),
            "V1 communicator 'pf' has rank 2 beside rank 1, but rank 3 beside rank 0: not in one order");
  EXPECT_EQ(broken(toy::stack({}), asItIs), "");
  EXPECT_EQ(says(toy::stack({}),
                 [](Bundle &b) {
                   std::swap(b.manifest.tensors[0].layout.parts[0].ranks, b.manifest.tensors[0].layout.parts[1].ranks);
                 }),
            "V1 tensor 'w0' has its rectangles in another order than coordinates of axis 'tp' in dim 0");
  EXPECT_EQ(says(toy::pipeline(2),
                 [](Bundle &b) {
                   Input whole = b.manifest.inputs[0];
                   whole.name = "z";
                   whole.layout.local = whole.layout.shape;
                   whole.layout.parts = {{{0, 0}, whole.layout.shape, {0, 1}}};
                   b.manifest.inputs.push_back(whole);
                 }),
            "V1 rank 0 has other rows of input 'z' than of input 'x'");
}

/// The bundle with ranks 0 and 1 numbered the other way round. Each keeps its place in all lists.
static Bundle turned(Bundle bundle) {
  Manifest &manifest = bundle.manifest;
  auto turn = [](std::vector<uint32_t> &ranks) {
    for (uint32_t &rank : ranks)
      rank = rank < 2 ? 1 - rank : rank;
  };
  std::swap(manifest.ranks[0], manifest.ranks[1]);
  for (Communicator &comm : manifest.communicators) {
    RankGroups::Lists groups = comm.groups.lists();
    std::for_each(groups.begin(), groups.end(), turn);
    comm.groups = groups;
  }
  auto turnParts = [&](Layout &layout) {
    for (size_t part = 0; part < layout.parts.size(); ++part)
      turn(layout.parts[part].ranks);
  };
  for (Tensor &tensor : manifest.tensors)
    turnParts(tensor.layout);
  for (Input &input : manifest.inputs)
    turnParts(input.layout);
  for (Output &output : manifest.outputs)
    turn(output.ranks);
  return bundle;
}

// V1: a plan may number ranks by another order of its axes; then all groups are in the order of coordinates.
TEST(Joint, TurnedCoordinates) {
  EXPECT_EQ(broken(turned(toy::pipeline(2)), asItIs), "");
  EXPECT_EQ(says(turned(toy::pipeline(2)), [](Bundle &b) { b.manifest.communicators[2].groups = {{0, 1}, {2, 3}}; }),
            "V1 communicator 'pf' has rank 2 beside rank 1, but rank 3 beside rank 0: not in one order");
}

// V1: an immediate of a kernel is a coordinate of one axis, or a number.
TEST(Joint, Immediates) {
  Bundle bundle = toy::stack({});
  Program &p = bundle.programs[0];
  std::vector<Instruction *> users;
  for (Block &block : p.blocks)
    for (Instruction &it : block.instructions)
      if (it.op == Op::Kernel && it.kernel == 0)
        users.push_back(&it);
  ASSERT_GE(users.size(), 2u);
  p.kernels[0].imms = 1;
  for (Instruction *it : users)
    it->imms = {{0, "tp", 1}};
  users.back()->imms = {{0, "", 1}};
  EXPECT_EQ(says(bundle, asItIs).substr(0, 100),
            ("V1 kernel '" + p.kernels[0].name +
             "' takes the coordinate on axis 'tp' as immediate 0 in one instruction, and a number in ")
                .substr(0, 100));
}
