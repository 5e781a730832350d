#include "par/Report/Search.h"

#include <gtest/gtest.h>

using namespace par;

// The fewest ranks of a large model, whose plans for fewer are not compiled.
TEST(SearchText, FewestRanks) {
  SearchResult result;
  result.fewest = FewestRanks{32, {}, 16};
  result.fewest->plan.candidate.data = 32;
  std::string text;
  llvm::raw_string_ostream os(text);
  printFewest(result, os);
  EXPECT_NE(os.str().find("fewest  32 ranks: dp 32"), std::string::npos) << text;
  EXPECT_NE(os.str().find("; 16 ranks may do, not compiled: --fit with as many says\n"), std::string::npos) << text;
}

// Why a key has its value, also where an estimate that was not compiled is better than the plan that was.
TEST(SearchText, Reasons) {
  SearchFacts facts;
  facts.reasons = {{"mesh", "dp 8", "dp 4 x tp 2", 4.06},
                   {"batch.microbatches", "1", "4", 5.1, "dp 4 x tp 2, zero 0"},
                   {"zero.level", "1", "0", -0.4, "", /*compiled=*/false},
                   {"offload", "[states]", "", 0}};
  std::string text;
  llvm::raw_string_ostream os(text);
  printReasons(facts, os);
  EXPECT_EQ(os.str(), "  mesh = dp 8; second dp 4 x tp 2, 4.1 % slower\n"
                      "  batch.microbatches = 1; second 4 (with dp 4 x tp 2, zero 0), 5.1 % slower\n"
                      "  zero.level = 1; second 0, estimated 0.4 % faster\n"
                      "  offload = [states]; no other value is possible or fits\n");
}
