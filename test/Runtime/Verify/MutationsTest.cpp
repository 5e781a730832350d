// par-verify rejects every effective mutation.
#include "Mutations.h"
#include "Symbolic.h"
#include "ToyBundles.h"
#include "par/verify/Verify.h"

#include <gtest/gtest.h>

#include <ctime>
#include <filesystem>
#include <unistd.h>

using namespace par;
using namespace par::toy;

// No mutation of one rank's program that changes its results is accepted.
TEST(Mutations, NoneEscapes) {
  for (const format::Bundle &bundle :
       {stack({}), stack({3, 1, 2, 4, 2, true}), pipeline(2), groups(), allReduce(3), halves()}) {
    verify::Verdict verdict = verify::verifyBundle(bundle);
    ASSERT_TRUE(verdict) << verify::format(verdict, "toy");
    Tally tally = mutateMany(bundle, 130, 7);
    EXPECT_EQ(tally.total, 130u);
    EXPECT_TRUE(tally.escaped.empty()) << toy::format(tally);
    uint64_t rejected = 0;
    for (const auto &[kind, by] : tally.rejected)
      for (const auto &[property, n] : by)
        rejected += n;
    EXPECT_GE(rejected, 90u) << toy::format(tally);
  }
}

// The same from files, with hashes recomputed.
TEST(Mutations, FromFiles) {
  std::string folder = std::filesystem::temp_directory_path() / ("par-mutations-" + std::to_string(getpid()));
  Tally tally = mutateMany(pipeline(2), 26, 3, folder);
  EXPECT_EQ(tally.total, 26u);
  EXPECT_TRUE(tally.escaped.empty()) << toy::format(tally);
  std::filesystem::remove_all(folder);
}

// The symbolic run tells programs apart: it is deterministic, and sees a changed operand and a changed order.
TEST(Mutations, OracleSeesEffects) {
  format::Bundle bundle = stack({});
  std::vector<uint64_t> original = runSymbolically(bundle);
  ASSERT_EQ(original.size(), 8u);
  EXPECT_EQ(runSymbolically(bundle), original);
  EXPECT_NE(original[0], original[2]) << "data-parallel copies give results of rows of their own";
  EXPECT_NE(original[0], original[4]);
  format::Bundle other = bundle;
  auto &list = other.programs[0].blocks[other.programs[0].findBlock("forward")].instructions;
  std::swap(list[3], list[4]); // all_reduce after its reader
  EXPECT_NE(runSymbolically(other), original);
  other = bundle;
  auto &runs = other.programs[0].entries[0].runs;
  runs.pop_back(); // no update
  EXPECT_NE(runSymbolically(other), original);
  other = bundle;
  for (format::Run &run : other.programs[1].entries[0].runs)
    if (other.programs[1].blocks[run.block].name == "recvact")
      run.block = other.programs[1].findBlock("update"); // the sent value is never received
  EXPECT_NE(runSymbolically(other), original);
}

// 64 ranks of 8 roles with 64 microbatches of 12 layers are proved within a second of the processor's.
TEST(Mutations, Scale) {
  format::Bundle bundle = stack({8, 4, 2, 64, 12});
  clock_t begin = clock(); // processor time: other programs may want the cores
  verify::Verdict verdict = verify::verifyBundle(bundle);
  double seconds = double(clock() - begin) / CLOCKS_PER_SEC;
  ASSERT_TRUE(verdict) << verify::format(verdict, "toy");
  EXPECT_GT(verdict.proof.communications, 64u * 64 * 24);
  RecordProperty("seconds", std::to_string(seconds));
  std::printf("proved %llu communications in %.3f s\n", static_cast<unsigned long long>(verdict.proof.communications),
              seconds);
  EXPECT_LT(seconds, 1.0);
}
