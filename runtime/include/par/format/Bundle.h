// The folder that is run.
#pragma once

#include "par/format/Manifest.h"

namespace par::format {

/// A file that the format does not look into: kernels-x86.so, plan.yaml, report.html, ...
struct Blob {
  std::string name;
  std::string bytes;
};

/// A bundle in memory.
struct Bundle {
  Manifest manifest;
  /// Index = role.
  std::vector<Program> programs;
  /// Lines that instructions' `provenance` indexes: ONNX node, module path, the choice that forced it.
  std::vector<std::string> provenance;
  /// Written beside; readBundle checks their hashes and leaves this empty.
  std::vector<Blob> blobs;
};

/// Writes `folder`: beside it first, the manifest last, read back, then renamed over it. Fills in manifest.files, roles
/// and bundleHash from the content. An existing folder is replaced if checkReplaceable allows it. Returns the manifest
/// as written.
Expected<Manifest> writeBundle(const std::string &folder, const Bundle &bundle);
/// Whether writeBundle may write there: nothing is there, or an empty folder, or one that holds nothing but the files
/// of a bundle, each with the size and hash that its manifest lists. A folder with other files is never removed.
Status checkReplaceable(const std::string &folder);
/// Reads manifest, programs and provenance, and compares size and hash of every file.
Expected<Bundle> readBundle(const std::string &folder);
/// As readBundle, without reading or hashing files other than manifest and programs.
Expected<Bundle> readPrograms(const std::string &folder);

/// Whether the manifest lists a file of this name.
bool lists(const Manifest &manifest, std::string_view name);
/// Whether the folder's file of this name has the listed size and hash.
bool isAsListed(const std::string &folder, const File &file);
/// The bytes of a file of the bundle, read once, if size and hash are those that the manifest lists; the error is a
/// reason without the name. Kernels are loaded only from these bytes: a file that is not listed, or that was exchanged
/// after readBundle, is not loaded.
Expected<std::string> readListed(const std::string &folder, const Manifest &manifest, std::string_view name);

} // namespace par::format
