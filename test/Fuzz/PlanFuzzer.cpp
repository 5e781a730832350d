// Any bytes given as a plan are read or refused with an error at a place; nothing else may happen. Patterns are
// matched against the names of a small transformer.
#include "InputFile.h"

#include "par/Phases/Import/Import.h"
#include "par/Plan/Names/NameTable.h"

#include "llvm/Support/raw_ostream.h"

using namespace par;

namespace {

NameTable makeNames() {
  NameTable names;
  names.model = "model.onnx";
  for (std::string layer : {"h.0", "h.1", "h.2", "h.3"}) {
    names.modules.push_back(layer);
    for (std::string part : {"attn", "mlp"}) {
      names.modules.push_back(layer + "." + part);
      names.parameters.push_back({layer + "." + part + ".weight", {}, {8, 16}, "f32", true, ""});
      names.nodes.push_back({layer + "." + part + "/MatMul", layer + "." + part, "MatMul", "model.py:3"});
    }
  }
  names.parameters.push_back({"wte.weight", {"lm_head.weight"}, {32, 8}, "f32", true, ""});
  names.inputs = {{"input_ids", {"batch", "seq"}, "i64"}, {"mask", {"batch", "seq"}, "bool"}};
  names.outputs = {{"logits", {"batch", "seq", "32"}, "f32"}};
  names.symbols = {"batch", "seq"};
  return names;
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  par::test::InputFile file(data, size);
  static const NameTable names = makeNames();
  PlanErrors errors;
  std::optional<Plan> plan = readPlan({file.path()}, {}, errors);
  if (!plan && !errors.any())
    std::abort();
  if (plan && completePlan(*plan, names, errors)) {
    NameTable tied = names;
    tieParameters(*plan, tied, errors);
    checkPlanNames(*plan, names, errors);
    importOptions(*plan, names, errors);
    resolveTrained(*plan, names, errors);
  }
  if (errors.toText().empty() == errors.any())
    std::abort();
  return 0;
}
