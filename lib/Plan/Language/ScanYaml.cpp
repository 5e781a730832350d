// Refuses the parts of YAML that the plan language does not have.
#include "par/Plan/Language/Tree.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace par {
namespace {

/// Plans nest a handful of levels; the parser's own recursion must not end on the stack.
constexpr int deepest = 64;

/// Scans the characters once and tracks where a token may start, which suffices to tell the alias `*x` from the pattern
/// `h.*`. Structure is left to the parser.
class Scanner {
public:
  Scanner(StringRef text, StringRef file, Origin::Kind kind, PlanErrors &errors)
      : text(text), file(file), kind(kind), errors(errors) {}

  bool run() {
    size_t before = errors.size();
    while (pos < text.size())
      step();
    return errors.size() == before;
  }

private:
  void step() {
    char c = text[pos];
    if (c == '\n')
      return newline();
    if (c == '\t') {
      report(PlanMessage::tab);
      return skipLine();
    }
    if (c == ' ' || c == '\r') {
      ++pos;
      return;
    }
    bool afterSpace = pos == lineStart || text[pos - 1] == ' ';
    if (c == '#' && afterSpace)
      return skipLine();
    if (pos == lineStart && marker())
      return;
    sawContent = true;
    // A level of blocks takes a column at least, be it a blank or the dash of a list.
    if (leading && pos - lineStart > 4 * deepest)
      return refuseDepth();
    if (tokenStart)
      return startToken(c);
    continueToken(c);
  }

  void newline() {
    ++pos;
    ++line;
    lineStart = pos;
    tokenStart = leading = true;
  }

  /// "---" opens a document and "..." ends it; only one may be there.
  bool marker() {
    StringRef rest = text.substr(pos).take_until([](char c) { return c == '\n' || c == ' ' || c == '\r'; });
    if (rest != "---" && rest != "...")
      return false;
    if (rest == "---" && (sawContent || sawMarker))
      report(PlanMessage::secondDocument);
    sawMarker = true;
    pos += 3;
    return true;
  }

  void startToken(char c) {
    bool alone = pos + 1 == text.size() || text[pos + 1] == ' ' || text[pos + 1] == '\n' || text[pos + 1] == '\r';
    tokenStart = false;
    leading = c == '-' && alone;
    switch (c) {
    case '"':
    case '\'':
      return skipQuoted(c);
    case '*':
      return star();
    case '&':
      return refuseToken(PlanMessage::anchor);
    case '!':
      return refuseToken(PlanMessage::tag);
    case '|':
    case '>':
      return refuseToken(PlanMessage::blockScalar);
    case '?':
      if (alone)
        return refuseToken(PlanMessage::complexKey);
      break;
    case '-':
      tokenStart = alone;
      break;
    default:
      break;
    }
    if (c == '{' || c == '[') {
      if (++depth > deepest)
        return refuseDepth();
      tokenStart = true;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ',') {
      tokenStart = true;
    }
    ++pos;
  }

  void continueToken(char c) {
    char next = pos + 1 < text.size() ? text[pos + 1] : '\n';
    if (c == ':' && (next == ' ' || next == '\n' || next == '\r'))
      tokenStart = true;
    if (depth > 0 && (c == ',' || c == '{' || c == '['))
      tokenStart = true;
    if (depth > 0 && (c == '{' || c == '[') && ++depth > deepest)
      return refuseDepth();
    if (depth > 0 && (c == '}' || c == ']'))
      --depth;
    ++pos;
  }

  /// `*name` is an alias if there is an anchor &name, otherwise a pattern without quotes.
  void star() {
    StringRef token = text.substr(pos).take_until([](char c) { return StringRef(" \n\r,:]}").contains(c); });
    StringRef name = token.drop_front();
    if (!name.empty() && (text.contains(("&" + name + "\n").str()) || text.contains(("&" + name + " ").str())))
      report(PlanMessage::anchor);
    else {
      StringRef plain = token.ltrim("*.");
      report(PlanMessage::unquotedStar, plain.empty() ? StringRef("weight") : plain);
    }
    pos += token.size();
  }

  void refuseToken(PlanMessage message) {
    report(message);
    skipLine();
  }

  /// Skips the rest, which is at least as deep: one error is enough.
  void refuseDepth() {
    report(PlanMessage::tooDeep, deepest);
    pos = text.size();
  }

  void skipQuoted(char quote) {
    for (++pos; pos < text.size(); ++pos) {
      if (text[pos] == '\n') {
        ++line;
        lineStart = pos + 1;
      } else if (quote == '"' && text[pos] == '\\') {
        ++pos;
      } else if (text[pos] == quote) {
        if (quote != '\'' || pos + 1 >= text.size() || text[pos + 1] != '\'')
          break;
        ++pos; // '' is one quote
      }
    }
    ++pos;
  }

  void skipLine() {
    while (pos < text.size() && text[pos] != '\n')
      ++pos;
  }

  template <typename... Args>
  void report(PlanMessage message, Args &&...args) {
    errors.error(Origin{kind, file.str(), line, unsigned(pos - lineStart + 1)}, message, std::forward<Args>(args)...);
  }

  StringRef text, file;
  Origin::Kind kind;
  PlanErrors &errors;
  size_t pos = 0, lineStart = 0;
  unsigned line = 1;
  int depth = 0;
  bool leading = true; ///< only blanks and dashes so far on this line
  bool tokenStart = true, sawContent = false, sawMarker = false;
};

} // namespace

bool scanPlanYaml(StringRef text, StringRef file, Origin::Kind kind, PlanErrors &errors) {
  return Scanner(text, file, kind, errors).run();
}

} // namespace par
