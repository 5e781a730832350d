#include "par/Solver/Problem/ProblemText.h"

using namespace par;
using llvm::StringRef;

llvm::Error par::solverError(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

ProblemText::ProblemText(StringRef text) : text(text) {
  if (!next() || word() != "problem") {
    fail("expected the statement 'problem NAME' first");
    return;
  }
  problemKind = word();
  if (!atEnd())
    fail("'problem' takes one name");
}

/// The next line without comment and blanks at its ends.
StringRef ProblemText::takeStatement() {
  auto [head, tail] = text.split('\n');
  text = tail;
  ++line;
  return head.split("//").first.trim();
}

bool ProblemText::next() {
  if (!rest.empty())
    fail("unexpected '" + rest + "'");
  rest = "";
  while (mistake.empty() && rest.empty() && !text.empty())
    rest = takeStatement();
  return !rest.empty();
}

StringRef ProblemText::word() {
  if (rest.empty()) {
    fail("the statement ends too early");
    return "";
  }
  size_t end = std::min(rest.find_first_of(" \t"), rest.size());
  StringRef result = rest.take_front(end);
  rest = rest.drop_front(end).ltrim();
  return result;
}

int64_t ProblemText::integer() {
  StringRef digits = word();
  int64_t value = 0;
  if (!mistake.empty())
    return 0;
  if (digits.getAsInteger(10, value) || value < 0 || value > (int64_t(1) << 44)) {
    fail("expected a number from 0 to 2^44, got '" + digits + "'");
    return 0;
  }
  return value;
}

std::vector<int64_t> ProblemText::integers() {
  std::vector<int64_t> values;
  while (!atEnd() && mistake.empty())
    values.push_back(integer());
  return values;
}

bool ProblemText::accept(StringRef expected) {
  auto saved = rest;
  if (!rest.empty() && word() == expected)
    return true;
  rest = saved;
  return false;
}

void ProblemText::fail(const llvm::Twine &message) {
  if (mistake.empty())
    mistake = ("line " + llvm::Twine(line) + ": " + message).str();
  rest = "";
}

llvm::Error ProblemText::takeError() { return mistake.empty() ? llvm::Error::success() : solverError(mistake); }

std::string par::statementOf(llvm::StringRef key, llvm::ArrayRef<int64_t> numbers) {
  if (numbers.empty())
    return "";
  std::string text = key.str();
  for (int64_t number : numbers)
    text += ' ' + std::to_string(number);
  return text + '\n';
}
