// V1: builtins touch the bytes of the kernel table. A builtin takes its shapes from immediates, so its operands and the
// bytes that the kernel table claims must follow from them; otherwise the proofs about memory are about other bytes.
// Names that are in no table are left to the loader.
#include "par/kernels/Builtins.h"
#include "verify/Model.h"

using namespace par;
using namespace par::format;

/// The operand's access in the words of the program; an updated operand may be called rw or acc.
static bool sameAccess(kernels::Access wanted, Access given) {
  switch (wanted) {
  case kernels::Access::Read:
    return given == Access::Read;
  case kernels::Access::Write:
    return given == Access::Write;
  default:
    return given == Access::ReadWrite || given == Access::Accumulate;
  }
}

constexpr uint64_t maxElements = uint64_t(1) << 47;

/// Elements of "rows x cols" with these immediates; nullopt when one of them is bound to the mesh only at
/// load, or if there are more than 2^47.
static std::optional<uint64_t> elementsOf(const kernels::BuiltinKernel &builtin, std::string_view shape,
                                          const std::vector<Imm> &imms) {
  uint64_t n = 1;
  while (!shape.empty()) {
    std::string_view name = shape.substr(0, shape.find(" x "));
    shape.remove_prefix(std::min(shape.size(), name.size() + 3));
    for (size_t i = 0; i < builtin.immediates.size(); ++i) {
      if (builtin.immediates[i].name != name)
        continue;
      if (!imms[i].axis.empty() || imms[i].value < 0)
        return std::nullopt;
      uint64_t size = uint64_t(imms[i].value);
      if (size && n > maxElements / size)
        return std::nullopt;
      n *= size;
      break;
    }
  }
  return n;
}

/// The operands that the builtin has with these immediates; `wrong` says why that cannot be told.
static std::vector<kernels::BuiltinOperand> presentOperands(const kernels::BuiltinKernel &builtin,
                                                            const std::vector<Imm> &imms,
                                                            std::optional<std::string> &wrong) {
  std::vector<kernels::BuiltinOperand> present;
  for (const kernels::BuiltinOperand &operand : builtin.operands) {
    if (operand.onlyIf >= 0 && !imms[size_t(operand.onlyIf)].axis.empty())
      wrong = "whether builtin " + std::string(builtin.name) + " has '" + std::string(operand.name) +
              "' depends on the rank";
    if (operand.onlyIf < 0 || imms[size_t(operand.onlyIf)].value != 0)
      present.push_back(operand);
  }
  return present;
}

/// Checks by the builtin's own rule whether its sizes fit each other.
static std::optional<std::string> checkSizes(const kernels::BuiltinKernel &builtin, const std::vector<Imm> &imms) {
  std::vector<uint64_t> values;
  std::string said;
  for (size_t i = 0; i < imms.size(); ++i) {
    values.push_back(uint64_t(imms[i].value));
    if (!builtin.immediates[i].real)
      said +=
          (said.empty() ? "" : ", ") + std::string(builtin.immediates[i].name) + " " + std::to_string(imms[i].value);
  }
  if (!builtin.fits || builtin.fits(values))
    return std::nullopt;
  return "the sizes of builtin " + std::string(builtin.name) + " do not fit each other: " + said;
}

std::optional<std::string> par::verify::checkBuiltin(const Program &program, const Instruction &it) {
  const Kernel &kernel = program.kernels[it.kernel];
  const kernels::BuiltinKernel *builtin = kernel.builtin ? kernels::findBuiltin(kernel.symbol) : nullptr;
  if (!builtin)
    return std::nullopt;
  auto miscounted = [&](const char *what, size_t wanted, size_t given) {
    return "builtin " + kernel.symbol + " takes " + std::to_string(wanted) + " " + what + ", found " +
           std::to_string(given);
  };
  if (builtin->immediates.size() != it.imms.size())
    return miscounted("immediates", builtin->immediates.size(), it.imms.size());
  std::optional<std::string> wrong;
  std::vector<kernels::BuiltinOperand> present = presentOperands(*builtin, it.imms, wrong);
  if (wrong)
    return wrong;
  if (present.size() != it.operands.size())
    return miscounted("operands with these immediates", present.size(), it.operands.size());
  size_t place = 0;
  for (const kernels::BuiltinOperand &wanted : present) {
    const KernelOperand &given = kernel.operands[place];
    const Buffer &buffer = program.buffers[it.operands[place].buffer];
    std::string operand =
        "operand " + std::to_string(place++) + " ('" + std::string(wanted.name) + "') of builtin " + kernel.symbol;
    if (!sameAccess(wanted.access, given.access))
      return operand + " is not '" + std::string(toString(given.access)) + "'";
    if (toString(buffer.type) != wanted.type)
      return operand + " is " + std::string(wanted.type) + ", '" + buffer.name + "' is " + describe(buffer);
    std::optional<uint64_t> n = elementsOf(*builtin, wanted.shape, it.imms);
    if (!n || *n * sizeOf(buffer.type) != given.bytes)
      return operand + " is " + (n ? std::to_string(*n) : "an unknown number of") + " elements by its immediates, " +
             std::to_string(given.bytes) + " bytes by the kernel table";
  }
  return checkSizes(*builtin, it.imms);
}
