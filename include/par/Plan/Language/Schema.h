// The keys of the plan language as one table.
#pragma once

#include "par/Plan/Language/Tree.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/JSON.h"

namespace par {

/// One key. Checks for unknown keys, wrong types and unsupported values, --print-schema and defaults are all derived
/// from this table.
struct PlanKey {
  /// Keys from the top, joined by "."; a segment in <> stands for any key of that sort:
  /// "shard.<pattern>.<dim>".
  const char *path;
  /// The values, alternatives separated by "|": words as they are written, sorts in <> (`<int>`, `<map>`). A "!" before
  /// an alternative: the language has it, this compiler does not yet. "!" by itself: the whole key.
  const char *values;
  const char *fallback; ///< default as written in a plan, or its source in ()
  const char *doc;
  const char *why = ""; ///< appended to the error about a value that this compiler does not have yet

  llvm::StringRef lastSegment() const;
  /// Whether a plan's `name` may stand for the last segment: "0" for "<dim>", anything for "<pattern>".
  bool fits(llvm::StringRef name) const;
};

/// The whole language, in the order of --print-plan and docs/keys.md.
llvm::ArrayRef<PlanKey> planKeys();

/// The keys directly below the path `table` ("shard.<pattern>"), most particular first.
llvm::SmallVector<const PlanKey *> planKeysBelow(llvm::StringRef table);

/// Checks every key and value of `tree` against the table, all errors in one go. Returns whether there was
/// none.
bool checkPlanTree(const PlanNode &tree, PlanErrors &errors);

/// Number of letters that are wrong, missing, surplus, or swapped with the next one (at most one pair).
unsigned lettersApart(llvm::StringRef text, llvm::StringRef word);

/// The word of `words` nearest to a mistyped one, at most a third of its letters or `letters` of them away; empty if
/// there is none.
llvm::StringRef nearestWord(llvm::StringRef text, llvm::ArrayRef<llvm::StringRef> words, size_t letters = 1);

/// The words among the values of a key that this compiler takes ("cross_entropy", "mse", "l1"), in the table's order.
llvm::SmallVector<llvm::StringRef> planWords(llvm::StringRef path);

/// The table as JSON Schema, for editors.
llvm::json::Value planSchema();

/// The table as Markdown: docs/keys.md.
std::string planKeysPage();

/// PlanKey::values in words: "cpu|cuda|!tpu" as "cpu or cuda", "<int>|<map>" as "a whole number or a mapping".
std::string spellValues(llvm::StringRef values);

/// Reads a size: bytes, or a number with KiB MiB GiB TiB (powers of 1024) or KB MB GB TB (of 1000).
std::optional<uint64_t> parseSize(llvm::StringRef text);
/// A size with the largest unit of 1024 that keeps it whole: "25MiB".
std::string formatSize(uint64_t bytes);

} // namespace par
