// A copy past the caches is a copy, wherever it begins and ends.
#include "comm/engine/StreamCopy.h"

#include "gtest/gtest.h"

#include <numeric>
#include <vector>

TEST(StreamCopies, AreCopies) {
  std::vector<unsigned char> from(1024);
  std::iota(from.begin(), from.end(), 0);
  for (size_t bytes : {0, 1, 63, 64, 65, 127, 128, 500})
    for (size_t at : {0, 1, 4, 16, 63, 64})
      for (size_t of : {0, 3, 64}) {
        std::vector<unsigned char> to(1024, 0xee), wanted = to;
        std::copy_n(from.begin() + of, bytes, wanted.begin() + at);
        par::comm::streamCopy(to.data() + at, from.data() + of, bytes);
        EXPECT_EQ(to, wanted) << bytes << " bytes at " << at << " of " << of;
      }
}
