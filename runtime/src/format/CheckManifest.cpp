// Ranks, groups and layouts agree.
#include "Check.h"
#include "LayoutNumbers.h"
#include "par/format/Printable.h"

#include <cstdio>
#include <set>
#include <unordered_set>

using namespace par::format;

namespace {
struct ManifestChecker {
  const Manifest &manifest;
  const std::string &where;
  mutable LayoutNumbers layouts = {};
  mutable std::set<uint32_t> checked = {}; ///< layouts: an error ends the check

  Error fail(const std::string &place, const std::string &message) const {
    return Error{printable(where + ": " + place + ": " + message)};
  }
  Status ranks() const;
  Status communicators() const;
  Status layout(const Layout &layout, const std::string &place) const;
  Status input(const Input &input) const;
  Status whole(const Layout &layout, bool microbatched, const std::vector<int64_t> &shape,
               const std::string &place) const;
  Status output(const Output &output) const;
  Status files() const;
  Status data() const;
  Status members(const std::vector<uint32_t> &ranks, const std::string &place) const;
  Status text(const std::string &name, const std::string &place) const;
  Status names() const;
  Status tensors() const;
  Status value(const Tensor &tensor, int64_t elements) const;
};
} // namespace

/// Every rank has a role and its own place in the mesh; every role has ranks.
Status ManifestChecker::ranks() const {
  if (manifest.ranks.empty() || manifest.ranks.size() > (1u << 20))
    return fail("ranks", number(int64_t(manifest.ranks.size())) + " ranks, expected 1 to 2^20");
  if (manifest.roles < 1 || manifest.roles > manifest.ranks.size() || manifest.peak.size() != manifest.roles)
    return fail("roles", number(manifest.roles) + " roles with " + number(int64_t(manifest.peak.size())) +
                             " peaks for " + number(int64_t(manifest.ranks.size())) + " ranks");
  std::set<std::vector<uint32_t>> places;
  std::vector<bool> used(manifest.roles);
  for (size_t i = 0; i < manifest.ranks.size(); ++i) {
    const Rank &rank = manifest.ranks[i];
    std::string place = "ranks[" + number(int64_t(i)) + "]";
    if (rank.role >= manifest.roles)
      return fail(place, "no role " + number(rank.role) + ", there are " + number(manifest.roles));
    used[rank.role] = true;
    if (rank.coordinate.size() != manifest.mesh.size())
      return fail(place, number(int64_t(rank.coordinate.size())) + " coordinates for " +
                             number(int64_t(manifest.mesh.size())) + " axes");
    for (size_t axis = 0; axis < manifest.mesh.size(); ++axis)
      if (rank.coordinate[axis] >= manifest.mesh[axis].size)
        return fail(place, "coordinate " + number(rank.coordinate[axis]) + " on axis '" + manifest.mesh[axis].name +
                               "' of size " + number(manifest.mesh[axis].size));
    if (!places.insert(rank.coordinate).second)
      return fail(place, "another rank has the same coordinates");
  }
  for (uint32_t role = 0; role < manifest.roles; ++role)
    if (!used[role])
      return fail("roles", "no rank has role " + number(role));
  return {};
}

Status ManifestChecker::members(const std::vector<uint32_t> &list, const std::string &place) const {
  std::vector<char> seen(manifest.ranks.size());
  if (list.empty())
    return fail(place, "no ranks");
  for (uint32_t rank : list) {
    if (rank >= manifest.ranks.size())
      return fail(place, "no rank " + number(rank) + ", there are " + number(int64_t(manifest.ranks.size())));
    if (seen[rank]++)
      return fail(place, "rank " + number(rank) + " stands there twice");
  }
  return {};
}

Status ManifestChecker::communicators() const {
  for (const Communicator &communicator : manifest.communicators) {
    std::vector<uint32_t> all;
    for (const std::vector<uint32_t> &group : communicator.groups) {
      if (group.empty())
        return fail("communicators." + communicator.name, "a group without ranks");
      all.insert(all.end(), group.begin(), group.end());
    }
    if (Status status = members(all, "communicators." + communicator.name); !status)
      return status;
  }
  return {};
}

/// Product of dims, -1 when it does not fit 47 bits.
static int64_t elementsOf(const std::vector<int64_t> &shape) {
  int64_t n = 1;
  for (int64_t dim : shape) {
    if (dim < 0 || (dim > 0 && n > (int64_t(1) << 47) / dim))
      return -1;
    n *= dim;
  }
  return n;
}

