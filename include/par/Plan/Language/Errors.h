// Errors of a plan, each with the place of the value that it is about.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FormatVariadic.h"
#include <string>
#include <vector>

namespace par {

/// The origin of a value of the plan.
struct Origin {
  enum Kind {
    Default, ///< the key's default
    Auto,    ///< derived from the model or chosen
    File,    ///< file:line:column
    Set      ///< --set; `file` is the whole text "--set K=V"
  };
  Kind kind = Default;
  std::string file;
  unsigned line = 0;
  unsigned column = 0;

  static Origin automatic() { return Origin{Auto, "", 0, 0}; }

  /// "plan.yaml:3", "--set", "default" or "auto": the comment of --print-plan.
  std::string comment() const;
  /// "plan.yaml:3:14" or "--set K=V": the text before "error:". Empty for default and auto.
  std::string place() const;
};

/// The messages of Messages.def.
enum class PlanMessage {
#define PLAN_MESSAGE(name, text) name,
#include "par/Plan/Language/Messages.def"
#undef PLAN_MESSAGE
};

/// The format text of a message.
const char *planMessageText(PlanMessage message);

/// The text, or the begin and the length of a long one, since an error may quote any part of a file.
std::string shortened(llvm::StringRef text);

/// A line of a file with a caret below its column, each with its line end; only the part around the column of a long
/// line. Control characters are replaced.
std::string showColumn(llvm::StringRef line, unsigned column);

/// Collects the errors of a plan, so that one run reports all of them.
class PlanErrors {
public:
  /// Keeps the text of a file, to show the line of an error.
  void addSource(llvm::StringRef file, llvm::StringRef text);

  template <typename... Args>
  void error(const Origin &where, PlanMessage message, Args &&...args) {
    add(where, fill(message, std::forward<Args>(args)...));
  }
  /// A note to the last error.
  template <typename... Args>
  void note(PlanMessage message, Args &&...args) {
    if (!dropNotes)
      errors.back().notes.push_back(fill(message, std::forward<Args>(args)...));
  }

  /// A value that is valid but may surprise. Warnings do not count in any() and size().
  template <typename... Args>
  void warning(const Origin &where, PlanMessage message, Args &&...args) {
    warned.emplace_back(where, fill(message, std::forward<Args>(args)...));
  }
  llvm::ArrayRef<std::pair<Origin, std::string>> warnings() const { return warned; }

  /// Calls `fn` for every error with its place, message and notes, in the order found.
  template <typename Fn>
  void forEach(Fn fn) const {
    for (const Entry &entry : errors)
      fn(entry.where, entry.message, entry.notes);
  }

  bool any() const { return !errors.empty(); }
  size_t size() const { return errors.size() + unsaid; }

  /// Calls the function for every error by file and line: its place, its message, the line with a caret below it (empty
  /// if there is none) and the notes.
  void forEachInOrder(
      llvm::function_ref<void(const Origin &, llvm::StringRef, llvm::StringRef, llvm::ArrayRef<std::string>)> fn) const;

  /// Every error with its line and a caret, by file and line:
  ///
  ///     plan.yaml:6:3: error: unknown key "shedule" in pipeline; did you mean "schedule"?
  ///       shedule: 1f1b
  ///       ^
  ///       note: ...
  ///
  /// `otherwise` names the culprit where a value has no place (a default).
  std::string toText(llvm::StringRef otherwise = "plan") const;

private:
  struct Entry {
    Origin where;
    std::string message;
    std::vector<std::string> notes;
  };
  /// Shortens a value, which may be as long as the file.
  template <typename T>
  static auto quotable(T &&value) {
    if constexpr (std::is_convertible_v<T, llvm::StringRef>)
      return shortened(value);
    else
      return std::forward<T>(value);
  }
  template <typename... Args>
  static std::string fill(PlanMessage message, Args &&...args) {
    return llvm::formatv(planMessageText(message), quotable(std::forward<Args>(args))...).str();
  }
  void add(const Origin &where, std::string message);
  std::string showLine(const Origin &where) const;

  std::vector<Entry> errors;
  llvm::StringSet<> said; // places with an error, or with its words
  size_t unsaid = 0;      // errors beyond those that are kept
  std::vector<std::pair<Origin, std::string>> warned;
  bool dropNotes = false;         // the last error was a repetition
  std::vector<std::string> files; // in the order read, which is the order of printing
  llvm::StringMap<std::string> sources;
};

} // namespace par
