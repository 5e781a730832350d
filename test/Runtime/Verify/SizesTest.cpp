// V1: sizes of builtins that their operands' shapes do not tell.
#include "par/kernels/AttentionSizes.h"
#include "par/kernels/Builtins.h"
#include "par/verify/Verify.h"
#include "verify/Model.h"

#include <gtest/gtest.h>

using namespace par;
using namespace par::format;

// V1: sizes of attention that its operands' shapes do not tell.
TEST(Verify, Attention) {
  auto attention = [](std::vector<int64_t> sizes, std::vector<std::pair<size_t, int64_t>> changes = {}) {
    Instruction it;
    Program p;
    p.kernels.push_back({"attend", true, "attention_bf16", {}, 1, 0, 34});
    for (std::string_view name : {"q", "k", "v", "out", "lse", "mask"})
      p.buffers.push_back({.name = std::string(name)});
    sizes.insert(sizes.begin() + 9, 0);
    auto at = [&](size_t i) { return uint64_t(sizes[i]); };
    uint64_t b = at(0), h = at(1), g = at(2), sq = at(3), sk = at(4), d = at(5), e = at(6);
    uint64_t counts[] = {b * h * sq * d, b * g * sk * d, b * g * sk * e, b * h * sq * e, b * h * sq, 1};
    for (uint32_t i = 0; i < (at(8) ? 6u : 5u); ++i) {
      DType type = i < 4 ? DType::BF16 : DType::F32;
      uint64_t count = i == 5 ? at(10) * at(11) * at(12) * at(13) : counts[i];
      p.buffers[i].type = type;
      Access access = i == 3 || i == 4 ? Access::Write : Access::Read;
      p.kernels[0].operands.push_back({access, count * sizeOf(type)});
      it.operands.push_back({access, i});
    }
    // Contiguous rows.
    const uint64_t heads[] = {h, g, g, h}, rows[] = {sq, sk, sk, sq}, widths[] = {d, d, e, e};
    for (size_t i = 0; i < 4; ++i)
      for (uint64_t place : {counts[i], uint64_t(0), heads[i] * rows[i] * widths[i], rows[i] * widths[i], widths[i]})
        sizes.push_back(int64_t(place));
    for (auto [index, value] : changes)
      sizes[index] = value;
    for (int64_t size : sizes)
      it.imms.push_back({size});
    return par::verify::checkBuiltin(p, it).value_or("");
  };
  //         b  h  g  sq sk d  e causal mask dims
  EXPECT_EQ(attention({2, 4, 2, 3, 5, 8, 8, 1, 0, 1, 1, 1, 1}), "");
  EXPECT_EQ(attention({2, 4, 2, 3, 5, 8, 8, 0, 1, 2, 1, 3, 5}), "");
  std::string begin = "the sizes of builtin attention_bf16 do not fit each other: b 2, ";
  EXPECT_EQ(attention({2, 3, 2, 3, 5, 8, 8, 0, 0, 1, 1, 1, 1}),
            begin + "h 3, g 2, sq 3, sk 5, d 8, e 8, causal 0, has_mask 0, m0 1, m1 1, m2 1, m3 1, "
                    "q 144, q_offset 0, q_batch 72, q_head 24, q_row 8, k 160, k_offset 0, k_batch 80, k_head 40, "
                    "k_row 8, v 160, v_offset 0, v_batch 80, v_head 40, v_row 8, out 144, out_offset 0, "
                    "out_batch 72, out_head 24, out_row 8");
  EXPECT_EQ(attention({2, 4, 2, 3, 5, 8, 8, 0, 1, 1, 1, 1, 2}),
            begin + "h 4, g 2, sq 3, sk 5, d 8, e 8, causal 0, has_mask 1, m0 1, m1 1, m2 1, m3 2, "
                    "q 192, q_offset 0, q_batch 96, q_head 24, q_row 8, k 160, k_offset 0, k_batch 80, k_head 40, "
                    "k_row 8, v 160, v_offset 0, v_batch 80, v_head 40, v_row 8, out 192, out_offset 0, "
                    "out_batch 96, out_head 24, out_row 8");
  EXPECT_EQ(attention({2, 4, 2, 3, 5, 8, 8, 7, 0, 1, 1, 1, 1}).substr(0, begin.size()), begin);
  EXPECT_EQ(attention({2, 4, 2, 3, 5, 8, 8, 0, 0, 1, 1, 1, 9}).substr(0, begin.size()), begin);
  // Rows: keys in another order, a query past its operand's end, a stride that wraps, overlapping results.
  std::vector<int64_t> sizes{2, 4, 2, 3, 5, 8, 8, 1, 0, 1, 1, 1, 1};
  EXPECT_EQ(attention(sizes, {{22, 8}, {23, 16}}), "");
  EXPECT_EQ(attention(sizes, {{15, 1}}).substr(0, begin.size()), begin);
  EXPECT_EQ(attention(sizes, {{18, -1}}).substr(0, begin.size()), begin);
  EXPECT_EQ(attention(sizes, {{33, 0}}).substr(0, begin.size()), begin);
  // Sizes of 0, and keys that would all be one row: nothing else bounds how many they are.
  for (size_t size : {3, 4, 5, 6})
    EXPECT_NE(attention(sizes, {{size, 0}}), "") << size;
  EXPECT_EQ(attention(sizes, {{4, 1 << 20}, {23, 0}, {28, 0}}).substr(0, begin.size()), begin);
}

