#include "Results.h"

#include "par/app/Job.h"
#include "par/files/Rectangles.h"

#include <algorithm>

namespace par::core {

std::vector<int64_t> resultShape(const format::Output &output, const format::Manifest &manifest, uint64_t samples) {
  auto batches = static_cast<int64_t>((samples + manifest.batch - 1) / manifest.batch);
  std::vector<int64_t> shape = output.shape;
  if (!output.microbatched) {
    if (batches != 1)
      shape.insert(shape.begin(), batches);
    return shape;
  }
  auto batch = static_cast<int64_t>(manifest.batch);
  shape[0] = shape[0] % batch ? shape[0] * batches : shape[0] / batch * static_cast<int64_t>(samples);
  std::rotate(shape.begin(), shape.begin() + 1, shape.begin() + 1 + output.batchDim);
  return shape;
}

namespace {

/// A run of elements of rows that have the batch first, in an array that has it in dim `dim`: the parts of it that stay
/// together. visit(to, from the run's begin, elements)
template <typename Visit>
void forEachMoved(std::span<const int64_t> whole, size_t dim, int64_t begin, int64_t count, Visit visit) {
  int64_t inner = elementCount(whole.subspan(dim + 1)), outer = elementCount(whole.first(dim)), each = inner * outer;
  for (int64_t done = 0; done < count;) {
    int64_t row = (begin + done) / each, place = (begin + done) % each;
    int64_t n = std::min(count - done, inner - place % inner);
    if (row < whole[dim])
      visit((place / inner * whole[dim] + row) * inner + place % inner, done, n);
    done += n;
  }
}

} // namespace

ResultWriter::ResultWriter(const format::Manifest &manifest, const std::string &path, uint64_t samples,
                           comm::Control &control)
    : manifest(manifest), path(path), control(control), part(path, control) {
  std::vector<ArrayHeader> headers;
  for (const format::Output &output : manifest.outputs) {
    arrays.push_back(headers.size());
    shapes.push_back(resultShape(output, manifest, samples));
    if (isOfPrefill(manifest, output.name))
      continue;
    headers.push_back({output.name, output.type, shapes.back()});
  }
  if (control.rank() == 0)
    SafetensorsWriter(part.name(), headers, true);
  control.barrier("results");
  writer = std::make_unique<SafetensorsWriter>(part.name(), headers, false);
  // Before all have opened it, none fails and removes it: the others would say that it is not there.
  control.barrier("results opened");
}

void forEachResultPart(const format::Manifest &manifest, const format::Output &output, const ResultPlace &place,
                       std::span<const std::byte> from, const WritePart &write) {
  if (output.layout.parts.empty()) {
    if (output.ranks.front() == place.rank)
      write(place.batch * from.size(), from);
    return;
  }
  const format::Layout &layout = output.layout;
  const format::Rectangle *part = format::rectangleOf(layout, place.rank);
  if (!part || part->ranks.front() != place.rank)
    return;
  uint64_t bytes = format::sizeOf(output.type);
  uint64_t before =
      output.microbatched ? place.batch * manifest.microbatches + static_cast<uint64_t>(place.microbatch) : place.batch;
  int64_t begin = static_cast<int64_t>(before) * elementCount(layout.shape), end = elementCount(place.shape);
  std::vector<int64_t> origin(part->size.size(), 0);
  auto writeElements = [&](int64_t to, int64_t source, int64_t count) {
    write(static_cast<uint64_t>(to) * bytes,
          from.subspan(static_cast<uint64_t>(source) * bytes, static_cast<uint64_t>(count) * bytes));
  };
  forEachRun(layout.shape, part->start, layout.local, origin, part->size, [&](int64_t to, int64_t at, int64_t n) {
    if (output.batchDim > 0)
      forEachMoved(place.shape, static_cast<size_t>(output.batchDim), begin + to, n,
                   [&](int64_t whole, int64_t done, int64_t count) { writeElements(whole, at + done, count); });
    else if (int64_t kept = std::min(n, end - begin - to); kept > 0)
      writeElements(begin + to, at, kept);
  });
}

void ResultWriter::take(const format::Output &output, uint64_t batch, int64_t microbatch,
                        std::span<const std::byte> from) {
  auto index = static_cast<size_t>(&output - manifest.outputs.data());
  forEachResultPart(manifest, output, {shapes[index], control.rank(), batch, microbatch}, from,
                    [&](uint64_t byte, std::span<const std::byte> part) { writer->write(arrays[index], byte, part); });
}

void ResultWriter::finish() {
  writer->sync();
  control.barrier("results written");
  part.giveName();
  if (control.rank() == 0)
    control.wrote(path);
  control.barrier("results done");
}

} // namespace par::core
