// From a bundle in memory to one on disk: its proof, and the folder.
#pragma once

#include "par/Compiler/CompileDiagnostic.h"
#include "par/verify/Verify.h"

#include "llvm/ADT/ArrayRef.h"

#include <optional>

namespace par {

/// Proves that no rank waits for ever and every buffer is live when read. Without a proof, an error at `folder`: a bug
/// of a phase, whose bundle must not be written.
std::optional<verify::Proof> proveBundle(const format::Bundle &bundle, const std::string &folder, DiagnosticSink sink);

/// The folder of the bundle of `model` where none was given: its name + ".par" in the working directory.
std::string bundleFolder(const std::string &model);

/// Whether a bundle may replace the contents of `folder`; reports an error if not. Called before the compilation.
bool mayWriteBundle(const std::string &folder, DiagnosticSink sink);

/// A bundle of the family of another one, in whose folder it is written; its name is that of its folder there.
struct MemberBundle {
  std::string name;
  format::Bundle *bundle;
};

/// Writes the bundle of the model at path `model` and the members, with a note of the model's data files, and with a
/// copy of its weights in each if `withWeights`. Returns false after an error.
bool writeBundle(format::Bundle &bundle, const std::string &model, const std::string &folder, DiagnosticSink sink,
                 bool withWeights = false, llvm::ArrayRef<MemberBundle> members = {});

} // namespace par
