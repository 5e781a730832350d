// Every message of the table is quoted by a test of this room.
#include "par/messages/CommMessages.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

using namespace par::comm;

namespace {

/// The longest piece of a sentence between two values.
std::string longestPiece(std::string_view text) {
  std::string_view best;
  while (!text.empty()) {
    size_t at = text.find("{}");
    if (text.substr(0, at).size() > best.size())
      best = text.substr(0, at);
    text.remove_prefix(at == text.npos ? text.size() : at + 2);
  }
  return std::string(best);
}

/// The tests with escapes undone and literals joined that the formatter has split.
std::string textOfTests() {
  std::string all;
  for (const auto &file : std::filesystem::directory_iterator(PAR_TEST_SOURCE)) {
    if (file.path().extension() != ".cpp")
      continue;
    std::ifstream in(file.path());
    all.append(std::istreambuf_iterator<char>(in), {});
  }
  std::string joined;
  for (size_t i = 0; i < all.size(); ++i) {
    size_t next = all[i] == '"' ? all.find_first_not_of(" \n", i + 1) : all.npos;
    if (all[i] == '\\' && i + 1 < all.size())
      joined += all[++i];
    else if (next != all.npos && all[next] == '"')
      i = next;
    else
      joined += all[i];
  }
  return joined;
}

} // namespace

TEST(CommMessages, EachIsQuotedByATest) {
  std::string tests = textOfTests();
  for (const SentenceText &message : sentenceTable)
    EXPECT_NE(tests.find(longestPiece(message.text)), std::string::npos)
        << message.key << " is quoted by no test: " << longestPiece(message.text);
}
