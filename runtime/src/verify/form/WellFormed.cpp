// V1: programs and manifest agree.
#include "format/Check.h"
#include "format/LayoutNumbers.h"
#include "par/format/Printable.h"
#include "verify/Model.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

using namespace par;
using namespace par::format;
using namespace par::verify;

namespace {
using Found = std::optional<Counterexample>;

/// Communications to one member of one communicator. The first speaks for all, but for how many elements it has: a rank
/// of each size of groups then speaks for the others.
struct Asked {
  std::map<size_t, uint32_t> ofSize; ///< a rank

  std::vector<uint32_t> some(const std::vector<uint32_t> &all) const {
    std::vector<uint32_t> some;
    for (auto [size, rank] : ofSize)
      some.push_back(rank);
    return some.empty() ? all : some;
  }
};

class WellFormed {
public:
  explicit WellFormed(const Bundle &bundle) : bundle(bundle), manifest(bundle.manifest) {}
  Found run();

private:
  Found entries();
  Found device(const Program &program);
  Found buffers(uint32_t role);
  Found state(const Program &program, uint32_t role, const Buffer &buffer);
  Found run(uint32_t role, const Run &run, bool isFirst);
  /// Whether the buffer, or the one that it is an alias of, holds a constant tensor.
  bool isConstant(const Program &program, uint32_t buffer) const;
  Found instruction(uint32_t role, const Run &run, uint32_t n);
  Found onGpu(uint32_t role, const Run &run, uint32_t n);
  Found unrun(const Program &program);
  Found communication(uint32_t role, const Run &run, uint32_t n);
  Found feed(uint32_t role, const Run &run, uint32_t n);
  Found fetch(uint32_t role, const Run &run, uint32_t n);
  Found complete();
  Found allFed();

  Counterexample fail(const std::string &message) const { return {Property::WellFormed, message, {}}; }
  Counterexample fail(uint32_t role, const Run &run, uint32_t n, const std::string &message) const {
    return {Property::WellFormed, message, {describeStep(bundle, ranks[role].front(), run, n)}};
  }

  const Bundle &bundle;
  const Manifest &manifest;
  std::vector<std::vector<uint32_t>> ranks;         ///< [role]
  std::vector<std::set<std::string>> held, fetched; ///< [role]: tensors, outputs
  std::map<std::array<uint32_t, 4>, Asked> met;     ///< by role, communicator, op and peer
  LayoutNumbers layouts;
  std::set<std::pair<uint32_t, uint32_t>> everywhere; ///< layouts of which all ranks of a role have a part
};
} // namespace

/// Buffers of integers have no sign; files have both kinds.
static bool sameBits(DType file, DType buffer) {
  switch (file) {
  case DType::U8:
    return buffer == DType::I8 || buffer == file;
  case DType::U16:
    return buffer == DType::I16;
  case DType::U32:
    return buffer == DType::I32;
  case DType::U64:
    return buffer == DType::I64;
  default:
    return file == buffer;
  }
}

static std::string shapeText(const std::vector<int64_t> &shape) { return listOf(shape, "x"); }

static uint64_t elements(const std::vector<int64_t> &shape) {
  uint64_t n = 1;
  for (int64_t dim : shape)
    n *= uint64_t(dim);
  return n;
}

/// An entry runs a block once for a microbatch, from the first one on: sums begin with it, and take each microbatch
/// once.
static Found inOrder(const Program &program, const Entry &entry) {
  std::map<std::pair<uint32_t, int64_t>, int64_t> last;
  for (const Run &run : entry.runs) {
    auto [before, first] = last.emplace(std::pair(run.block, run.version), run.microbatch);
    if (!first && run.microbatch <= before->second)
      return Counterexample{Property::WellFormed,
                            "program '" + program.name + "', entry '" + entry.name + "': block '" +
                                program.blocks[run.block].name + "' runs for microbatch " +
                                std::to_string(run.microbatch) + " after microbatch " + std::to_string(before->second),
                            {}};
    before->second = run.microbatch;
  }
  return std::nullopt;
}

/// All programs have the same entries in the same order.
Found WellFormed::entries() {
  const Program &first = bundle.programs[0];
  for (const Program &program : bundle.programs) {
    bool same = program.entries.size() == first.entries.size();
    for (size_t i = 0; same && i < first.entries.size(); ++i)
      same = program.entries[i].name == first.entries[i].name;
    if (!same)
      return fail("programs '" + first.name + "' and '" + program.name + "' have different entries");
    for (const Comm &comm : program.comms)
      if (!manifest.findCommunicator(comm.name))
        return fail("program '" + program.name + "': the manifest has no communicator '" + comm.name + "'");
  }
  return std::nullopt;
}

