// Reads arrays of safetensors, numpy and PyTorch by the readers of the room format. Copied are only compressed arrays,
// and tensors whose elements do not lie in a row.
#include "par/files/ArrayFile.h"

#include "par/format/Npy.h"
#include "par/format/SafetensorsHeader.h"
#include "par/format/TorchPickle.h"
#include "par/format/ZipFile.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <map>

namespace par::core {

namespace {

namespace fs = std::filesystem;

bool endsIn(const std::string &path, std::initializer_list<const char *> endings) {
  std::string ending = fs::path(path).extension().string();
  return std::any_of(endings.begin(), endings.end(), [&](const char *known) { return ending == known; });
}

std::string_view textOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char *>(bytes.data()), bytes.size()};
}

std::span<const std::byte> bytesOf(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

std::string shownName(const std::string &name) { return "\"" + format::excerpt(format::printable(name), 120) + "\""; }

/// Whether the elements lie as a file of arrays has them, the last dim first.
bool isDense(const format::TorchTensor &tensor) {
  int64_t step = 1;
  for (size_t d = tensor.shape.size(); d-- > 0;) {
    if (tensor.shape[d] > 1 && tensor.strides[d] != step)
      return false;
    step *= tensor.shape[d];
  }
  return true;
}

/// One more than the last element that is read; nullopt if that has no 62 bits.
std::optional<uint64_t> endOf(const format::TorchTensor &tensor) {
  auto last = static_cast<uint64_t>(tensor.offset);
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    uint64_t span = 0;
    if (tensor.shape[d] > 0 && (__builtin_mul_overflow(static_cast<uint64_t>(tensor.shape[d] - 1),
                                                       static_cast<uint64_t>(tensor.strides[d]), &span) ||
                                __builtin_add_overflow(last, span, &last) || last >> 61))
      return std::nullopt;
  }
  return last + 1;
}

/// Copies elements of `each` bytes in the order of the shape.
void gather(const format::TorchTensor &tensor, const std::byte *from, uint64_t each, std::byte *to) {
  std::vector<int64_t> index(tensor.shape.size(), 0);
  auto count = static_cast<uint64_t>(elementCount(tensor.shape));
  int64_t at = tensor.offset;
  for (uint64_t i = 0; i < count; ++i, to += each) {
    std::memcpy(to, from + static_cast<uint64_t>(at) * each, each);
    for (size_t d = index.size(); d-- > 0;) {
      if (tensor.shape[d] == 1) // its stride may be anything
        continue;
      at += tensor.strides[d];
      if (++index[d] < tensor.shape[d])
        break;
      at -= tensor.strides[d] * tensor.shape[d];
      index[d] = 0;
    }
  }
}

/// The members of an archive by their names below its one folder.
std::map<std::string_view, const format::ZipMember *> membersBelow(const std::vector<format::ZipMember> &members) {
  std::map<std::string_view, const format::ZipMember *> below;
  for (const format::ZipMember &member : members)
    if (size_t slash = member.name.find('/'); slash != std::string::npos)
      below.emplace(std::string_view(member.name).substr(slash + 1), &member);
  return below;
}

} // namespace

bool isArrayFile(const std::string &path) {
  return endsIn(path, {".safetensors", ".npy", ".npz", ".pt", ".pth", ".ckpt"});
}

bool isTorchFile(const std::string &path) { return endsIn(path, {".pt", ".pth", ".ckpt", ".bin"}); }

ArrayFile::ArrayFile(const std::string &path) : file(path) {
  if (endsIn(path, {".npy"}))
    readNpy(textOf(file.bytes()), fs::path(path).stem().string());
  else if (endsIn(path, {".npz"}))
    readNpz();
  else if (isTorchFile(path))
    readTorch();
  else
    readSafetensors();
}

const ArrayView *ArrayFile::find(const std::string &name) const {
  auto found = content.find(name);
  return found == content.end() ? nullptr : &found->second;
}

void ArrayFile::add(const std::string &name, ArrayView array) {
  if (!content.emplace(name, std::move(array)).second)
    throw Failure(path(), "holds two arrays " + shownName(name));
}

