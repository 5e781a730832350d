// The error of a sweep, with the instructions that prove it.
#include "AccessSweep.h"

using namespace par;
using namespace par::format;
using namespace par::verify;

/// "'x' of microbatch 3".
std::string AccessSweep::value(uint32_t root, int64_t index) const {
  const Buffer &buffer = program.buffers[root];
  std::string text = "'" + buffer.name + "'";
  if (buffer.index != Index::None)
    text += (buffer.index == Index::Mb ? " of microbatch " : " of version ") + std::to_string(index);
  return text;
}

Counterexample AccessSweep::stale(const Run &run, uint32_t n, const Placed &placed, uint32_t at) const {
  const Cell &cell = cells[at];
  std::string wanted = value(placed.access.root, indexOf(placed.access, run));
  Counterexample found{Property::Value, "", {line({&run, n})}};
  std::string bytes =
      "bytes [" + std::to_string(borders[at] % hostBase) + ", " + std::to_string(borders[at + 1] % hostBase) + ")";
  if (cell.root == noIndex && cell.definition == 0)
    found.message = "uninitialised: " + bytes + " are read as " + wanted + ", but nothing wrote them in this entry";
  else if (cell.root == noIndex)
    found.message = "undefined: " + bytes + " are read as " + wanted + ", but a collective left them undefined";
  else
    found.message = "overwritten: " + bytes + " are read as " + wanted + ", but hold " + value(cell.root, cell.index);
  if (cell.definition)
    found.notes.push_back(line(definitions[cell.definition]));
  return found;
}

Counterexample AccessSweep::otherVersion(const Run &run, uint32_t n, const Cell &cell) const {
  Counterexample found{Property::Value,
                       "version: a run of version " + std::to_string(run.version) + " reads parameter '" +
                           program.buffers[cell.root].tensor + "' after " + std::to_string(cell.updates) + " updates",
                       {line({&run, n})}};
  if (cell.updater && cell.definition)
    found.notes.push_back(line(definitions[cell.definition]));
  return found;
}

Counterexample AccessSweep::race(const Run &run, uint32_t n, const Placed &placed, const Definition &other) const {
  return {Property::Race,
          "race: two instructions touch " + value(placed.access.root, indexOf(placed.access, run)) +
              ", and no queue or event orders them",
          {line(other), line({&run, n})}};
}

Counterexample AccessSweep::early(const Run &run, uint32_t n, const Placed &placed, const Definition &reader) const {
  return {Property::Value,
          "early: " + value(placed.access.root, indexOf(placed.access, run)) +
              " is accumulated into after another run has read it",
          {line(reader), line({&run, n})}};
}