/// A rectangle that lies outside of the global shape, or is larger than the local one.
static std::optional<std::string> faultOfPlace(const Layout &layout, const Rectangle &part) {
  for (size_t i = 0; i < layout.shape.size(); ++i)
    if (part.start[i] < 0 || part.size[i] < 0 || part.size[i] > layout.local[i] || part.start[i] > layout.shape[i] ||
        part.size[i] > layout.shape[i] - part.start[i])
      return "in dim " + number(int64_t(i)) + ", [" + number(part.start[i]) + ", +" + number(part.size[i]) +
             ") is not in the global " + number(layout.shape[i]) + " or longer than the local " +
             number(layout.local[i]);
  return std::nullopt;
}

/// Rectangles lie inside the global shape and no larger than the local one, and each element is in one of them. Empty
/// if so.
static std::string faultOf(const Layout &layout) {
  size_t dims = layout.shape.size();
  if (layout.local.size() != dims)
    return "global and local shape have different numbers of dims";
  int64_t all = elementsOf(layout.shape), held = 0;
  if (all < 0 || elementsOf(layout.local) < 0)
    return "more than 2^47 elements";
  std::set<std::vector<int64_t>> starts;
  for (const Rectangle &part : layout.parts) {
    if (part.start.size() != dims || part.size.size() != dims)
      return "a rectangle has not " + number(int64_t(dims)) + " dims";
    if (auto wrong = faultOfPlace(layout, part))
      return *wrong;
    int64_t elements = elementsOf(part.size);
    if ((held += elements) > all)
      break; // said below
    // Shards stand at multiples of the local shape: so two with different starts do not overlap.
    for (size_t i = 0; elements > 0 && i < dims; ++i)
      if (part.start[i] % layout.local[i])
        return "in dim " + number(int64_t(i)) + ", " + number(part.start[i]) + " is not a multiple of the local " +
               number(layout.local[i]);
    if (elements > 0 && !starts.insert(part.start).second)
      return "two rectangles begin at one place";
  }
  if (held != all)
    return "its rectangles hold " + number(held) + " elements, the whole has " + number(all);
  return {};
}

/// A sound layout, of which no rank has two rectangles.
Status ManifestChecker::layout(const Layout &layout, const std::string &place) const {
  if (!checked.insert(layouts.of(layout)).second)
    return {};
  if (std::string fault = faultOf(layout); !fault.empty())
    return fail(place, fault);
  std::vector<uint32_t> holders;
  for (const Rectangle &part : layout.parts)
    holders.insert(holders.end(), part.ranks.begin(), part.ranks.end());
  return holders.empty() ? fail(place, "no rank holds it") : members(holders, place);
}

/// `shape` is that of all microbatches, of which the layout is one.
Status ManifestChecker::whole(const Layout &layout, bool microbatched, const std::vector<int64_t> &shape,
                              const std::string &place) const {
  std::vector<int64_t> all = layout.shape;
  bool fits =
      !microbatched || (!all.empty() && !__builtin_mul_overflow(all[0], int64_t(manifest.microbatches), &all[0]));
  if (!fits || all != shape)
    return fail(place, "its shape is not that of its layout in " +
                           number(microbatched ? int64_t(manifest.microbatches) : int64_t(1)) + " microbatches");
  return {};
}

/// Runs of limits fill a row some whole number of times.
static std::optional<std::string> faultOfLimits(const Input &input) {
  uint64_t elements = 1, period = 0;
  for (size_t dim = input.microbatched ? 1 : 0; dim < input.shape.size(); ++dim)
    elements *= uint64_t(input.shape[dim]);
  for (const Limits &run : input.limits) {
    if (run.count > elements - std::min(period, elements))
      return "limits of more than the " + number(int64_t(elements)) + " elements of a row";
    period += run.count;
  }
  if (period && elements % period != 0)
    return "limits of " + number(int64_t(period)) + " elements do not fill the " + number(int64_t(elements)) +
           " of a row";
  return std::nullopt;
}