/// Generated kernels have a launch on a GPU and none on a CPU; a GPU's slots are aligned as its kernels
/// expect.
Found WellFormed::device(const Program &program) {
  bool gpu = manifest.device == "cuda";
  for (const Kernel &kernel : program.kernels)
    if (!kernel.builtin && kernel.launch.isGpu() != gpu)
      return fail("program '" + program.name + "', kernel '" + kernel.name +
                  "': " + (gpu ? "no launch" : "a launch on a GPU") + " in a bundle for " + manifest.device);
  for (const Buffer &buffer : program.buffers)
    for (uint64_t at : buffer.at)
      if (gpu && buffer.space == Space::Dev && at % gpuAlignment)
        return fail("program '" + program.name + "', buffer '" + buffer.name + "': offset " + number(at) +
                    " is not a multiple of " + number(gpuAlignment) + ", as those of a bundle for cuda are");
  return std::nullopt;
}

/// The first of the ranks that holds nothing.
static std::optional<uint32_t> rankWithoutPart(const Layout &layout, const std::vector<uint32_t> &ranks) {
  std::vector<bool> holds(ranks.empty() ? 0 : *std::ranges::max_element(ranks) + 1);
  for (const Rectangle &part : layout.parts)
    for (uint32_t rank : part.ranks)
      if (rank < holds.size())
        holds[rank] = true;
  auto lacks = [&](uint32_t rank) { return !holds[rank]; };
  auto found = std::ranges::find_if(ranks, lacks);
  return found == ranks.end() ? std::nullopt : std::optional(*found);
}

/// A state buffer holds the local part of its tensor on every rank of the role.
Found WellFormed::state(const Program &program, uint32_t role, const Buffer &buffer) {
  const Tensor *tensor = manifest.findTensor(buffer.tensor);
  std::string place = "program '" + program.name + "', buffer '" + buffer.name + "': ";
  if (!tensor)
    return fail(place + "the manifest has no tensor '" + buffer.tensor + "'");
  if (buffer.index == Index::Mb && tensor->kind != TensorKind::Counter)
    return fail(place + "it has a slot for each microbatch, and tensor '" + buffer.tensor +
                "' is not a counter: only counters have such slots");
  if (!held[role].insert(buffer.tensor).second)
    return fail(place + "another buffer holds tensor '" + buffer.tensor + "'");
  if (tensor->type != buffer.type || elements(tensor->layout.local) != elements(buffer.shape))
    return fail(place + "it is " + describe(buffer) + ", tensor '" + buffer.tensor + "' is " +
                std::string(toString(tensor->type)) + shapeText(tensor->layout.local));
  std::pair layout(layouts.of(tensor->layout), role);
  if (everywhere.count(layout))
    return std::nullopt;
  if (std::optional<uint32_t> rank = rankWithoutPart(tensor->layout, ranks[role]))
    return fail(place + "rank " + number(*rank) + " holds no part of tensor '" + buffer.tensor + "'");
  everywhere.insert(layout);
  return std::nullopt;
}

Found WellFormed::buffers(uint32_t role) {
  const Program &program = bundle.programs[role];
  for (const Buffer &buffer : program.buffers) {
    if (buffer.of != noIndex)
      continue;
    if (buffer.kind == BufferKind::State)
      if (Found found = state(program, role, buffer))
        return found;
    if (buffer.kind != BufferKind::Hyper)
      continue;
    bool known = false;
    for (const Hyper &hyper : manifest.hypers)
      known = known || hyper.name == buffer.tensor;
    bool one = buffer.index == Index::None || (buffer.index == Index::Ver && buffer.at.size() == manifest.calls);
    if (!known || buffer.type != DType::F32 || buffer.bytes() != 4 || !one)
      return fail("program '" + program.name + "', buffer '" + buffer.name + "': '" + buffer.tensor +
                  "' is no hyperparameter of the manifest, or the buffer is not one f32 (one a call, by version)");
  }
  return std::nullopt;
}

