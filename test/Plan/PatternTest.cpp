// Patterns against dotted names: docs/plan.md §1.2.
#include "par/Plan/Language/Pattern.h"
#include "gtest/gtest.h"

using namespace par;

static NamePattern parse(llvm::StringRef text) {
  std::string why;
  auto pattern = NamePattern::parse(text, why);
  EXPECT_TRUE(pattern.has_value()) << text.str() << ": " << why;
  return pattern.value_or(NamePattern());
}

static bool matches(llvm::StringRef pattern, llvm::StringRef name) { return parse(pattern).matchesName(name); }

TEST(Pattern, MatchesTrailingSegments) {
  EXPECT_TRUE(matches("mlp.c_fc.weight", "transformer.h.0.mlp.c_fc.weight"));
  EXPECT_TRUE(matches("weight", "transformer.h.0.mlp.c_fc.weight"));
  EXPECT_FALSE(matches("mlp.c_fc", "transformer.h.0.mlp.c_fc.weight"));
  EXPECT_FALSE(matches("fc.weight", "transformer.h.0.mlp.c_fc.weight"));
  EXPECT_FALSE(matches("a.b.c", "b.c"));
}

TEST(Pattern, CaretAnchorsAtTheFront) {
  EXPECT_TRUE(matches("^wte.weight", "wte.weight"));
  EXPECT_FALSE(matches("^wte.weight", "transformer.wte.weight"));
}

TEST(Pattern, StarsStayWithinASegmentAndDoubleStarsSpan) {
  EXPECT_TRUE(matches("h.*", "transformer.h.11"));
  EXPECT_FALSE(matches("h.*", "transformer.h.11.mlp"));
  EXPECT_TRUE(matches("h.**.weight", "transformer.h.0.mlp.c_fc.weight"));
  EXPECT_TRUE(matches("h.**.weight", "h.weight"));
  EXPECT_TRUE(matches("c_*.w*t", "mlp.c_fc.weight"));
}

// In time that does not double with each star.
TEST(Pattern, ManyStars) {
  std::string stars(60, '*'), segments, name(200, 'a');
  EXPECT_FALSE(matches(stars + "x", name));
  EXPECT_TRUE(matches(stars + "a", name));
  for (int i = 0; i < 40; ++i) {
    segments += i ? ".**.a" : "**.a";
    name += ".a";
  }
  EXPECT_FALSE(matches(segments + ".x", name));
  EXPECT_TRUE(matches("a*a", "a/a") == false && matches("a*/a", "a/a"));
}

TEST(Pattern, AlternativesAndRanges) {
  EXPECT_TRUE(matches("{q,k,v}_proj.weight", "attn.k_proj.weight"));
  EXPECT_FALSE(matches("{q,k,v}_proj.weight", "attn.o_proj.weight"));
  EXPECT_TRUE(matches("h.{0..11}.attn", "transformer.h.11.attn"));
  EXPECT_FALSE(matches("h.{0..11}.attn", "transformer.h.12.attn"));
  EXPECT_FALSE(matches("h.{0..11}.attn", "transformer.h.07.attn"));
  EXPECT_TRUE(matches("layer{1..3}x", "layer2x"));
}

TEST(Pattern, NodesAreTheLastSegment) {
  EXPECT_TRUE(matches("mlp/Gelu", "transformer.h.0.mlp/Gelu"));
  EXPECT_FALSE(matches("mlp/Gelu", "transformer.h.0.mlp/Gelu.1"));
  EXPECT_TRUE(matches("mlp/Gelu*", "transformer.h.0.mlp/Gelu.1"));
  EXPECT_FALSE(matches("mlp", "transformer.h.0.mlp/Gelu"));
  EXPECT_TRUE(matches("/model.24/Conv", "/model.24/Conv"));
}

TEST(Pattern, Forms) {
  EXPECT_EQ(parse("out(ln_1)").form(), NamePattern::Out);
  EXPECT_TRUE(parse("out(ln_1)").matchesName("transformer.h.0.ln_1"));
  EXPECT_EQ(parse("in(mlp)[1]").inputIndex(), 1u);
  EXPECT_EQ(parse("grad(weight)").form(), NamePattern::Grad);
  EXPECT_EQ(parse("state(weight)?").form(), NamePattern::State);
  EXPECT_TRUE(parse("state(weight)?").optional());
  EXPECT_EQ(parse("wte.weight?").text(), "wte.weight");
  EXPECT_TRUE(parse("op(Softmax)").matchesNode("Softmax", "a.b"));
  EXPECT_FALSE(parse("op(Softmax)").matchesNode("Gelu", "a.b"));
  EXPECT_TRUE(parse("op(Gelu in mlp)").matchesNode("Gelu", "h.0.mlp"));
  EXPECT_TRUE(parse("op(Gelu in h.*)").matchesNode("Gelu", "h.0.mlp"));
  EXPECT_FALSE(parse("op(Gelu in attn)").matchesNode("Gelu", "h.0.mlp"));
}

TEST(Pattern, SaysWhyItCannotBeRead) {
  std::string why;
  EXPECT_FALSE(NamePattern::parse("h.}", why));
  EXPECT_EQ(why, "\"}\" without \"{\"");
  EXPECT_FALSE(NamePattern::parse("h.{a,{b}}", why));
  EXPECT_EQ(why, "alternatives inside alternatives");
  EXPECT_FALSE(NamePattern::parse("^", why));
  EXPECT_EQ(why, "no name");
  EXPECT_FALSE(NamePattern::parse("a b", why));
  EXPECT_EQ(why, "\" \" cannot stand inside a name");
}
