// Puts the report into the page of lib/Report/page/, which CMake makes one text of.
#include "par/Report/Page.h"

namespace par {

static constexpr unsigned char pageText[] = {
#include "PageText.inc"
};

std::string reportAsPage(llvm::StringRef reportJson) {
  llvm::StringRef page(reinterpret_cast<const char *>(pageText), sizeof(pageText));
  auto [before, after] = page.split("@REPORT@");
  std::string text = before.str();
  // In a script element "</script>" would end it and "<!--" would begin a comment. In JSON "<" is only in strings.
  for (char c : reportJson)
    text += c == '<' ? "\\u003c" : std::string(1, c);
  return text + after.str();
}

} // namespace par
