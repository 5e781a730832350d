#include "Provenance.h"

#include "par/format/Printable.h"

#include <charconv>

namespace par::onnx {
namespace {

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos)
      return parts;
    text.remove_prefix(at + separator.size());
  }
}

std::string modulePathOf(std::string_view nameSpace) {
  std::vector<std::string_view> parts = split(nameSpace, "/");
  for (size_t i = parts.size() < 2 ? 0 : parts.size() - 1; i-- > 0;) {
    size_t colon = parts[i].find(": ");
    if (colon != std::string_view::npos && !parts[i].substr(0, colon).starts_with("_empty_nn_module_stack"))
      return std::string(parts[i].substr(0, colon));
  }
  return "";
}

/// `/layer1/layer1.0/conv1/Conv` is conv1 of layer1.0: a component that repeats the path so far replaces it.
std::string modulePathOfLegacyName(std::string_view name) {
  std::string path;
  if (!name.starts_with("/"))
    return path;
  std::vector<std::string_view> parts = split(name.substr(1), "/");
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    size_t lastDot = path.rfind('.');
    std::string last = lastDot == std::string::npos ? path : path.substr(lastDot + 1);
    if (!last.empty() && parts[i].starts_with(last + "."))
      path = path.substr(0, path.size() - last.size()) + std::string(parts[i]);
    else
      path += (path.empty() ? "" : ".") + std::string(parts[i]);
  }
  return path;
}

/// Takes the innermost frame outside torch itself: `File "a/b.py", line 12, in forward`.
void readStackTrace(std::string_view trace, Node &node) {
  for (std::string_view frame : split(trace, "File \"")) {
    size_t quote = frame.find("\", line ");
    if (quote == std::string_view::npos)
      continue;
    std::string_view file = frame.substr(0, quote), rest = frame.substr(quote + 8);
    bool insideTorch = file.find("/torch/") != std::string_view::npos || file.starts_with("torch/");
    int64_t line = 0;
    std::from_chars(rest.data(), rest.data() + rest.size(), line);
    if (insideTorch && !node.sourceFile.empty())
      continue;
    node.sourceFile = std::string(file.substr(file.rfind('/') + 1));
    node.sourceLine = line;
  }
}

} // namespace

void readProvenance(const Metadata &metadata, Node &node) {
  std::string_view nameSpace = lookup(metadata, "namespace");
  // The last part of `: Net/block: nets.Block/detach: aten.detach.default`.
  if (size_t colon = nameSpace.rfind(": "); colon != std::string_view::npos)
    node.torchOp = nameSpace.substr(colon + 2);
  node.modulePath = nameSpace.empty() ? modulePathOfLegacyName(node.name) : modulePathOf(nameSpace);
  readStackTrace(lookup(metadata, "pkg.torch.onnx.stack_trace"), node);
  for (std::string *text : {&node.torchOp, &node.modulePath, &node.sourceFile})
    *text = format::printable(std::move(*text));
}

std::vector<SignatureEntry> readSignature(std::string_view text) {
  std::vector<SignatureEntry> entries;
  for (std::string_view line : split(text, "\n")) {
    size_t colon = line.find(": ");
    if (colon == std::string_view::npos)
      continue;
    SignatureEntry entry;
    entry.name = line.substr(0, colon);
    std::string_view rest = line.substr(colon + 2);
    entry.kind = rest.substr(0, rest.find(' '));
    size_t target = rest.find("target='");
    if (target != std::string_view::npos) {
      rest.remove_prefix(target + 8);
      entry.target = rest.substr(0, rest.find('\''));
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

} // namespace par::onnx
