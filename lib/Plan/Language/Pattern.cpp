// Patterns over the names of a model.
#include "par/Plan/Language/Pattern.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringExtras.h"

using namespace llvm;

namespace par {

SmallVector<StringRef, 8> splitName(StringRef name) {
  SmallVector<StringRef, 8> result;
  auto [module, node] = name.split('/');
  if (!module.empty())
    module.split(result, '.');
  if (module.size() < name.size())
    result.push_back(name.substr(module.size()));
  return result;
}

/// As splitName, but dots and slashes inside {} belong to the alternatives.
static bool splitPattern(StringRef text, std::vector<std::string> &segments, std::string &why) {
  int depth = 0;
  bool node = false;
  std::string segment;
  for (char c : text) {
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth < 0 || depth > 1) {
      why = depth < 0 ? "\"}\" without \"{\"" : "alternatives inside alternatives";
      return false;
    }
    bool split = depth == 0 && !node && (c == '.' || c == '/');
    if (split && !(c == '/' && segment.empty() && segments.empty())) {
      if (segment.empty()) {
        why = "an empty segment";
        return false;
      }
      segments.push_back(std::move(segment));
      segment.clear();
    }
    if (c == '/' && depth == 0)
      node = true;
    if (!split || c == '/')
      segment += c;
  }
  if (depth != 0 || segment.empty()) {
    why = depth ? "\"{\" without \"}\"" : "an empty segment";
    return false;
  }
  segments.push_back(std::move(segment));
  return true;
}

namespace {

/// Whether a pattern matches a name. A failed pair of positions is remembered, so that a pattern of many stars takes
/// time in proportion to its length times the name's, not exponential time.
class Matcher {
public:
  bool segment(StringRef pattern, StringRef name);
  bool segments(ArrayRef<std::string> pattern, ArrayRef<StringRef> name);

private:
  bool alternatives(StringRef body, StringRef rest, StringRef name);

  DenseSet<std::pair<const void *, const void *>> failed;
};

} // namespace

/// Matches "{a,b}" or "{0..11}" at the front of `name`, and `rest` after it.
bool Matcher::alternatives(StringRef body, StringRef rest, StringRef name) {
  auto [low, high] = body.split("..");
  uint64_t first, last;
  if (!high.empty() && !low.getAsInteger(10, first) && !high.getAsInteger(10, last)) {
    size_t digits = 0;
    while (digits < name.size() && isDigit(name[digits]))
      ++digits;
    uint64_t number;
    for (; digits > 0; --digits)
      if (!name.take_front(digits).getAsInteger(10, number) && number >= first && number <= last &&
          (digits == 1 || name[0] != '0') && segment(rest, name.drop_front(digits)))
        return true;
    return false;
  }
  SmallVector<StringRef> words;
  body.split(words, ',');
  for (StringRef word : words)
    if (name.starts_with(word.trim()) && segment(rest, name.drop_front(word.trim().size())))
      return true;
  return false;
}

bool Matcher::segment(StringRef pattern, StringRef name) {
  while (!pattern.empty()) {
    if (pattern[0] == '*') {
      if (!failed.insert({pattern.data(), name.data()}).second)
        return false;
      pattern = pattern.drop_front();
      for (size_t skip = 0; skip <= name.size(); ++skip)
        if (segment(pattern, name.drop_front(skip)))
          return true;
      return false;
    }
    if (pattern[0] == '{') {
      size_t close = pattern.find('}');
      return alternatives(pattern.slice(1, close), pattern.drop_front(close + 1), name);
    }
    if (name.empty() || name[0] != pattern[0])
      return false;
    pattern = pattern.drop_front();
    name = name.drop_front();
  }
  return name.empty();
}

bool Matcher::segments(ArrayRef<std::string> pattern, ArrayRef<StringRef> name) {
  if (pattern.empty())
    return name.empty();
  if (pattern[0] == "**") {
    if (!failed.insert({pattern.data(), name.data()}).second)
      return false;
    for (size_t skip = 0; skip <= name.size(); ++skip)
      if (segments(pattern.drop_front(), name.drop_front(skip)))
        return true;
    return false;
  }
  return !name.empty() && Matcher().segment(pattern[0], name[0]) && segments(pattern.drop_front(), name.drop_front());
}

