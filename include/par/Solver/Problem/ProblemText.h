// Reads the text form of solver problems.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <vector>

namespace par {

/// An error of a solver: one line, starting lower-case.
llvm::Error solverError(const llvm::Twine &message);

/// A problem as text: one statement a line, words separated by blanks, comments from `//` to the end of the
/// line. The first statement names the problem; what follows is the problem's own:
///
///     problem order_table
///     schedule 1f1b
///     stages 4
///     forward 10 10 10 10      // ns per stage
///
/// A reader walks statements with `next` and takes their words one by one. The first mistake is kept, with
/// its line, and ends the walk, so that readers need no check after each word.
class ProblemText {
public:
  explicit ProblemText(llvm::StringRef text);

  /// The word after `problem` in the first statement; empty if there is none.
  llvm::StringRef kind() const { return problemKind; }

  /// Advances to the next statement; false at the end and after an error.
  bool next();
  /// Takes the next word of the statement; a mistake if there is none.
  llvm::StringRef word();
  /// Takes the next word as a number between 0 and 2^44.
  int64_t integer();
  /// Takes all remaining words as numbers.
  std::vector<int64_t> integers();
  /// Takes the next word if it is `expected`.
  bool accept(llvm::StringRef expected);
  /// True if the statement has no further word.
  bool atEnd() const { return rest.empty(); }

  /// The line of the current statement, from 1.
  unsigned lineNumber() const { return line; }

  /// Records a mistake at the current line; only the first one is kept.
  void fail(const llvm::Twine &message);
  /// Success, or the first mistake as `line N: ...`.
  llvm::Error takeError();

private:
  llvm::StringRef takeStatement();

  llvm::StringRef text, rest, problemKind;
  unsigned line = 0;
  std::string mistake;
};

/// A statement of numbers, "key 1 2 3"; empty if there are none.
std::string statementOf(llvm::StringRef key, llvm::ArrayRef<int64_t> numbers);

/// The solution, as text, of the problem that `text` states; or the first mistake in the text, or why it cannot be
/// solved.
llvm::Expected<std::string> solveText(llvm::StringRef text);

} // namespace par
