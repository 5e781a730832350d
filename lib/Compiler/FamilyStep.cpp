// A plan says a step in its sections about data, training and numbers; the others say where that is computed. Members
// of a family have the first ones alike, line by line, and their bundles have the same tensors.
#include "par/Compiler/FamilyStep.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <map>

using namespace llvm;

namespace par {

/// "mesh.dp=3" as "dp3", in letters that a folder's name has.
static std::string nameOfSetting(StringRef setting) {
  auto [key, value] = setting.split('=');
  std::string name = (key.rsplit('.').second.empty() ? key : key.rsplit('.').second).str() + value.str();
  for (char &c : name)
    if (!isAlnum(c) && c != '_' && c != '.')
      c = '-';
  return name;
}

std::optional<AlsoSettings> readAlso(StringRef text) {
  AlsoSettings also{text.str(), {}, ""};
  std::string part;
  int depth = 0;
  char quote = 0;
  for (char c : (text + ",").str()) {
    if (quote)
      quote = c == quote ? 0 : quote;
    else if (c == '"' || c == '\'')
      quote = c;
    else if (c == '{' || c == '[')
      ++depth;
    else if (c == '}' || c == ']')
      --depth;
    if (c != ',' || depth != 0 || quote) {
      part += c;
      continue;
    }
    if (size_t equals = part.find('='); equals == 0 || equals == std::string::npos)
      return std::nullopt;
    also.name += (also.settings.empty() ? "" : "-") + nameOfSetting(part);
    also.settings.push_back(std::exchange(part, ""));
  }
  if (!part.empty() || also.name.front() == '.' || also.name == "main")
    return std::nullopt;
  return also;
}

std::vector<std::string> settingsOfStep(const Plan &main) {
  std::vector<std::string> settings{"batch.microbatches=null", "ranks=null"};
  if (main.batch.size->has_value())
    settings.push_back("batch.size=" + std::to_string(**main.batch.size));
  if (main.batch.microbatchSize->has_value())
    settings.push_back("batch.microbatch_size=" + std::to_string(**main.batch.microbatchSize));
  return settings;
}

/// The lines of a section of the plan: that of the key, which is not indented, and the indented ones after it.
static std::string sectionOf(StringRef text, StringRef key) {
  std::string section;
  bool inside = false;
  for (StringRef line : split(text, '\n')) {
    if (!line.starts_with(" "))
      inside = line.take_until([](char c) { return c == ':'; }) == key;
    if (inside)
      section += line.rtrim().str() + "\n";
  }
  return section;
}

/// The first line in which two sections differ, of each.
static std::pair<std::string, std::string> firstDifference(const std::string &a, const std::string &b) {
  auto lineAt = [](StringRef &rest) {
    auto [line, more] = rest.split('\n');
    rest = more;
    return line.trim().str();
  };
  StringRef restA = a, restB = b;
  while (!restA.empty() || !restB.empty()) {
    std::string lineA = lineAt(restA), lineB = lineAt(restB);
    if (lineA != lineB)
      return {lineA, lineB};
  }
  return {};
}

/// Samples of one microbatch on all replicas.
static int64_t wholeMicrobatch(const Plan &plan) {
  return plan.batch.size->value_or(1) / std::max<int64_t>(plan.batch.microbatches->value_or(1), 1);
}

std::string describeOtherStep(const PlannedModel &main, const PlannedModel &member) {
  const Plan &a = main.plan.plan, &b = member.plan.plan;
  if (*a.batch.size != *b.batch.size)
    return formatv("a batch of {0}, the bundle has {1}", b.batch.size->value_or(1), a.batch.size->value_or(1));
  if (*a.batch.microbatchSize != *b.batch.microbatchSize)
    return formatv("microbatches of {0} on a rank, the bundle has them of {1}", b.batch.microbatchSize->value_or(1),
                   a.batch.microbatchSize->value_or(1));
  if (a.calls() != b.calls() || a.updatesBehind() != b.updatesBehind())
    return formatv("the schedule {0}, the bundle has {1}", *b.pipeline.schedule, *a.pipeline.schedule);
  if (*a.target.device != *b.target.device)
    return formatv("the device {0}, the bundle has {1}", *b.target.device, *a.target.device);
  if (*a.collectives.sums != *b.collectives.sums)
    return formatv("collectives.sums: {0}, the bundle has {1}", *b.collectives.sums, *a.collectives.sums);
  std::string textA = a.toText(/*origins=*/false), textB = b.toText(/*origins=*/false);
  for (StringRef key : {"dims", "inputs", "train", "precision", "carry", "attention", "batch_norm", "seed"})
    if (auto [of, other] = firstDifference(sectionOf(textA, key), sectionOf(textB, key)); of != other)
      return formatv("another {0}: \"{1}\", the bundle has \"{2}\"", key, other, of);
  bool normalises =
      any_of(main.graph->nodes, [](const onnx::Node &node) { return node.opType == "BatchNormalization"; });
  if (a.train && normalises && *a.batchNorm == "microbatch" && wholeMicrobatch(a) != wholeMicrobatch(b))
    return formatv("statistics of batch norm over the {0} samples of a microbatch on all replicas, the bundle has them "
                   "over {1}; say batch_norm: local",
                   wholeMicrobatch(b), wholeMicrobatch(a));
  return "";
}

/// A tensor in words: name, kind, type and stored shape.
static std::string describe(const format::Tensor &tensor) {
  return formatv("{0} {1}[{2}]", tensor.name, format::toString(tensor.type),
                 join(map_range(tensor.stored, [](int64_t size) { return std::to_string(size); }), ", "));
}

std::string describeOtherState(const format::Manifest &main, const format::Manifest &member) {
  auto isSaved = [](const format::Tensor &tensor) {
    return tensor.kind != format::TensorKind::Copy && tensor.kind != format::TensorKind::Constant;
  };
  auto lacks = [&](const format::Manifest &one, const format::Manifest &other) -> const format::Tensor * {
    for (const format::Tensor &tensor : one.tensors) {
      const format::Tensor *same = other.findTensor(tensor.name);
      if (isSaved(tensor) && (!same || describe(*same) != describe(tensor) || same->kind != tensor.kind))
        return &tensor;
    }
    return nullptr;
  };
  if (const format::Tensor *extra = lacks(member, main))
    return "the state " + describe(*extra) + ", which the bundle does not have";
  if (const format::Tensor *missing = lacks(main, member))
    return "no state " + describe(*missing) + ", which the bundle has";
  return "";
}

/// The stage, by its program's name, of the first rank that holds each parameter.
static std::map<std::string, std::string> stagesOf(const format::Bundle &bundle) {
  std::map<std::string, std::string> stages;
  for (const format::Tensor &tensor : bundle.manifest.tensors)
    if (tensor.kind == format::TensorKind::Parameter)
      for (const auto &part : tensor.layout.parts)
        if (!part.ranks.empty())
          stages.try_emplace(tensor.name, bundle.programs[bundle.manifest.ranks[part.ranks.front()].role].name);
  return stages;
}

std::string describeOtherStages(const Compiled &main, const Compiled &member) {
  const format::Manifest &manifest = main.bundle->manifest;
  bool hasNorm = any_of(manifest.outputs, [](const format::Output &output) { return output.name == "grad_norm"; });
  if (!hasNorm || *main.planned.plan.plan.collectives.sums != "microbatches")
    return "";
  std::map<std::string, std::string> here = stagesOf(*main.bundle), there = stagesOf(*member.bundle);
  for (const auto &[name, stage] : here)
    if (std::string other = there[name]; other != stage)
      return formatv(
          "{0} on stage {1}, the bundle has it on {2}; stages add their parts of the norm of gradients, which "
          "is the same in all bits only on the same ones: name pipeline.cuts in the plan, or say "
          "collectives.sums: ranks",
          name, StringRef(other).drop_front(), StringRef(stage).drop_front());
  return "";
}

} // namespace par
