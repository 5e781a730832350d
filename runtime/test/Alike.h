// Breaks what a program means, in one role or in all of them alike. Mutations.h breaks one rank's program against the
// others'. Here all sides of a communication, and all ranks of a role, are changed alike, so that only what the program
// means is wrong.
#pragma once

#include "Mutations.h"

namespace par::toy {

enum class Fault : uint8_t {
  DropReduction,  ///< a collective is left out
  DropRun,        ///< a run of an entry is left out
  DropSummand,    ///< an instruction that adds is left out
  DropTransfer,   ///< a send and its receive, or a copy, are left out
  DropStep,       ///< any kernel, call or fill is left out
  FewerReduced,   ///< a collective takes fewer elements
  FewerMoved,     ///< a transfer or copy takes fewer elements
  ReduceTwice,    ///< a collective again, with a tag of its own
  ReduceMore,     ///< an extra sum of a value over a communicator
  OtherGroups,    ///< a collective on another communicator of groups as large
  MemberOrder,    ///< members of groups in another order
  TradePeers,     ///< two sends, or two receives, of a block trade their values
  MoveReduction,  ///< a collective stands later or earlier in its block
  OtherReduction, ///< sum becomes max, min or prod
  OtherOperand,   ///< an operand is another buffer of its shape
  OneSlot,        ///< a buffer with a slot for each microbatch has one
  StepTwice,      ///< a kernel or call twice
  Coordinate,     ///< an immediate of a coordinate is a number, or another axis'
  CallNumbers,    ///< alpha, beta or the transposes of a call
  TradeTensors,   ///< two state buffers trade their tensors
  Rectangles,     ///< ranks of two rectangles of a layout change places
  OtherOutput,    ///< a fetch gives another output
};
inline constexpr size_t faultKinds = 22;
std::string_view toString(Fault fault);

/// Breaks all programs alike, or with `rank` only that rank's, which gets a program of its own. nullopt where there is
/// nothing to break in that way.
std::optional<format::Bundle> breakAlike(const format::Bundle &bundle, Fault fault, std::optional<uint32_t> rank,
                                         Random &random, std::string &what);

} // namespace par::toy
