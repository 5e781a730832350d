// V5 between ranks: corresponding values meet. A rank by itself cannot tell whether it reduces a value before or after
// it is complete. But ranks that hold the same tensors do the same work on different data: if their programs differ,
// the values that they give to a communication or as a result, and leave in state, must still be made by the same
// instructions.
#include "verify/Names.h"

#include <algorithm>
#include <bit>
#include <map>
#include <set>

using namespace par;
using namespace par::format;
using namespace par::verify;

uint64_t par::verify::mix(uint64_t hash, uint64_t n) {
  // The finaliser of splitmix64 (Steele, Lea, Flood 2014).
  hash = (hash ^ n) + 0x9e3779b97f4a7c15;
  hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9;
  hash = (hash ^ (hash >> 27)) * 0x94d049bb133111eb;
  return hash ^ (hash >> 31);
}

uint64_t par::verify::mix(uint64_t hash, std::string_view text) {
  return mix(hash, std::hash<std::string_view>()(text));
}

/// By a call's contents: another program may give another call the same name.
static uint64_t mixCall(uint64_t name, const Call &call) {
  for (const std::vector<int64_t> *numbers : {&call.batch, &call.strideA, &call.strideB, &call.strideC}) {
    name = mix(name, numbers->size());
    for (int64_t n : *numbers)
      name = mix(name, uint64_t(n));
  }
  for (uint64_t n : {uint64_t(call.type), uint64_t(call.typeC), uint64_t(call.m), uint64_t(call.n), uint64_t(call.k),
                     uint64_t(call.transA), uint64_t(call.transB), uint64_t(call.lda), uint64_t(call.ldb),
                     uint64_t(call.ldc), std::bit_cast<uint64_t>(call.alpha), std::bit_cast<uint64_t>(call.beta),
                     uint64_t(call.bias), uint64_t(call.epilogue)})
    name = mix(name, n);
  return mix(name, call.kind);
}

uint64_t par::verify::nameOf(const Program &program, const Instruction &it, const Run &run) {
  uint64_t name = mix(0, uint64_t(it.op));
  switch (it.op) {
  case Op::Kernel:
    name = mix(name, program.kernels[it.kernel].symbol);
    for (const Imm &imm : it.imms)
      name = mix(mix(mix(name, uint64_t(imm.value)), imm.axis), uint64_t(imm.scale));
    return name;
  case Op::Call:
    return mixCall(name, program.calls[it.call]);
  case Op::Coll:
  case Op::Send:
  case Op::Recv:
    return mix(mix(name, it.tag), uint64_t(run.microbatch));
  case Op::Fill:
    return mix(name, std::bit_cast<uint64_t>(it.value));
  case Op::Feed:
  case Op::Fetch:
    return mix(mix(name, it.name), uint64_t(run.microbatch));
  default:
    return name;
  }
}

namespace {
/// One rank's items of one entry, by kind. State is told apart by its tensor, fetched values by output and microbatch,
/// communication by its place: V2 has compared all else.
struct Given {
  std::map<std::string, uint64_t> state;
  std::map<std::pair<std::string, int64_t>, const Lineage::Item *> fetched;
  std::vector<const Lineage::Item *> communicated;

  Given(const Program &program, const std::vector<Lineage::Item> &items) {
    for (const Lineage::Item &item : items) {
      if (!item.run) {
        state[program.buffers[item.n].tensor] = item.name;
        continue;
      }
      const Instruction &it = program.blocks[item.run->block].instructions[item.n];
      if (it.op == Op::Fetch)
        fetched[{it.name, item.run->microbatch}] = &item;
      else
        communicated.push_back(&item);
    }
  }
};
} // namespace

/// The first communication, result or state in which the second rank differs from the first.
static std::optional<Counterexample> compare(const Bundle &bundle, uint32_t a, const Lineage &as, uint32_t b,
                                             const Lineage &bs) {
  const Program &first = bundle.programs[bundle.manifest.ranks[a].role];
  const Program &second = bundle.programs[bundle.manifest.ranks[b].role];
  std::string ranks = "ranks " + std::to_string(a) + " and " + std::to_string(b);
  auto differ = [&](const Lineage::Item &one, const Lineage::Item &other, const std::string &what) {
    return Counterexample{Property::Value,
                          "diverged: " + ranks + " hold the same tensors, but give " + what +
                              " that were made in different ways",
                          {describeStep(bundle, a, *one.run, one.n), describeStep(bundle, b, *other.run, other.n)}};
  };
  for (size_t entry = 0; entry < as.entries.size(); ++entry) {
    Given one(first, as.entries[entry]), other(second, bs.entries[entry]);
    for (size_t k = 0; k < std::min(one.communicated.size(), other.communicated.size()); ++k)
      if (one.communicated[k]->name != other.communicated[k]->name)
        return differ(*one.communicated[k], *other.communicated[k], "a communication values");
    for (const auto &[place, item] : one.fetched)
      if (auto it = other.fetched.find(place); it != other.fetched.end() && it->second->name != item->name)
        return differ(*item, *it->second, "output '" + place.first + "' values");
    for (const auto &[tensor, name] : one.state)
      if (other.state[tensor] != name)
        return Counterexample{Property::Value,
                              "diverged: " + ranks + " compute tensor '" + tensor + "' of entry " +
                                  first.entries[entry].name + " in different ways",
                              {}};
  }
  return std::nullopt;
}

static std::set<std::string> tensorsOf(const Bundle &bundle, uint32_t rank) {
  std::set<std::string> tensors;
  for (const Buffer &buffer : bundle.programs[bundle.manifest.ranks[rank].role].buffers)
    if (buffer.kind == BufferKind::State && buffer.of == noIndex)
      tensors.insert(buffer.tensor);
  return tensors;
}

std::optional<Counterexample> par::verify::checkReplicas(const Bundle &bundle, const std::vector<uint32_t> &ranks,
                                                         const std::vector<Lineage> &lineages) {
  std::vector<std::set<std::string>> held;
  for (uint32_t rank : ranks)
    held.push_back(tensorsOf(bundle, rank));
  std::set<std::string> common = held.empty() ? std::set<std::string>() : held.front();
  bool alike = true; // all hold the same
  for (const std::set<std::string> &tensors : held) {
    alike &= tensors == held.front();
    std::erase_if(common, [&](const std::string &tensor) { return !tensors.count(tensor); });
  }
  std::map<std::set<std::string>, size_t> seen;
  for (size_t i = 0; i < ranks.size(); ++i) {
    // Ranks without tensors, or with only those that all ranks have, are not replicas: stages without a parameter have
    // the loss scale.
    if (held[i].empty() || (!alike && held[i] == common))
      continue;
    auto [twin, alone] = seen.emplace(held[i], i);
    if (!alone)
      if (auto found = compare(bundle, ranks[twin->second], lineages[twin->second], ranks[i], lineages[i]))
        return found;
  }
  return std::nullopt;
}
