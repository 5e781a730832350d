// Blocks of dense row-major arrays, and their initial values.
#pragma once

#include "par/format/Manifest.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace par::core {

/// Copies the block of `size` at `fromStart` of an array of shape `fromShape` to `toStart` of one of `toShape`.
/// All have the same rank; elements have `elementBytes` bytes.
void copyBlock(std::byte *to, std::span<const int64_t> toShape, std::span<const int64_t> toStart, const std::byte *from,
               std::span<const int64_t> fromShape, std::span<const int64_t> fromStart, std::span<const int64_t> size,
               uint64_t elementBytes);

/// The same copy as runs of contiguous elements: visit(toElement, fromElement, elements).
void forEachRun(std::span<const int64_t> toShape, std::span<const int64_t> toStart, std::span<const int64_t> fromShape,
                std::span<const int64_t> fromStart, std::span<const int64_t> size,
                const std::function<void(int64_t, int64_t, int64_t)> &visit);

/// The common part of two blocks given by start and size; false if it is empty.
bool intersect(std::span<const int64_t> startA, std::span<const int64_t> sizeA, std::span<const int64_t> startB,
               std::span<const int64_t> sizeB, std::vector<int64_t> &start, std::vector<int64_t> &size);

/// Fills the local array (shape `layout.local`, this rank's `part` at its begin) by the rule: each element by its
/// global index, so that the sharding does not change values; padding is 0. `name` is the canonical name.
void initialize(std::byte *to, format::DType type, const format::Layout &layout, const format::Rectangle &part,
                const format::InitRule &rule, const std::string &name, uint64_t seed);

} // namespace par::core