bool NamePattern::matchesName(StringRef name) const {
  if (segments.empty())
    return true;
  // Most names of a model do not end as a pattern does.
  StringRef last = segments.back();
  if (last.find_first_of("*{") == StringRef::npos && !name.ends_with(last))
    return false;
  SmallVector<StringRef, 8> parts = splitName(name);
  // Without "**" a name's last segments are as many as the pattern's.
  if (!llvm::is_contained(segments, "**")) {
    if (parts.size() < segments.size() || (anchored && parts.size() > segments.size()))
      return false;
    return llvm::all_of(llvm::zip(llvm::reverse(segments), llvm::reverse(parts)),
                        [](auto each) { return Matcher().segment(std::get<0>(each), std::get<1>(each)); });
  }
  if (anchored)
    return Matcher().segments(segments, parts);
  for (size_t start = 0; start < parts.size(); ++start)
    if (Matcher().segments(segments, ArrayRef<StringRef>(parts).drop_front(start)))
      return true;
  return false;
}

bool NamePattern::matchesNode(StringRef opType, StringRef module) const {
  if (patternForm != Op || opType != type)
    return false;
  if (segments.empty())
    return true;
  // The node is inside M if M matches its module or any module around that.
  for (StringRef around = module; !around.empty(); around = around.rsplit('.').first) {
    if (matchesName(around))
      return true;
    if (!around.contains('.'))
      break;
  }
  return false;
}

/// "{0..11}" is of two numbers of 64 bits, the smaller one first; any other text with ".." would match nothing.
static bool checkRanges(StringRef text, std::string &why) {
  for (size_t open = text.find('{'); open != StringRef::npos; open = text.find('{', open + 1)) {
    StringRef body = text.slice(open + 1, text.find('}', open));
    auto [low, high] = body.split("..");
    uint64_t first = 0, last = 0;
    if (!body.contains("..") || (!low.getAsInteger(10, first) && !high.getAsInteger(10, last) && first <= last))
      continue;
    auto isNumeric = [](StringRef end) { return !end.empty() && llvm::all_of(end, isDigit); };
    why = "the range {" + body.str() + "} ";
    if (!isNumeric(low) || !isNumeric(high))
      why += "takes two whole numbers, as {0..11}";
    else
      why += low.getAsInteger(10, first) || high.getAsInteger(10, last) ? "has a number beyond 64 bits"
                                                                        : "has its larger number first";
    return false;
  }
  return true;
}

bool NamePattern::parseInner(StringRef text, std::string &why) {
  inner = text.str();
  anchored = text.consume_front("^");
  if (text.empty()) {
    why = "no name";
    return false;
  }
  if (text.find_first_of(" ()[]?^\"'") != StringRef::npos) {
    why = "\"" + text.substr(text.find_first_of(" ()[]?^\"'"), 1).str() + "\" cannot stand inside a name";
    return false;
  }
  return splitPattern(text, segments, why) && checkRanges(text, why);
}

std::optional<NamePattern> NamePattern::parse(StringRef text, std::string &why) {
  NamePattern pattern;
  pattern.mayMatchNothing = text.consume_back("?");
  pattern.source = text.str();
  StringRef index;
  if (text.ends_with("]") && text.starts_with("in(")) {
    std::tie(text, index) = text.drop_back().rsplit('[');
    if (index.getAsInteger(10, pattern.index)) {
      why = "the index of an input is a number: in(M)[1]";
      return std::nullopt;
    }
  }
  static constexpr std::pair<const char *, Form> forms[] = {
      {"out", Out}, {"in", In}, {"grad", Grad}, {"state", State}, {"op", Op}};
  StringRef body = text;
  if (text.ends_with(")") && text.contains('(')) {
    auto [word, rest] = text.drop_back().split('(');
    body = rest;
    for (auto [name, form] : forms)
      if (word == name)
        pattern.patternForm = form;
    if (pattern.patternForm == Name) {
      why = "\"" + word.str() + "(...)\" is none of out(), in(), grad(), state(), op()";
      return std::nullopt;
    }
  }
  if (pattern.patternForm == Op) {
    auto [type, module] = body.split(" in ");
    pattern.type = type.trim().str();
    body = module.trim();
    if (pattern.type.empty() || StringRef(pattern.type).contains(' ')) {
      why = "op() takes an ONNX type: op(Softmax) or op(Gelu in mlp)";
      return std::nullopt;
    }
    if (body.empty())
      return pattern;
  }
  if (!pattern.parseInner(body, why))
    return std::nullopt;
  return pattern;
}

} // namespace par