/// An input's layout is that of one microbatch of it, and its rows are those of the batch.
Status ManifestChecker::input(const Input &input) const {
  std::string place = "inputs." + input.name;
  if (Status status = layout(input.layout, place); !status)
    return status;
  if (Status status = whole(input.layout, input.microbatched, input.shape, place); !status)
    return status;
  std::vector<uint32_t> holders;
  auto add = [&](const Layout &layout) {
    for (const Rectangle &part : layout.parts)
      holders.insert(holders.end(), part.ranks.begin(), part.ranks.end());
  };
  add(input.layout);
  for (const Layout &other : input.more) {
    if (Status status = layout(other, place); !status)
      return status;
    if (other.shape != input.layout.shape)
      return fail(place, "its layouts are of different shapes");
    add(other);
  }
  if (Status status = members(holders, place); !status)
    return status;
  if (input.microbatched && uint64_t(input.shape[0]) != manifest.batch)
    return fail(place, number(input.shape[0]) + " rows for a batch of " + number(int64_t(manifest.batch)));
  std::optional<std::string> wrong = faultOfLimits(input);
  return wrong ? Status(fail(place, *wrong)) : Status();
}

/// A result's layout is that of one microbatch of it.
Status ManifestChecker::output(const Output &output) const {
  std::string place = "outputs." + output.name;
  if (Status status = members(output.ranks, place); !status || output.layout.parts.empty())
    return status;
  if (Status status = layout(output.layout, place); !status)
    return status;
  if (Status status = whole(output.layout, output.microbatched, output.shape, place); !status)
    return status;
  int64_t dims = int64_t(output.shape.size());
  if (output.batchDim < 0 || output.batchDim >= std::max<int64_t>(1, dims))
    return fail(place, "its batch is dim " + number(output.batchDim) + " of " + number(dims));
  return {};
}

/// Files are only in this folder.
Status ManifestChecker::files() const {
  std::unordered_set<std::string> seen;
  for (const File &file : manifest.files) {
    if (file.name.empty() || file.name[0] == '.' || file.name.find_first_of("/\\") != std::string::npos)
      return fail("files", "'" + file.name + "' is not the plain name of a file");
    if (Status status = text(file.name, "files"); !status)
      return status;
    if (!seen.insert(file.name).second)
      return fail("files", "'" + file.name + "' stands there twice");
  }
  for (uint32_t role = 0; role < manifest.roles && !manifest.files.empty(); ++role)
    if (!seen.count("role-" + number(role) + ".json"))
      return fail("files", "role-" + number(role) + ".json is missing");
  return {};
}

/// The files of data are those in which tensors have their source.
Status ManifestChecker::data() const {
  std::unordered_set<std::string_view> sources, seen;
  for (const Tensor &tensor : manifest.tensors)
    if (tensor.source)
      sources.insert(tensor.source->file);
  for (const File &file : manifest.data) {
    if (!sources.count(file.name))
      return fail("data", "no tensor has its source in '" + file.name + "'");
    if (!seen.insert(file.name).second)
      return fail("data", "'" + file.name + "' stands there twice");
  }
  return {};
}

template <typename T>
static const std::string *repeated(const std::vector<T> &table) {
  std::unordered_set<std::string_view> seen;
  for (const T &element : table)
    if (!seen.insert(element.name).second)
      return &element.name;
  return nullptr;
}

/// A name without zeros, line ends and other characters that would change a message, a path or a line of hashes.
Status ManifestChecker::text(const std::string &name, const std::string &place) const {
  for (unsigned char c : name)
    if (isControl(c)) {
      char code[5];
      std::snprintf(code, sizeof code, "0x%02x", c);
      return fail(place, std::string("a name holds the control character ") + code);
    }
  return name.empty() ? Status(fail(place, "an empty name")) : Status();
}

Status ManifestChecker::names() const {
  std::vector<std::pair<std::string, const char *>> all{{manifest.model.name, "model"}};
  for (const Tensor &tensor : manifest.tensors) {
    all.push_back({tensor.name, "tensors"});
    for (const auto *others : {&tensor.aliases, &tensor.transposed})
      for (const std::string &other : *others)
        all.push_back({other, "tensors"});
    if (tensor.source)
      all.push_back({tensor.source->file, "tensors"});
    for (const Source &copy : tensor.copies)
      if (!copy.file.empty())
        all.push_back({copy.file, "tensors"});
  }
  for (const Input &input : manifest.inputs)
    all.push_back({input.name, "inputs"});
  for (const Output &output : manifest.outputs)
    all.push_back({output.name, "outputs"});
  for (const Hyper &hyper : manifest.hypers)
    all.push_back({hyper.name, "hypers"});
  for (const std::string &need : manifest.needs)
    all.push_back({need, "needs"});
  for (const auto &[name, place] : all)
    if (Status status = text(name, place); !status)
      return status;
  if (const std::string *name = repeated(manifest.tensors))
    return fail("tensors", "'" + *name + "' stands there twice");
  if (const std::string *name = repeated(manifest.inputs))
    return fail("inputs", "'" + *name + "' stands there twice");
  if (const std::string *name = repeated(manifest.outputs))
    return fail("outputs", "'" + *name + "' stands there twice");
  if (const std::string *name = repeated(manifest.hypers))
    return fail("hypers", "'" + *name + "' stands there twice");
  if (const std::string *name = repeated(manifest.communicators))
    return fail("communicators", "'" + *name + "' stands there twice");
  if (const std::string *name = repeated(manifest.mesh))
    return fail("mesh", "'" + *name + "' stands there twice");
  return {};
}

