// The device `sim`: ordered programs give the same bits in every interleaving and on every device; races are reported
// with both instructions.
#include "Simulate.h"
#include "ToyBundles.h"
#include "par/verify/Verify.h"

#include <gtest/gtest.h>

using namespace par;
using format::Op;

namespace {

constexpr sim::Options twenty{1, 20};

void expectSays(const std::string &text, const std::string &part) { EXPECT_NE(text.find(part), text.npos) << text; }

TEST(Sim, AgreesWithThreadsBitForBit) {
  for (const format::Bundle &bundle : {toy::pipeline(1), toy::pipeline(2), toy::pipeline(3), toy::allReduce(3),
                                       toy::groups(), toy::halves(3), toy::offloaded()}) {
    toy::Ran cpu = toy::runBundle(bundle, "toy.par"), sim = toy::simulate(bundle, "toy.par", twenty);
    EXPECT_EQ(cpu.trouble, "");
    EXPECT_EQ(sim.trouble, "");
    EXPECT_EQ(cpu.digest, sim.digest);
  }
}

TEST(Sim, SameSeedSameOrder) {
  auto order = [](uint64_t seed) {
    std::vector<int64_t> ends;
    for (const core::Stamp &stamp : toy::simulate(toy::pipeline(2), "toy.par", {seed, 5}).stamps)
      ends.push_back(stamp.end);
    return ends;
  };
  EXPECT_EQ(order(3), order(3));
  EXPECT_NE(order(3), order(4));
}

/// Removes the first instruction of a block that is of this kind.
void drop(format::Program &program, const char *block, Op op) {
  auto &list = program.blocks[program.findBlock(block)].instructions;
  for (size_t n = 0; n < list.size(); ++n)
    if (list[n].op == op) {
      list.erase(list.begin() + static_cast<ptrdiff_t>(n));
      return;
    }
  FAIL() << "nothing to drop";
}

// A send that does not wait for the matmul whose result it sends.
TEST(Sim, ReportsARaceWithBothInstructions) {
  format::Bundle bundle = toy::pipeline(1);
  drop(bundle.programs[0], "sendact", Op::Wait);
  std::string trouble = toy::simulate(bundle, "toy.par", twenty).trouble;
  expectSays(trouble, "toy.par: error: race on rank 0 in entry train: nothing orders two accesses to bytes [");
  expectSays(trouble, ") of its dev arena");
  expectSays(trouble, "note: stage0/forward:2  writes 'w act' on queue compute, microbatch ");
  expectSays(trouble, "note: stage0/sendact:0  reads 'r act' on queue forward, microbatch ");
  expectSays(trouble, "note: interleaving ");
  verify::Verdict verdict = verify::verifyBundle(bundle);
  ASSERT_FALSE(verdict);
  EXPECT_EQ(verdict.counterexample->property, verify::Property::Race);
}

// Ranks order nothing for each other: the return of the gradient after the send of the activation is no event here.
TEST(Sim, OtherRanksOrderNothing) {
  format::Bundle bundle = toy::pipeline(1);
  drop(bundle.programs[1], "sendgrad", Op::Signal);
  expectSays(toy::simulate(bundle, "toy.par", twenty).trouble, "error: race on rank 1 in entry train");
}

// Communications of one group move together: none may rely on another.
TEST(Sim, OrdersNothingWithinAGroup) {
  format::Bundle bundle = toy::groups();
  auto &list = bundle.programs[0].blocks[0].instructions;
  for (format::Instruction &it : list)
    if (it.op == Op::Recv)
      it.operands[0].buffer = bundle.programs[0].findBuffer("a");
  std::string trouble = toy::simulate(bundle, "toy.par", twenty).trouble;
  expectSays(trouble, "race on rank 0 in entry train");
  expectSays(trouble, "reads 'r a' on queue data");
  expectSays(trouble, "writes 'w a' on queue data");
}

TEST(Sim, ReportsRanksThatWaitForOneAnother) {
  format::Bundle bundle = toy::pipeline(1);
  auto &runs = bundle.programs[1].entries[0].runs;
  runs.erase(runs.begin()); // receives one activation less than is sent
  std::string trouble = toy::simulate(bundle, "toy.par", twenty).trouble;
  expectSays(trouble, "toy.par: error: ranks wait for each other in entry train");
  expectSays(trouble, "note: rank 0 waits in send stage0/sendact:1");
}

TEST(Sim, ReportsCommunicationsThatDiffer) {
  format::Bundle bundle = toy::pipeline(1);
  for (format::Instruction &it : bundle.programs[1].blocks[bundle.programs[1].findBlock("recvact")].instructions)
    it.tag += it.op == Op::Recv ? 5 : 0;
  expectSays(toy::simulate(bundle, "toy.par", twenty).trouble,
             "communicator \"pf\": stage0/sendact:1 of rank 0 is send of 8 f32 with tag 1, "
             "stage1/recvact:1 of rank 1 is recv of 8 f32 with tag 6");
}

// A kernel that touches more than its row of the table says: no clock sees it, but the results do.
TEST(Sim, ReportsResultsThatDependOnTheOrder) {
  toy::ProgramBuilder b("all", {"compute", "host"});
  b.buffer("total", format::BufferKind::State, {8}, format::Index::None, 1, "total");
  uint32_t x = b.buffer("x", format::BufferKind::Temp, {8});
  b.buffer("max", format::BufferKind::Temp, {1});
  format::Buffer tail = b.program.buffers[x];
  tail.name = "tail", tail.shape = {4}, tail.at = {}, tail.of = x, tail.offset = 16;
  b.program.buffers.push_back(tail);
  b.event("filled"), b.event("done");
  b.block("step");
  b.fill("compute", 8, 1.0, "x");
  b.signal("compute", "filled");
  b.fill("compute", 4, 2.0, "tail");
  b.wait("host", "filled");
  b.kernel("host", "row_max", {"r x", "w max"}).imms = {{1}, {8}};
  b.program.kernels[0].operands[0].bytes = 16;
  b.program.kernels[0].imms = 2;
  b.signal("host", "done");
  b.wait("compute", "done");
  b.copy("compute", 1, "max", "total");
  b.run("train", "step");
  format::Bundle bundle = toy::allReduce(1);
  bundle.programs = {b.program};
  std::string trouble = toy::simulate(bundle, "toy.par", twenty).trouble;
  expectSays(trouble, "toy.par: error: state 'total' of rank 0 depends on the order in which the queues of entry "
                      "train move\n  note: interleaving ");
  EXPECT_FALSE(verify::verifyBundle(bundle)); // V1 knows the memory that builtins access
}

} // namespace
