// Any texts given as the manifest and the programs of a bundle are refused with an error, proved or refuted; nothing
// else may happen. No hash can be wrong: a bundle in memory has none. The input is the texts, separated by lines of
// `=`; the seeds are bundles that the runtime's tests build by hand.
#include "ToyBundles.h"

#include "par/verify/Verify.h"

#include <cstdlib>
#include <cstring>
#include <random>

using namespace par;

static constexpr std::string_view separator = "\n=\n";

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t maxSize);

namespace {

std::string textOf(const format::Bundle &bundle) {
  format::Manifest manifest = bundle.manifest;
  manifest.roles = uint32_t(bundle.programs.size());
  manifest.bundleHash = std::string(64, '0');
  if (manifest.model.sha256.empty())
    manifest.model.sha256 = std::string(64, '0');
  std::string text = format::writeManifest(manifest);
  for (const format::Program &program : bundle.programs)
    text.append(separator).append(format::writeProgram(program));
  return text;
}

const std::vector<std::string> &seeds() {
  static const std::vector<std::string> texts = {textOf(toy::groups()), textOf(toy::stack({}))};
  return texts;
}

} // namespace

/// Starts from one of the seeds if the input is too short, and in one of 16 calls.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t maxSize, unsigned seed) {
  std::mt19937 random(seed);
  const std::string &fresh = seeds()[random() % seeds().size()];
  if ((size < separator.size() + 2 || random() % 16 == 0) && fresh.size() <= maxSize) {
    std::memcpy(data, fresh.data(), fresh.size());
    size = fresh.size();
  }
  return LLVMFuzzerMutate(data, size, maxSize);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  std::string_view text(reinterpret_cast<const char *>(data), size);
  format::Bundle bundle;
  bool manifest = true;
  for (size_t at = 0; at <= text.size();) {
    size_t end = std::min(text.find(separator, at), text.size());
    std::string_view part = text.substr(at, end - at);
    at = end + separator.size();
    if (manifest) {
      auto read = format::parseManifest(part, "manifest.json");
      if (!read) {
        if (read.message().empty())
          std::abort();
        return 0;
      }
      bundle.manifest = std::move(*read);
      manifest = false;
      continue;
    }
    auto read = format::parseProgram(part, "role.json");
    if (!read)
      return 0;
    // A program that is written and read again is the same.
    std::string written = format::writeProgram(*read);
    auto again = format::parseProgram(written, "role.json");
    if (!again || format::writeProgram(*again) != written)
      std::abort();
    bundle.programs.push_back(std::move(*read));
  }
  bundle.provenance.assign(16, "a node");
  verify::Verdict verdict = verify::verifyBundle(bundle);
  if (!verdict && verdict.counterexample->message.empty())
    std::abort();
  return 0;
}
