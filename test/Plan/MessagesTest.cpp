// Every message of the plan reader is quoted by a test of this folder.
#include "par/Plan/Language/Errors.h"
#include "par/Plan/Language/Schema.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "gtest/gtest.h"

/// The literal pieces of a format text, between its {0} {1}.
static std::vector<std::string> pieces(llvm::StringRef text) {
  std::vector<std::string> result(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' && i + 1 < text.size() && text[i + 1] == '{') {
      result.back() += '{';
      ++i;
    } else if (text[i] == '{') {
      i = text.find('}', i);
      result.emplace_back();
    } else {
      result.back() += text[i];
    }
  }
  return result;
}

/// Whether `text` contains all pieces in order and close together.
static bool quotes(llvm::StringRef text, const std::vector<std::string> &pieces) {
  std::string longest;
  for (const std::string &piece : pieces)
    if (piece.size() > longest.size())
      longest = piece;
  for (size_t at = text.find(longest); at != llvm::StringRef::npos; at = text.find(longest, at + 1)) {
    size_t from = at > 150 ? at - 150 : 0;
    llvm::StringRef window = text.substr(from, 600);
    size_t position = 0;
    bool all = true;
    for (const std::string &piece : pieces) {
      position = window.find(piece, position);
      all &= position != llvm::StringRef::npos;
      if (!all)
        break;
      position += piece.size();
    }
    if (all)
      return true;
  }
  return false;
}

TEST(Messages, AllAreQuoted) {
  std::string tests;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator file(PAR_SOURCE_DIR "/test/Plan", error), end; file != end && !error;
       file.increment(error)) {
    if (file->type() == llvm::sys::fs::file_type::directory_file)
      continue;
    auto buffer = llvm::MemoryBuffer::getFile(file->path());
    ASSERT_TRUE(bool(buffer)) << file->path();
    tests += (*buffer)->getBuffer();
  }
  // A C++ test breaks a message over lines and escapes its quotes.
  std::string plain;
  for (llvm::StringRef rest = tests; !rest.empty();) {
    if (rest.consume_front("\\\""))
      plain += '"';
    else if (llvm::StringRef after = rest; after.consume_front("\"\n") && after.ltrim(' ').starts_with("\""))
      rest = after.ltrim(' ').drop_front();
    else {
      plain += rest[0];
      rest = rest.drop_front();
    }
  }
#define PLAN_MESSAGE(name, text) EXPECT_TRUE(quotes(plain, pieces(text))) << #name << ": " << text;
#include "par/Plan/Language/Messages.def"
#undef PLAN_MESSAGE
}

// A second row of one name would never be found.
TEST(Schema, EachKeyIsThereOnce) {
  llvm::StringSet<> keys, recipes;
  for (const par::PlanKey &key : par::planKeys())
    EXPECT_TRUE(keys.insert(key.path).second) << key.path << " is in the table twice";
  std::string names = par::recipeNames();
  for (llvm::StringRef name : llvm::split(names, ", "))
    EXPECT_TRUE(recipes.insert(name).second) << name.str() << " is shipped twice";
}
