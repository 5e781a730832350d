// How a tensor lies on ranks.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <vector>

namespace par::format {

/// A rectangle of the global tensor and the ranks that hold it, the first of which saves it. A padded shard's
/// rectangle is smaller than the local shape (and may be empty).
struct Rectangle {
  std::vector<int64_t> start, size;
  std::vector<uint32_t> ranks;
  bool operator==(const Rectangle &) const = default;
};

/// Rectangles, read like a vector. Copies are one list until one of them is written: thousands of tensors lie in a
/// handful of ways, each of which has a rectangle for every rank.
class Rectangles {
public:
  using List = std::vector<Rectangle>;

  Rectangles() = default;
  Rectangles(List list) : shared(std::make_shared<List>(std::move(list))) {}
  Rectangles(std::initializer_list<Rectangle> list) : Rectangles(List(list)) {}

  List::const_iterator begin() const { return list().begin(); }
  List::const_iterator end() const { return list().end(); }
  size_t size() const { return list().size(); }
  bool empty() const { return list().empty(); }
  const Rectangle &operator[](size_t part) const { return list()[part]; }
  bool operator==(const Rectangles &other) const { return shared == other.shared || list() == other.list(); }
  /// The same for copies of one list.
  const void *identity() const { return shared.get(); }

  Rectangle &operator[](size_t part) { return own()[part]; }
  Rectangle &back() { return own().back(); }
  void push_back(Rectangle part) { own().push_back(std::move(part)); }
  void clear() { shared.reset(); }

private:
  const List &list() const {
    static const List none;
    return shared ? *shared : none;
  }
  /// A list that no copy shares.
  List &own() {
    if (!shared || shared.use_count() > 1)
      shared = std::make_shared<List>(list());
    return *shared;
  }

  std::shared_ptr<List> shared; ///< null: none
};

/// How a global shape lies on ranks. Ranks in no rectangle hold nothing of it.
struct Layout {
  /// Global shape, and the local one of every rank that holds a part.
  std::vector<int64_t> shape, local;
  Rectangles parts;
  bool operator==(const Layout &) const = default;
};

} // namespace par::format