void ArrayFile::readSafetensors() {
  auto header = format::readSafetensors(textOf(file.bytes()));
  if (!header)
    throw Failure(path(), header.message());
  for (format::SafetensorsEntry &entry : header->arrays)
    add(entry.name, {entry.type, std::move(entry.shape), file.bytes().subspan(entry.begin, entry.end - entry.begin)});
}

void ArrayFile::readNpy(std::string_view bytes, const std::string &name) {
  auto header = format::readNpy(bytes);
  if (!header)
    throw Failure(path(), "array " + shownName(name) + " " + header.message());
  add(name, {header->type, std::move(header->shape), bytesOf(bytes.substr(header->begin))});
}

void ArrayFile::readNpz() {
  auto members = format::readZip(textOf(file.bytes()));
  if (!members)
    throw Failure(path(), members.message());
  for (const format::ZipMember &member : *members) {
    if (!member.name.ends_with(".npy"))
      continue;
    std::string name = member.name.substr(0, member.name.size() - 4);
    if (!member.compressed) {
      readNpy(member.bytes, name);
      continue;
    }
    auto unpacked = format::unpack(member);
    if (!unpacked)
      throw Failure(path(), "array " + shownName(name) + " " + unpacked.message());
    copies.push_back(std::move(*unpacked));
    readNpy(textOf({copies.back().get(), member.size}), name);
  }
}

void ArrayFile::readTorch() {
  std::string_view all = textOf(file.bytes());
  if (!all.starts_with("PK"))
    throw Failure(path(), "is no archive of PyTorch 1.6 or later; torch.save of what torch.load reads writes one");
  auto members = format::readZip(all);
  if (!members)
    throw Failure(path(), members.message());
  std::map<std::string_view, const format::ZipMember *> below = membersBelow(*members);
  auto find = [&](const std::string &name) {
    auto found = below.find(name);
    return found == below.end() ? nullptr : found->second;
  };
  const format::ZipMember *pickle = find("data.pkl"), *order = find("byteorder");
  if (!pickle || pickle->compressed)
    throw Failure(path(), "is an archive, but none of PyTorch's tensors: it has no data.pkl");
  if (order && order->bytes != "little")
    throw Failure(path(), "has its numbers in the byte order " + shownName(std::string(order->bytes)) +
                              "; those with the lowest byte first are read");
  uint64_t copied = 0;
  auto tensors = format::readTorchPickle(pickle->bytes);
  if (!tensors)
    throw Failure(path(), tensors.message());
  for (const format::TorchTensor &tensor : *tensors) {
    std::string name = tensor.name.empty() ? fs::path(path()).stem().string() : tensor.name;
    const format::ZipMember *storage = find("data/" + tensor.storage);
    auto bytes = format::bytesOfShape(tensor.shape, tensor.type);
    std::optional<uint64_t> end = endOf(tensor);
    uint64_t each = format::sizeOf(tensor.type), held = storage ? storage->bytes.size() / each : 0;
    // A tensor that repeats its elements (expand) may be of any size.
    if (!storage || storage->compressed || !bytes || !end || (*bytes > 0 && (*end > held || *bytes / each > held)))
      throw Failure(path(), "tensor " + shownName(name) + " does not lie in its storage of " + std::to_string(held) +
                                " elements");
    std::span<const std::byte> data = bytesOf(storage->bytes);
    if (*bytes == 0) {
      data = data.first(0);
    } else if (isDense(tensor)) {
      data = data.subspan(static_cast<uint64_t>(tensor.offset) * each, *bytes);
    } else if ((copied += *bytes) > all.size()) {
      throw Failure(path(), "holds tensors that share storages, of more bytes than it has");
    } else {
      copies.push_back(std::make_unique_for_overwrite<std::byte[]>(*bytes));
      gather(tensor, data.data(), each, copies.back().get());
      data = {copies.back().get(), *bytes};
    }
    add(name, {tensor.type, tensor.shape, data});
  }
}

} // namespace par::core
