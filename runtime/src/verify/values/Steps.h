// An instruction of a program as it is on each of its runs: found once for a block, however often entries run it.
#pragma once

#include "verify/Model.h"

#include <unordered_map>

namespace par::verify {

struct Step {
  /// The bytes of an operand that kernels, calls, copies, fills and feeds touch, and where the operand begins in a
  /// buffer that is no alias.
  struct Place {
    uint32_t root = 0, depth = 1;
    uint64_t offset = 0, bytes = 0;
    bool state = false; ///< the root is state
    bool kept = false;  ///< the operand's buffer is temporary and has no slots: it may be a sum of microbatches
  };
  std::vector<Place> operands;
  std::vector<format::Dependence> written; ///< of each operand that is written, in order
  uint64_t name = 0;                       ///< of a kernel or a call, apart from its operands
  uint32_t comm = format::noIndex;         ///< in the manifest
  bool updates = false;                    ///< writes a parameter, or a state of one
  bool moves = false;                      ///< writes state of more than one number
  bool optimizer = false;                  ///< a builtin that moves a parameter by its gradient
};

class Steps {
public:
  explicit Steps(const format::Bundle &bundle);

  /// The steps of a block.
  const std::vector<Step> &of(uint32_t role, uint32_t block);
  const format::Tensor *findTensor(const std::string &name) const;

private:
  Step stepOf(const format::Program &program, const format::Instruction &it) const;

  const format::Bundle &bundle;
  std::unordered_map<std::string_view, const format::Tensor *> tensors;
  std::unordered_map<std::string_view, uint32_t> comms;
  std::vector<std::vector<std::vector<Step>>> known; ///< [role][block]; empty: not yet
};

} // namespace par::verify