/// A value in the bundle lies inside the file of constants. Bundles in memory have no files.
Status ManifestChecker::value(const Tensor &tensor, int64_t elements) const {
  std::string place = "tensors." + tensor.name;
  if (!tensor.value)
    return tensor.kind == TensorKind::Constant ? fail(place, "a constant without a value") : Status();
  if (manifest.files.empty())
    return {};
  uint64_t size = 0;
  for (const File &file : manifest.files)
    if (file.name == constantsFile)
      size = file.size;
  uint64_t needed = uint64_t(elements) * sizeOf(tensor.type);
  if (*tensor.value > size || needed > size - *tensor.value)
    return fail(place, "its " + number(int64_t(needed)) + " bytes at " + number(int64_t(*tensor.value)) + " of " +
                           constantsFile + " end outside of the file, which has " + number(int64_t(size)));
  return {};
}

/// Place in the model's files of a tensor of so many elements.
static std::optional<std::string> faultOfSource(const Source &source, int64_t elements) {
  std::string folders = "/" + source.file + "/";
  if (source.file.empty() || source.file[0] == '/' || folders.find("/../") != std::string::npos)
    return "source '" + source.file + "' leaves the model's folder";
  if (source.length != uint64_t(elements) * sizeOf(source.type))
    return "a source of " + number(int64_t(source.length)) + " bytes for " + number(elements) + " elements of " +
           std::string(toString(source.type));
  return std::nullopt;
}

Status ManifestChecker::tensors() const {
  for (const Tensor &tensor : manifest.tensors) {
    std::string place = "tensors." + tensor.name;
    if (Status status = layout(tensor.layout, place); !status)
      return status;
    int64_t n = elementsOf(tensor.layout.shape);
    if (n < 0 || elementsOf(tensor.layout.local) < 0 || elementsOf(tensor.stored) != n)
      return fail(place, "stored and global shape have different numbers of elements, or more than 2^47");
    if (!tensor.of.empty() && !manifest.findTensor(tensor.of))
      return fail(place, "no tensor called '" + tensor.of + "'");
    for (const std::string &alias : tensor.aliases)
      if (manifest.findTensor(alias))
        return fail(place, "the alias '" + alias + "' is the name of a tensor");
    for (const std::string &name : tensor.transposed)
      if (tensor.stored.size() != 2 || manifest.findTensor(name))
        return fail(place, "'" + name + "' is no transposed matrix with a name of its own");
    if (auto wrong = tensor.source ? faultOfSource(*tensor.source, n) : std::nullopt)
      return fail(place, *wrong);
    for (const Source &copy : tensor.copies)
      if (auto wrong = copy.file.empty() ? std::nullopt : faultOfSource(copy, n))
        return fail(place, *wrong);
    bool turned =
        std::any_of(tensor.copies.begin(), tensor.copies.end(), [](const Source &copy) { return copy.transposed; });
    if (turned && tensor.stored.size() != 2)
      return fail(place, "a copy is transposed, and it is no matrix");
    if (Status status = value(tensor, n); !status)
      return status;
  }
  return {};
}

Status par::format::checkManifest(const Manifest &manifest, const std::string &where) {
  ManifestChecker checker{manifest, where};
  if (manifest.device != "cpu" && manifest.device != "cuda")
    return checker.fail("device", "unknown device '" + manifest.device + "': cpu or cuda");
  for (auto check : {&ManifestChecker::ranks, &ManifestChecker::communicators, &ManifestChecker::files,
                     &ManifestChecker::names, &ManifestChecker::tensors, &ManifestChecker::data})
    if (Status status = (checker.*check)(); !status)
      return status;
  for (const Input &input : manifest.inputs)
    if (Status status = checker.input(input); !status)
      return status;
  for (const Output &output : manifest.outputs)
    if (Status status = checker.output(output); !status)
      return status;
  return {};
}
