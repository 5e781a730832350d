// One tensor under several names: of a tied parameter, and of the matrix that an exporter transposed.
#include "par/weights/Weights.h"

#include "par/files/Rectangles.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <cstring>

namespace par::core {

using format::Tensor;

const StoredArray *WeightStore::find(const Tensor &tensor) const {
  const StoredArray *array = find(tensor.name);
  for (size_t i = 0; !array && i < tensor.aliases.size(); ++i)
    array = find(tensor.aliases[i]);
  return array;
}

void Piece::check() const {
  if (saved)
    saved->check();
}

std::vector<std::byte> assemble(const StoredArray &array) {
  uint64_t elementBytes = format::sizeOf(array.type);
  std::vector<std::byte> all(static_cast<uint64_t>(elementCount(array.shape)) * elementBytes);
  for (const Piece &piece : array.pieces) {
    piece.check();
    std::vector<int64_t> origin(piece.size.size(), 0);
    copyBlock(all.data(), array.shape, piece.start, piece.data, piece.size, origin, piece.size, elementBytes);
  }
  return all;
}

/// A dense row-major matrix of `rows` x `columns`, transposed.
static std::vector<std::byte> transpose(const std::byte *from, int64_t rows, int64_t columns, uint64_t bytes) {
  std::vector<std::byte> to(static_cast<uint64_t>(rows * columns) * bytes);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      std::memcpy(to.data() + static_cast<uint64_t>(column * rows + row) * bytes,
                  from + static_cast<uint64_t>(row * columns + column) * bytes, bytes);
  return to;
}

/// One piece, which need not be summed before it is read.
static bool isWhole(const StoredArray &array) {
  return array.pieces.size() == 1 && array.pieces[0].size == array.shape && !array.pieces[0].saved;
}

void WeightStore::transposeFor(const format::Manifest &manifest) {
  for (const Tensor &tensor : manifest.tensors) {
    const StoredArray *array = find(tensor);
    for (size_t i = 0; !array && i < tensor.transposed.size(); ++i) {
      array = find(tensor.transposed[i]);
      std::vector<int64_t> shape = array ? array->stored.value_or(array->shape) : std::vector<int64_t>();
      if (shape.size() != 2)
        continue;
      std::vector<std::byte> assembled = isWhole(*array) ? std::vector<std::byte>() : assemble(*array);
      const std::byte *from = assembled.empty() ? array->pieces[0].data : assembled.data();
      auto bytes =
          std::make_shared<std::vector<std::byte>>(transpose(from, shape[0], shape[1], format::sizeOf(array->type)));
      std::swap(shape[0], shape[1]);
      arrays[tensor.name] = {array->type, shape, {Piece{{0, 0}, shape, bytes->data()}}};
      made.push_back(std::move(bytes));
    }
  }
}

/// Whether both have one type and the same elements in the same order. Whole arrays are compared in place.
static bool isSame(const StoredArray &a, const StoredArray &b) {
  if (a.type != b.type || elementCount(a.shape) != elementCount(b.shape))
    return false;
  if (!a.pieces.empty() && !b.pieces.empty() && a.pieces[0].data == b.pieces[0].data)
    return true; // a save says that it holds one array under both names
  if (!isWhole(a) || !isWhole(b))
    return assemble(a) == assemble(b);
  uint64_t bytes = static_cast<uint64_t>(elementCount(a.shape)) * format::sizeOf(a.type);
  return std::memcmp(a.pieces[0].data, b.pieces[0].data, bytes) == 0;
}

/// `x.weight` where `model.x.weight` is there too: exports write both, and comparing them would read every file whole.
static bool isShort(const std::string &name, const std::vector<std::string> &names, const WeightStore &store) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string &other) { return other.ends_with("." + name) && store.find(other); });
}

/// The names of one list under which the store holds something are all of one array.
static void checkSame(const WeightStore &store, const std::vector<std::string> &names) {
  const std::string *first = nullptr;
  for (const std::string &name : names) {
    const StoredArray *array = store.find(name);
    if (!array || isShort(name, names, store))
      continue;
    if (first && !isSame(*store.find(*first), *array))
      throw Failure::at(store.place, Message::tiedDiffer, *first, name);
    first = first ? first : &name;
  }
}

void checkNames(const format::Manifest &manifest, const WeightStore &store) {
  for (const Tensor &tensor : manifest.tensors) {
    std::vector<std::string> names{tensor.name};
    names.insert(names.end(), tensor.aliases.begin(), tensor.aliases.end());
    if (!tensor.aliases.empty())
      checkSame(store, names);
    checkSame(store, tensor.transposed);
  }
}

} // namespace par::core
