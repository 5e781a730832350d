// Keys and words of other systems, and Par's for each.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

namespace par {

struct NameTable;

/// A key of Megatron, DeepSpeed, torchtitan, accelerate, FSDP, Hugging Face's Trainer or Lightning.
struct ForeignKey {
  const char *name; ///< lower case, with underscores; of a key inside another one of Par's with its path
  /// Paths and texts of a plan, joined by " with ": "train.clip", "mesh: {tp: N} with use: [megatron]". N and M stand
  /// for numbers, P for the model's repeated module. A flag of par-run begins with "par-run --".
  const char *ours;
  const char *note = ""; ///< if the number has another meaning, or more must be said
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

/// The entry of a name from another system, in any case, with "-" or "_", inside a key of Par; null if it is unknown.
const ForeignKey *findForeignKey(llvm::StringRef name, llvm::StringRef place = "");
const ForeignWord *findForeignWord(llvm::StringRef key, llvm::StringRef name);

/// The unit of a key of Par of which another system's is a fraction; empty for other keys.
llvm::StringRef findUnit(llvm::StringRef key);

/// A hint for an axis that shards nothing though its name suggests it: "fsdp" of a mesh is only a name. Empty for other
/// names.
std::string foreignAxisHint(llvm::StringRef axis);

/// The pattern of the module that the model repeats and that holds most of its parameters, "layers.*"; empty if none
/// does.
std::string repeatedModule(const NameTable &names);
/// Replaces "{each: P}" in a message by that module.
std::string nameRepeated(llvm::StringRef message, const NameTable &names);

} // namespace par
