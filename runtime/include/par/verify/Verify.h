// Proves a bundle's communication and memory.
#pragma once

#include "par/format/Bundle.h"

namespace par::verify {

/// The proved properties: V1 well-formed, V2 matching, V3 progress, V4 no race, V5 value integrity, V6 peak.
enum class Property : uint8_t { WellFormed, Matching, Progress, Race, Value, Peak };
/// "V1" ... "V6".
std::string_view toString(Property property);

/// Counts of a proof.
struct Proof {
  uint64_t programs = 0, ranks = 0;
  /// Communications of all ranks in all entries, and groups among them.
  uint64_t communications = 0, groups = 0;
  /// Length of the longest chain of communications that wait for each other.
  uint64_t longestChain = 0;
  /// Bytes of each role's arena.
  std::vector<uint64_t> arenas;
  /// Whether the values of all programs were compared; bundles from before format 1.12 are not.
  bool together = false;
  /// Files were read, and their hashes compared.
  bool hashed = false;
};

/// A shortest witness: a headline and one line for each instruction concerned.
struct Counterexample {
  Property property = Property::WellFormed;
  std::string message;
  std::vector<std::string> notes;
};

/// Proof or counterexample.
struct Verdict {
  Proof proof;
  std::optional<Counterexample> counterexample;
  /// False: the folder is no bundle that could be read, so that nothing was proved or refuted.
  bool read = true;
  explicit operator bool() const { return !counterexample; }
};

struct Options {
  /// Check only this rank's program in V4 to V6 (V2 and V3 always check all ranks).
  std::optional<uint32_t> rank;
  /// Folder of the bundle, whose hashes readBundle has compared: its kernel files are checked, too. Empty for a bundle
  /// that is only in memory.
  std::string folder = {};
};

/// Proves an in-memory bundle.
Verdict verifyBundle(const format::Bundle &bundle, const Options &options = {});
/// Reads and proves a folder; hashes are part of V1.
Verdict verifyBundle(const std::string &folder, const Options &options = {});

/// The lines of par-verify: "NAME: proved: ..." or "NAME: error: ..." with the witness below.
std::string format(const Verdict &verdict, const std::string &name);
/// The same as one JSON object.
std::string formatJson(const Verdict &verdict, const std::string &name);

} // namespace par::verify