/// Each rank of the role is in the communicator; peers and roots are other members; all parts fit. A rank may leave out
/// a send without a receiver, but some group must have the member to which it goes.
Found WellFormed::communication(uint32_t role, const Run &run, uint32_t n) {
  const Program &program = bundle.programs[role];
  const Instruction &it = program.blocks[run.block].instructions[n];
  const Communicator &comm = *manifest.findCommunicator(program.comms[it.comm].name);
  uint32_t peer = it.op == Op::Coll ? it.root : it.peer[uint64_t(run.microbatch) % it.peer.size()];
  bool parted = it.op == Op::Coll &&
                (it.coll == CollKind::AllGather || it.coll == CollKind::ReduceScatter || it.coll == CollKind::AllToAll);
  bool known =
      std::ranges::any_of(comm.groups, [&](const std::vector<uint32_t> &group) { return peer < group.size(); });
  Asked &before = met[{role, it.comm, uint32_t(it.op), peer}];
  for (uint32_t rank : before.some(ranks[role])) {
    if (known && isSentToNobody(comm, it, run.microbatch, rank))
      continue; // its receiver finds nothing sent
    std::optional<Membership> own = membershipOf(comm, rank);
    if (!own)
      return fail(role, run, n, "rank " + number(rank) + " is not in communicator '" + comm.name + "'");
    size_t size = comm.groups[own->group].size();
    before.ofSize.try_emplace(size, rank);
    if (peer >= size || (it.op != Op::Coll && peer == own->member))
      return fail(
          role, run, n,
          "member " + number(peer) + " of communicator '" + comm.name + "' is " +
              (peer >= size ? "not among its " + number(size) + " members" : "rank " + number(rank) + " itself"));
    if (!parted)
      continue;
    for (const Operand &operand : it.operands) {
      bool part = it.operands.size() == 2 && ((it.coll == CollKind::AllGather && operand.access == Access::Read) ||
                                              (it.coll == CollKind::ReduceScatter && operand.access == Access::Write));
      const Buffer &buffer = program.buffers[operand.buffer];
      uint64_t count = buffer.bytes() / sizeOf(it.type);
      if (it.n > count / (part ? 1 : size))
        return fail(role, run, n,
                    number(size) + " parts of " + number(it.n) + " elements do not fit '" + buffer.name + "', " +
                        describe(buffer));
    }
  }
  return std::nullopt;
}

Found WellFormed::feed(uint32_t role, const Run &run, uint32_t n) {
  const Program &program = bundle.programs[role];
  const Instruction &it = program.blocks[run.block].instructions[n];
  const Buffer &buffer = program.buffers[it.operands[0].buffer];
  const Input *input = manifest.findInput(it.name);
  if (!input)
    return fail(role, run, n, "the manifest has no input '" + it.name + "'");
  const Layout &layout = layoutFor(*input, ranks[role].front());
  if (!sameBits(input->type, buffer.type) || elements(layout.local) != elements(buffer.shape))
    return fail(role, run, n,
                "'" + buffer.name + "' is " + describe(buffer) + ", input '" + it.name + "' is " +
                    std::string(toString(input->type)) + shapeText(layout.local));
  if (std::optional<uint32_t> rank = rankWithoutPart(layout, ranks[role]))
    return fail(role, run, n, "rank " + number(*rank) + " holds no part of input '" + it.name + "'");
  return std::nullopt;
}

Found WellFormed::fetch(uint32_t role, const Run &run, uint32_t n) {
  const Program &program = bundle.programs[role];
  const Instruction &it = program.blocks[run.block].instructions[n];
  const Buffer &buffer = program.buffers[it.operands[0].buffer];
  const Output *output = manifest.findOutput(it.name);
  if (!output)
    return fail(role, run, n, "the manifest has no output '" + it.name + "'");
  bool whole = output->layout.parts.empty();
  const std::vector<int64_t> &shape = whole ? output->shape : output->layout.local;
  if (!sameBits(output->type, buffer.type) || elements(shape) != elements(buffer.shape))
    return fail(role, run, n,
                "'" + buffer.name + "' is " + describe(buffer) + ", output '" + it.name + "' is " +
                    std::string(toString(output->type)) + shapeText(shape));
  if (std::optional<uint32_t> rank = whole ? std::nullopt : rankWithoutPart(output->layout, ranks[role]))
    return fail(role, run, n, "rank " + number(*rank) + " holds no part of output '" + it.name + "'");
  fetched[role].insert(it.name);
  return std::nullopt;
}

