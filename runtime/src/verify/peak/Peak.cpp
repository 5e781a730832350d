// V6: the arenas are as large as the manifest says and buffers need.
#include "format/Check.h"
#include "verify/Model.h"

using namespace par;
using namespace par::format;
using namespace par::verify;

std::optional<Counterexample> par::verify::checkPeak(const Bundle &bundle) {
  for (size_t role = 0; role < bundle.programs.size(); ++role) {
    const Program &program = bundle.programs[role];
    const Peak &peak = bundle.manifest.peak[role];
    if (peak.state != program.arena.state || peak.pool != program.arena.pool)
      return Counterexample{Property::Peak,
                            "program '" + program.name + "' has an arena of " + number(program.arena.state) + " + " +
                                number(program.arena.pool) + " bytes, the manifest says " + number(peak.state) + " + " +
                                number(peak.pool),
                            {}};
    if (peak.host != program.arena.host)
      return Counterexample{Property::Peak,
                            "program '" + program.name + "' has " + number(program.arena.host) +
                                " bytes in the host's memory, the manifest says " + number(peak.host),
                            {}};
    // Every extent is inside the arena by V1; the bound must also be reached, or it bounds nothing.
    uint64_t state = 0, pool = 0, host = 0;
    for (const Buffer &buffer : program.buffers)
      for (uint64_t at : buffer.at) {
        uint64_t &end = buffer.space == Space::Host ? host : at < program.arena.state ? state : pool;
        end = std::max(end, at + buffer.bytes());
      }
    auto up = [](uint64_t n) { return (n + 255) / 256 * 256; };
    if (up(host) < program.arena.host)
      return Counterexample{Property::Peak,
                            "program '" + program.name + "' has " + number(program.arena.host) +
                                " bytes in the host's memory, but its buffers end at " + number(host),
                            {}};
    if (up(state) < program.arena.state || up(std::max(pool, program.arena.state)) < program.arena.deviceBytes())
      return Counterexample{Property::Peak,
                            "program '" + program.name + "' has an arena of " + number(program.arena.state) + " + " +
                                number(program.arena.pool) + " bytes, but its buffers end at " + number(state) +
                                " and " + number(pool),
                            {}};
  }
  return std::nullopt;
}
