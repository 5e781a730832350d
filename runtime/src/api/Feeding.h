// Arrays that a caller feeds for the next run of an entry, and ahead for the run after it.
#pragma once

#include "api/Commands.h"
#include "api/Exchange.h"

#include <array>

namespace par::api {

class Feeding {
public:
  explicit Feeding(const format::Manifest &manifest);

  /// An array of the next run. Arrays that were fed ahead of the run before are forgotten. Throws Failure, and forgets
  /// all, if the input takes no such array.
  void feed(const std::string &input, core::FedArray array);
  /// An array of the run after the next one, for which it is then fed.
  void feedAhead(const std::string &input, core::FedArray array);
  /// Gives the arrays to the command that runs the entry with these inputs; those fed ahead too, if all are there.
  /// Throws Failure if arrays are missing or wrong: forget() is to follow, as after a command that fails.
  void moveTo(Command &command, const std::vector<size_t> &inputs);
  /// After the command: the arrays that were fed ahead are the fed ones.
  void goOn(const Command &command);
  void forget();

private:
  std::array<core::FedBatch, 2> batches; ///< by their places, see Ahead
  uint64_t place = 0;                    ///< of what is fed for the next run
  bool isCarried = false;                ///< what is fed there was fed ahead of the run before
  std::string toldTo;                    ///< the entry of that run, if its ranks were told; else ""
  uint64_t toldBefore = 0;               ///< batches that ranks were told ahead
};

} // namespace par::api