/// On a GPU kernels and matmuls read 16 bytes at once from an operand's begin, and only copies touch host memory.
Found WellFormed::onGpu(uint32_t role, const Run &run, uint32_t n) {
  const Program &program = bundle.programs[role];
  const Instruction &it = program.blocks[run.block].instructions[n];
  for (const Operand &operand : it.operands) {
    const Buffer &buffer = program.buffers[operand.buffer];
    if ((it.op == Op::Kernel || it.op == Op::Call) && buffer.of != noIndex && buffer.offset % gpuAccess)
      return fail(role, run, n,
                  "'" + buffer.name + "' begins " + number(buffer.offset) + " bytes into '" +
                      program.buffers[buffer.of].name + "', not at a multiple of the " + number(gpuAccess) +
                      " bytes of an access, as operands of kernels and calls of a bundle for cuda do");
    if (buffer.space == Space::Host && it.op != Op::Copy)
      return fail(role, run, n,
                  "'" + buffer.name + "' lies in the host's memory, which only copies touch in a bundle for cuda");
  }
  return std::nullopt;
}

bool WellFormed::isConstant(const Program &program, uint32_t buffer) const {
  const Buffer &self = program.buffers[buffer];
  const Buffer &owner = self.of == noIndex ? self : program.buffers[self.of];
  const Tensor *tensor = owner.kind == BufferKind::State ? manifest.findTensor(owner.tensor) : nullptr;
  return tensor && tensor->kind == TensorKind::Constant;
}

Found WellFormed::instruction(uint32_t role, const Run &run, uint32_t n) {
  const Program &program = bundle.programs[role];
  const Instruction &it = program.blocks[run.block].instructions[n];
  if (it.provenance >= 0 && size_t(it.provenance) >= bundle.provenance.size())
    return fail(role, run, n, "no line " + std::to_string(it.provenance) + " of provenance");
  for (const Imm &imm : it.imms)
    if (!imm.axis.empty() && !coordinateOf(manifest, ranks[role].front(), imm.axis))
      return fail(role, run, n, "the mesh has no axis '" + imm.axis + "'");
  for (const Operand &operand : it.operands)
    if (program.buffers[operand.buffer].kind == BufferKind::Hyper && operand.access != Access::Read)
      return fail(role, run, n, "'" + program.buffers[operand.buffer].name + "' is written only by the host");
    else if (operand.access != Access::Read && isConstant(program, operand.buffer))
      return fail(role, run, n,
                  "'" + program.buffers[operand.buffer].name + "' holds a constant, which nothing writes");
  if (manifest.device == "cuda")
    if (Found found = onGpu(role, run, n))
      return found;
  if (it.op == Op::Kernel)
    if (std::optional<std::string> wrong = checkBuiltin(program, it))
      return fail(role, run, n, *wrong);
  if (it.op == Op::Coll || it.op == Op::Send || it.op == Op::Recv)
    return communication(role, run, n);
  if (it.op == Op::Feed)
    return feed(role, run, n);
  if (it.op == Op::Fetch)
    return fetch(role, run, n);
  return std::nullopt;
}

/// Under a second microbatch a block is the same but for lists of peers.
Found WellFormed::run(uint32_t role, const Run &run, bool isFirst) {
  const Program &program = bundle.programs[role];
  if (uint64_t(run.microbatch) >= manifest.microbatches * manifest.calls)
    return fail("program '" + program.name + "', block '" + program.blocks[run.block].name + "' runs for microbatch " +
                std::to_string(run.microbatch) + " of " + number(manifest.microbatches * manifest.calls));
  if (uint64_t(run.version) >= manifest.calls)
    return fail("program '" + program.name + "', block '" + program.blocks[run.block].name + "' runs for version " +
                std::to_string(run.version) + " of " + number(manifest.calls));
  const std::vector<Instruction> &list = program.blocks[run.block].instructions;
  for (uint32_t n = 0; n < list.size(); ++n)
    if (Found found = isFirst || list[n].peer.size() > 1 ? instruction(role, run, n) : std::nullopt)
      return found;
  return std::nullopt;
}

/// Blocks that no entry runs are checked when the bundle is loaded, too.
Found WellFormed::unrun(const Program &program) {
  for (const Block &block : program.blocks)
    for (const Instruction &it : block.instructions) {
      std::string place = "program '" + program.name + "', block '" + block.name + "': ";
      if (it.provenance >= 0 && size_t(it.provenance) >= bundle.provenance.size())
        return fail(place + "no line " + std::to_string(it.provenance) + " of provenance");
      if (it.op == Op::Kernel)
        if (std::optional<std::string> wrong = checkBuiltin(program, it))
          return fail(place + *wrong);
    }
  return std::nullopt;
}

