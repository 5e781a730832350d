// Reads, measures and shares the choice of each matmul's routine.
#include "par/cpu/Tuning.h"

#include "par/cpu/Machine.h"
#include "par/format/Family.h"
#include "par/format/PlainFile.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace par::cpu {

using nlohmann::json;

namespace {

/// "demo.par/" and "demo.par" both give demo.par.tuning.json, and so do the members in it: all of a family compute with
/// the same routines.
std::string tuningFile(const std::string &folder) { return format::mainFolderOf(folder) + ".tuning.json"; }

/// The known choices. A file that cannot be read, or is not of this format, counts as none: the matmuls are timed
/// again.
json readTuning(const std::string &path) {
  auto text = format::readPlainFile(path);
  json all = text ? json::parse(*text, nullptr, false) : json();
  return all.is_object() ? all : json::object();
}

/// Writes another file and renames it, so that no process reads half a file. A folder that cannot be written is no
/// error.
void writeTuning(const std::string &path, const json &all) {
  std::string part = path + "." + std::to_string(getpid());
  bool good = false;
  {
    std::ofstream out(part);
    out << all.dump(1) << '\n';
    out.flush();
    good = out.good();
  }
  std::error_code ignored;
  if (good)
    std::filesystem::rename(part, path, ignored);
  if (!good || ignored)
    std::filesystem::remove(part, ignored);
}

/// Whether the file, which is not trusted, has a valid choice for this matmul.
bool isChoice(const json &known, const std::string &key) {
  auto found = known.find(key);
  return found != known.end() && found->is_string() && parseChoice(*found);
}

/// Rank 0's choices for all programs, as JSON; measured ones are kept.
std::string decide(const format::Bundle &bundle, const std::string &folder, int threads) {
  std::string path = tuningFile(folder);
  json all = readTuning(path);
  // "pieces tried": a file without it is from before matmuls in pieces, and is measured again.
  std::string machine = "pieces tried, " + processorName() + ", " + isaLevel() + ", " + libraryVersion() + ", " +
                        std::to_string(threads) + " threads";
  json &known = all[machine];
  if (!known.is_object())
    known = json::object();
  json chosen = json::object();
  bool measured = false;
  MatmulTrials trials;
  for (const format::Program &program : bundle.programs)
    for (const format::Call &call : program.calls) {
      std::string key = shapeKey(call);
      if (!isChoice(known, key)) {
        known[key] = toString(trials.choose(call));
        measured |= worthTrying(call);
      }
      chosen[key] = known[key];
    }
  if (measured)
    writeTuning(path, all);
  return chosen.dump();
}

} // namespace

MatmulChoices shareMatmulTuning(const format::Bundle &bundle, const std::string &folder, comm::Control &control,
                                int threads, bool times) {
  MatmulChoices choices;
  if (!times)
    return choices;
  std::string text = control.rank() == 0 ? decide(bundle, folder, threads) : "";
  // named: items() refers to it
  const json agreed = json::parse(control.broadcast("tuning", text));
  for (const auto &[key, choice] : agreed.items())
    choices[key] = parseChoice(choice).value_or(MatmulChoice{});
  return choices;
}

} // namespace par::cpu