// V1: rows hold the classes that their cross entropy is of.
TEST(Verify, PaddedRows) {
  auto padded = [](int64_t cols, int64_t total) {
    Program p;
    uint64_t elements[] = {2 * uint64_t(cols), 2, 2, 2};
    DType types[] = {DType::BF16, DType::I64, DType::F32, DType::F32};
    p.kernels = {{"padded", true, "cross_entropy_padded_bf16", {}, 1, 4}};
    Instruction it;
    it.op = Op::Kernel;
    for (uint32_t i = 0; i < 4; ++i) {
      Buffer buffer;
      buffer.name = "b" + std::to_string(i), buffer.type = types[i];
      p.buffers.push_back(buffer);
      Access access = i < 2 ? Access::Read : Access::Write;
      p.kernels[0].operands.push_back({access, elements[i] * sizeOf(types[i])});
      it.operands.push_back({access, i});
    }
    for (int64_t value : {int64_t(2), cols, int64_t(-100), total})
      it.imms.push_back({value});
    return par::verify::checkBuiltin(p, it).value_or("");
  };
  EXPECT_EQ(padded(104, 97), "");
  EXPECT_EQ(padded(104, 104), "");
  std::string begin =
      "the sizes of builtin cross_entropy_padded_bf16 do not fit each other: rows 2, cols 104, ignore -100, ";
  EXPECT_EQ(padded(104, 105), begin + "total 105");
  EXPECT_EQ(padded(104, 0), begin + "total 0");
  EXPECT_EQ(padded(104, -1), begin + "total -1");
}

// Kernels divide by the steps of windows, and lay out the padded images that windows reach.
TEST(Verify, Windows) {
  auto fit = [](const char *name, std::vector<uint64_t> counts, std::vector<std::pair<size_t, uint64_t>> changes) {
    size_t first = counts.size();
    std::vector<uint64_t> imms = std::move(counts);
    //                         i         k        y        s        l        h        d
    imms.insert(imms.end(), {1, 9, 8, 1, 3, 2, 1, 5, 3, 1, 2, 3, 0, 1, 1, 0, 1, 0, 1, 1, 2});
    for (auto [index, value] : changes)
      imms[first + index] = value;
    return par::kernels::findBuiltin(name)->fits(imms);
  };
  for (const char *name : {"convolution", "convolution_input_grad_bf16", "convolution_filter_grad_f16"}) {
    EXPECT_TRUE(fit(name, {2, 3, 1, 6}, {}));
    EXPECT_TRUE(fit(name, {2, 3, 1, 6}, {{8, 2}})); // fewer windows than there is room for
    EXPECT_FALSE(fit(name, {2, 3, 1, 6}, {{8, 4}}));
    EXPECT_FALSE(fit(name, {2, 3, 1, 6}, {{20, 5}}));
    EXPECT_FALSE(fit(name, {2, 3, 1, 7}, {}));
    EXPECT_FALSE(fit(name, {2, 0, 1, 6}, {}));
    EXPECT_FALSE(fit(name, {2, 3, 0, 6}, {}));
  }
  for (const char *name : {"max_pool", "max_pool_grad"}) {
    std::vector<uint64_t> counts{6};
    EXPECT_TRUE(fit(name, counts, {}));
    for (size_t list : {0, 1, 2, 3, 6})
      for (uint64_t wrong : {uint64_t(0), uint64_t(-1), uint64_t(1) << 32})
        EXPECT_FALSE(fit(name, counts, {{3 * list + 1, wrong}})) << list << " " << wrong;
    for (size_t padding : {13, 17})
      EXPECT_FALSE(fit(name, counts, {{padding, uint64_t(-1)}}));
  }
}

// The same for a backward that writes one operand: parts with gaps, overlaps, or several sizes.
TEST(Verify, JoinedAttentionGradients) {
  auto fit = [](std::vector<std::pair<size_t, uint64_t>> changes) {
    std::vector<uint64_t> imms{2, 3, 3, 4, 4, 8, 8, 0, 0, 0, 1, 1, 1, 1};
    for (int i = 0; i < 5; ++i)
      imms.insert(imms.end(), {192, 0, 96, 32, 8});
    for (uint64_t part : {0, 1, 2})
      imms.insert(imms.end(), {576, part * 24, 288, 8, 72});
    imms.push_back(0);
    for (auto [index, value] : changes)
      imms[index] = value;
    return par::kernels::AttentionSizes(imms).fit();
  };
  EXPECT_TRUE(fit({}));
  EXPECT_TRUE(fit({{40, 48}, {50, 0}})); // another order
  EXPECT_FALSE(fit({{45, 0}}));
  EXPECT_FALSE(fit({{45, 25}}));
  EXPECT_FALSE(fit({{39, 600}, {44, 600}, {49, 600}}));
  EXPECT_FALSE(fit({{42, 16}}));
  EXPECT_FALSE(fit({{4, 3}}));
  EXPECT_FALSE(fit({{54, 1}}));
}
