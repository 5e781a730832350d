#include "par/Compiler/WriteBundle.h"

#include "par/Compiler/BundleWeights.h"
#include "par/Onnx/Model.h"
#include "par/format/DataFile.h"
#include "par/format/Family.h"
#include "par/format/PlainFile.h"

#include "llvm/Support/Path.h"

#include <set>

using namespace llvm;

namespace par {

static void report(StringRef file, StringRef message, DiagnosticSink sink) {
  CompileDiagnostic finding;
  finding.file = file.str();
  finding.message = message.str();
  sink(finding);
}

/// Messages of par/format begin with the folder, which is the diagnostic's file.
static void reportFolder(const std::string &folder, StringRef message, DiagnosticSink sink) {
  message.consume_front(folder + ": ");
  report(folder, message, sink);
}

std::optional<verify::Proof> proveBundle(const format::Bundle &bundle, const std::string &folder, DiagnosticSink sink) {
  verify::Verdict verdict = verify::verifyBundle(bundle);
  if (verdict)
    return verdict.proof;
  CompileDiagnostic finding;
  finding.file = folder;
  finding.message = verdict.counterexample->message;
  finding.notes = verdict.counterexample->notes;
  sink(finding);
  return std::nullopt;
}

std::string bundleFolder(const std::string &model) {
  return sys::path::stem(sys::path::filename(model)).str() + ".par";
}

bool mayWriteBundle(const std::string &folder, DiagnosticSink sink) {
  format::Status replaceable = format::checkReplaceable(folder);
  if (!replaceable)
    reportFolder(folder, replaceable.message(), sink);
  return bool(replaceable);
}

/// Lists in the manifest, with size and hash, each file of external data that tensors lie in. False if one cannot be
/// read; `reason` then says which and why.
static bool noteData(format::Manifest &manifest, const std::string &model, std::string &reason) {
  std::set<std::string> names;
  for (const format::Tensor &tensor : manifest.tensors)
    if (tensor.source && tensor.source->file != sys::path::filename(model))
      names.insert(tensor.source->file);
  for (const std::string &name : names) {
    std::string path = onnx::pathOfData(model, name);
    if (path.empty())
      continue; // compiled without it, with a warning
    auto file = format::PlainFile::open(path);
    auto hash = file ? format::hashDataFile(*file) : format::Expected<std::string>(file.error());
    if (!hash) {
      reason = "external data \"" + name + "\": " + hash.message();
      return false;
    }
    manifest.data.push_back({name, file->size(), *hash});
  }
  return true;
}

bool writeBundle(format::Bundle &bundle, const std::string &model, const std::string &folder, DiagnosticSink sink,
                 bool withWeights, ArrayRef<MemberBundle> members) {
  if (withWeights && !addWeights(bundle, model, sink))
    return false;
  for (const MemberBundle &member : members)
    if (withWeights && !addWeights(*member.bundle, model, sink))
      return false;
  std::string reason;
  bool noted = noteData(bundle.manifest, model, reason);
  std::vector<format::NamedBundle> named;
  for (const MemberBundle &member : members) {
    noted = noted && noteData(member.bundle->manifest, model, reason);
    named.push_back({member.name, member.bundle});
  }
  if (!noted) {
    report(model, "cannot be read again: " + reason, sink);
    return false;
  }
  format::Expected<format::Manifest> written = format::writeFamily(folder, bundle, named);
  if (!written)
    reportFolder(folder, written.message(), sink);
  return bool(written);
}

} // namespace par
