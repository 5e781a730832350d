// A call that oneDNN refuses is an error, not an unwritten result.
#include "par/kernels/Sgemm.h"

#include <gtest/gtest.h>
#include <stdexcept>

TEST(Sgemm, aRefusalIsThrown) {
  float a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1}, c[4] = {};
  par::kernels::sgemm('N', 'N', 2, 2, 3, 2, {a, 3}, {b, 2}, 0, c, 2);
  EXPECT_EQ(c[0], 8);
  EXPECT_EQ(c[3], 22);
  try {
    par::kernels::sgemm('N', 'N', 2, 2, 3, 1, {a, 2}, {b, 2}, 0, c, 2); // a row is 3 long
    FAIL();
  } catch (const std::runtime_error &error) {
    EXPECT_STREQ(error.what(), "oneDNN refused a matmul of 2 x 2 x 3 (status 2)");
  }
}
