#include "par/format/WrittenBuffers.h"

std::vector<bool> par::format::writtenBuffers(const Program &program) {
  std::vector<bool> written(program.buffers.size());
  for (const Block &block : program.blocks)
    for (const Instruction &instruction : block.instructions)
      for (const Operand &operand : instruction.operands)
        if (operand.access != Access::Read) {
          uint32_t of = program.buffers[operand.buffer].of;
          written[of == noIndex ? operand.buffer : of] = true;
        }
  return written;
}