/// The roles whose ranks hold something, each with its first rank, in the order of the layout.
static std::vector<std::pair<uint32_t, uint32_t>> rolesOf(const Manifest &manifest, const Layout &layout) {
  std::vector<std::pair<uint32_t, uint32_t>> roles;
  std::vector<bool> seen(manifest.roles);
  for (const Rectangle &part : layout.parts)
    for (uint32_t rank : part.ranks)
      if (uint32_t role = manifest.ranks[rank].role; !seen[role]) {
        seen[role] = true;
        roles.push_back({role, rank});
      }
  return roles;
}

/// Ranks that hold a tensor or report an output have a buffer or a fetch of it.
Found WellFormed::complete() {
  std::map<uint32_t, std::vector<std::pair<uint32_t, uint32_t>>> known;
  for (const Tensor &tensor : manifest.tensors) {
    auto [roles, fresh] = known.try_emplace(layouts.of(tensor.layout));
    if (fresh)
      roles->second = rolesOf(manifest, tensor.layout);
    for (auto [role, rank] : roles->second)
      if (!held[role].count(tensor.name))
        return fail("rank " + number(rank) + " holds tensor '" + tensor.name + "', but its program '" +
                    bundle.programs[role].name + "' has no buffer for it");
  }
  for (const Output &output : manifest.outputs)
    for (uint32_t rank : output.ranks)
      if (!fetched[manifest.ranks[rank].role].count(output.name))
        return fail("rank " + number(rank) + " gives output '" + output.name + "', but its program '" +
                    bundle.programs[manifest.ranks[rank].role].name + "' never fetches it");
  return std::nullopt;
}

/// An entry that takes an input takes all microbatches of it: of one batch, or where it updates several times of all.
Found WellFormed::allFed() {
  std::map<std::pair<std::string, std::string>, std::set<int64_t>> fed;
  std::map<std::string, uint64_t> wanted;
  for (const Program &program : bundle.programs)
    for (const Entry &entry : program.entries)
      for (const Run &run : entry.runs) {
        uint64_t &count = wanted.try_emplace(entry.name, manifest.microbatches).first->second;
        if (run.version > 0)
          count = manifest.microbatches * manifest.calls;
        for (const Instruction &it : program.blocks[run.block].instructions)
          if (it.op == Op::Feed)
            fed[{entry.name, it.name}].insert(run.microbatch);
      }
  for (const auto &[place, microbatches] : fed)
    if (manifest.findInput(place.second)->microbatched && microbatches.size() != wanted[place.first])
      return fail("entry " + place.first + " takes " + number(microbatches.size()) + " of " +
                  number(wanted[place.first]) + " microbatches of input '" + place.second + "'");
  return std::nullopt;
}

Found WellFormed::run() {
  if (Status sound = checkManifest(manifest, "manifest.json"); !sound)
    return fail(sound.message());
  if (bundle.programs.size() != manifest.roles)
    return fail(number(bundle.programs.size()) + " programs for " + number(manifest.roles) + " roles");
  for (size_t role = 0; role < bundle.programs.size(); ++role)
    if (Status sound = checkProgram(bundle.programs[role], "role-" + number(role) + ".json"); !sound)
      return fail(sound.message());
  ranks.resize(manifest.roles);
  held.resize(manifest.roles);
  fetched.resize(manifest.roles);
  for (uint32_t rank = 0; rank < manifest.ranks.size(); ++rank)
    ranks[manifest.ranks[rank].role].push_back(rank);
  if (Found found = entries())
    return found;
  for (uint32_t role = 0; role < manifest.roles; ++role) {
    if (Found found = device(bundle.programs[role]))
      return found;
    if (Found found = buffers(role))
      return found;
    std::map<uint32_t, std::set<int64_t>> seen; // microbatches by block
    for (const Entry &entry : bundle.programs[role].entries)
      for (const Run &it : entry.runs)
        if (auto &under = seen[it.block]; under.insert(it.microbatch).second)
          if (Found found = run(role, it, under.size() == 1))
            return found;
    for (const Entry &entry : bundle.programs[role].entries)
      if (Found found = inOrder(bundle.programs[role], entry))
        return found;
    if (Found found = unrun(bundle.programs[role]))
      return found;
  }
  if (Found found = allFed())
    return found;
  return complete();
}

std::optional<Counterexample> par::verify::checkBundle(const Bundle &bundle) { return WellFormed(bundle).run(); }
