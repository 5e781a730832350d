// The names of a model as text: par-compile --list.
#include "par/Report/Names.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace par {

using llvm::StringRef;

static void printParameters(const NameTable &names, llvm::raw_string_ostream &os) {
  size_t trained =
      llvm::count_if(names.parameters, [](auto &parameter) { return parameter.trainable && !parameter.frozen; });
  auto buffers = size_t(llvm::count_if(names.parameters, [](auto &parameter) { return !parameter.trainable; }));
  os << "parameters (" << trained << " trainable of " << names.parameters.size() - buffers;
  if (buffers)
    os << "; " << buffers << " more not trained in any plan";
  os << ")\n";
  for (const NameTable::Parameter &parameter : names.parameters) {
    os << "  " << parameter.name << "  " << parameter.type << "[";
    llvm::interleaveComma(parameter.shape, os);
    os << "]" << (!parameter.trainable ? "  not trained" : parameter.frozen ? "  frozen in the module" : "");
    if (!parameter.gradientNote.empty())
      os << "  " << parameter.gradientNote;
    if (!parameter.aliases.empty())
      os << "  also " << llvm::join(parameter.aliases, ", ");
    if (!parameter.transposed.empty())
      os << "  transposed: " << llvm::join(parameter.transposed, ", ");
    else if (parameter.renamed && parameter.trainable)
      os << "  (computed by the exporter: files hold it under this name)";
    os << "\n";
  }
}

static void printValues(StringRef heading, const std::vector<NameTable::Value> &values, llvm::raw_string_ostream &os) {
  os << heading << "\n";
  for (const NameTable::Value &value : values)
    os << "  " << value.name << "  " << value.type << "[" << llvm::join(value.shape, ", ") << "]\n";
}

std::optional<std::string> listNames(const NameTable &names, StringRef kind) {
  std::string text;
  llvm::raw_string_ostream os(text);
  bool all = kind.empty(), known = all;
  if (all || kind == "params")
    known = true, printParameters(names, os);
  if (all || kind == "modules") {
    known = true;
    os << "modules\n";
    for (const std::string &module : names.modules)
      os << "  " << module << "\n";
  }
  if (all || kind == "nodes") {
    known = true;
    os << "nodes\n";
    for (const NameTable::Node &node : names.nodes)
      if (node.opType != "Constant")
        os << "  " << node.name << (node.source.empty() ? "" : "  " + node.source) << "\n";
  }
  if (all || kind == "inputs") {
    known = true;
    printValues("inputs", names.inputs, os);
    printValues("outputs", names.outputs, os);
    if (!names.symbols.empty())
      os << "dims\n  " << llvm::join(names.symbols, "\n  ") << "\n";
  }
  return known ? std::optional(text) : std::nullopt;
}

} // namespace par
