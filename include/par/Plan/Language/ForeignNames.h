// Keys and words of other systems, and Par's for each.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace par {

struct NameTable;

/// A key of Megatron, DeepSpeed, torchtitan, accelerate, FSDP, Hugging Face's Trainer or Lightning.
struct ForeignKey {
  const char *name; ///< lower case, with underscores
  /// Paths and texts of a plan, joined by " with ": "train.clip", "mesh: {tp: N} with use: [megatron]". N and M stand
  /// for numbers, P for the model's repeated module. A flag of par-run begins with "par-run --".
  const char *ours;
  const char *note = ""; ///< where the numbers mean something else, or more is to be said
};

/// A word that a key of Par takes under another name.
struct ForeignWord {
  const char *key;  ///< its path in the table of keys
  const char *name; ///< as in ForeignKey
  const char *ours; ///< a value of that key
  const char *note = "";
};

llvm::ArrayRef<ForeignKey> foreignKeys();
llvm::ArrayRef<ForeignWord> foreignWords();

/// What another system calls so, written in any case, with "-" or "_"; null: nothing that is known.
const ForeignKey *findForeignKey(llvm::StringRef name);
const ForeignWord *findForeignWord(llvm::StringRef key, llvm::StringRef name);

/// What an axis that shards nothing is to be told: "fsdp" of a mesh says no more than its name. Empty for other names.
std::string foreignAxisHint(llvm::StringRef axis);

/// The pattern of the module that the model repeats and that holds most of its parameters, "layers.*"; empty if none
/// does.
std::string repeatedModule(const NameTable &names);
/// A message in which "{each: P}" says that module.
std::string nameRepeated(llvm::StringRef message, const NameTable &names);

} // namespace par
