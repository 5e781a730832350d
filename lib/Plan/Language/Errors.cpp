// Prints the errors of a plan.
#include "par/Plan/Language/Errors.h"
#include "par/format/Printable.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

using namespace llvm;

namespace par {

std::string Origin::comment() const {
  switch (kind) {
  case Default:
    return "default";
  case Auto:
    return "auto";
  case Set:
    return "--set";
  case File:
    return formatv("{0}:{1}", sys::path::filename(file), line).str();
  }
  return "";
}

std::string Origin::place() const {
  if (kind == File)
    return formatv("{0}:{1}:{2}", file, line, column).str();
  return kind == Set ? file : "";
}

const char *planMessageText(PlanMessage message) {
  static const char *const texts[] = {
#define PLAN_MESSAGE(name, text) text,
#include "par/Plan/Language/Messages.def"
#undef PLAN_MESSAGE
  };
  return texts[static_cast<size_t>(message)];
}

std::string shortened(StringRef text) { return format::shortened(text, /*most=*/1000, /*shown=*/100); }

std::string showColumn(StringRef line, unsigned column) {
  constexpr size_t around = 100;
  size_t at = std::min<size_t>(column - 1, line.size()), from = at > around ? at - around : 0;
  from = line.size() <= 2 * around ? 0 : format::characterAt(line, from);
  size_t end = format::characterAt(line, std::min(from + 2 * around, line.size()));
  StringRef before = from ? "..." : "", part = line.slice(from, end);
  std::string shown;
  raw_string_ostream os(shown);
  os << before << format::printable(part.str(), "\t") << (end < line.size() ? "..." : "") << "\n";
  os.indent(before.size() + at - from) << "^\n";
  return shown;
}

void PlanErrors::addSource(StringRef file, StringRef text) {
  if (sources.try_emplace(file, text.str()).second)
    files.push_back(file.str());
}

void PlanErrors::add(const Origin &where, std::string message) {
  // One error a place: a rule that matches many names, or a value with two errors, is reported once. A --set is a
  // single place for its whole text, so there only equal messages are dropped.
  constexpr size_t most = 100;
  std::string key = where.kind == Origin::File ? where.place() : where.place() + "\n" + message;
  dropNotes = !said.insert(key).second;
  if (dropNotes)
    return;
  dropNotes = errors.size() == most; // enough errors to fix first
  if (dropNotes)
    ++unsaid;
  else
    errors.push_back({where, std::move(message), {}});
}

std::string PlanErrors::showLine(const Origin &where) const {
  auto source = sources.find(where.file);
  if (where.kind != Origin::File || source == sources.end())
    return "";
  SmallVector<StringRef> lines;
  StringRef(source->second).split(lines, '\n');
  if (where.line < 1 || where.line > lines.size())
    return "";
  return showColumn(lines[where.line - 1].rtrim('\r'), where.column);
}

void PlanErrors::forEachInOrder(
    function_ref<void(const Origin &, StringRef, StringRef, ArrayRef<std::string>)> fn) const {
  std::vector<const Entry *> sorted;
  for (const Entry &entry : errors)
    sorted.push_back(&entry);
  auto fileIndex = [&](const Entry *entry) { return llvm::find(files, entry->where.file) - files.begin(); };
  llvm::stable_sort(sorted, [&](const Entry *a, const Entry *b) {
    return std::make_tuple(fileIndex(a), a->where.line, a->where.column) <
           std::make_tuple(fileIndex(b), b->where.line, b->where.column);
  });
  for (const Entry *entry : sorted) {
    std::vector<std::string> notes = entry->notes;
    if (unsaid && entry == sorted.back())
      notes.push_back(formatv(planMessageText(PlanMessage::moreErrors), unsaid).str());
    fn(entry->where, entry->message, showLine(entry->where), notes);
  }
}

std::string PlanErrors::toText(StringRef otherwise) const {
  std::string text;
  raw_string_ostream os(text);
  forEachInOrder([&](const Origin &where, StringRef message, StringRef shown, ArrayRef<std::string> notes) {
    std::string place = where.place();
    os << (place.empty() ? otherwise : StringRef(place)) << ": error: " << message << "\n" << shown;
    for (const std::string &note : notes)
      os << "  note: " << note << "\n";
  });
  return text;
}

} // namespace par
