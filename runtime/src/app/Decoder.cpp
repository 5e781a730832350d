// Feeds the calls of a decoder and collects its logits. A rank that holds all rows gives them without an exchange;
// parts of several ranks (a vocabulary that is sharded, a batch over dp) are gathered at rank 0.
#include "Decoder.h"

#include "par/files/Rectangles.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <cstring>

namespace par::core {

namespace {

constexpr const char *inputNames[] = {"input_ids", "position", "count"};
constexpr const char *entryNames[] = {"predict", "prefill"};
constexpr const char *prefixes[] = {"", "prefill."};

[[noreturn]] void refuse(const std::string &place, const std::string &lacks) {
  throw Failure::at(place, Message::notADecoder, lacks);
}

/// An input of a step or of a prefill, whose rows are sequences.
const format::Input &inputOf(const format::Manifest &manifest, const std::string &name, const std::string &place) {
  const format::Input *input = manifest.findInput(name);
  if (!input || input->shape.size() != 2 || input->type != format::DType::I64 || !input->microbatched)
    refuse(place, "an input \"" + name + "\" of sequences x tokens, i64");
  return *input;
}

const format::Output &logitsOf(const format::Manifest &manifest, const std::string &name, const std::string &place) {
  const format::Output *output = manifest.findOutput(name);
  if (!output || output->shape.size() != 2 || output->type != format::DType::F32 || !output->microbatched)
    refuse(place, "an output \"" + name + "\" of sequences x vocabulary, f32");
  return *output;
}

/// Slots of the cache: dim 2 of what calls carry on.
uint64_t slotsOf(const format::Manifest &manifest, const std::string &place) {
  for (const format::Tensor &tensor : manifest.tensors)
    if (tensor.kind == format::TensorKind::Counter && tensor.name == "past.0" && tensor.stored.size() == 4)
      return static_cast<uint64_t>(tensor.stored[2]);
  refuse(place, "a cache \"past.0\" that calls carry on");
}

bool hasEntry(const format::Bundle &bundle, const char *name) {
  return bundle.programs.front().findEntry(name) != format::noIndex;
}

} // namespace

DecoderShape shapeOfDecoder(const format::Bundle &bundle, const std::string &place) {
  const format::Manifest &manifest = bundle.manifest;
  DecoderShape shape;
  if (!hasEntry(bundle, "predict"))
    refuse(place, "an entry \"predict\"");
  for (const char *name : inputNames)
    if (const format::Input &input = inputOf(manifest, name, place); input.shape[1] != 1)
      throw Failure::at(place, Message::decoderStep, name, input.shape[1], input.shape[1]);
  for (const format::Input &input : manifest.inputs)
    if (std::find(std::begin(inputNames), std::end(inputNames), input.name) == std::end(inputNames) &&
        !input.name.starts_with(prefixes[1]))
      refuse(place, "data for its input \"" + input.name + "\"");
  shape.rows = manifest.batch;
  shape.slots = slotsOf(manifest, place);
  shape.vocabulary = logitsOf(manifest, "logits", place).shape[1];
  if (hasEntry(bundle, entryNames[1])) {
    shape.prefill = static_cast<uint64_t>(inputOf(manifest, "prefill.input_ids", place).shape[1]);
    logitsOf(manifest, "prefill.logits", place);
  }
  return shape;
}

void DecoderInputs::set(const DecoderCall &call, uint64_t length) {
  uint64_t rows = call.tokens.size();
  tokens.assign(rows * length, 0);
  positions = call.positions;
  counts.assign(rows, 1);
  for (uint64_t row = 0; row < rows; ++row) {
    std::ranges::copy(call.tokens[row], tokens.begin() + static_cast<int64_t>(row * length));
    counts[row] = std::max<int64_t>(1, static_cast<int64_t>(call.tokens[row].size()));
  }
}

const int64_t *DecoderInputs::row(std::string_view input, uint64_t row) const {
  if (input.starts_with(prefixes[1]))
    input.remove_prefix(std::strlen(prefixes[1]));
  return input == "position" ? &positions[row]
         : input == "count"  ? &counts[row]
                             : &tokens[row * (tokens.size() / counts.size())];
}

/// The inputs of one call as samples.
class Decoder::Rows : public Dataset {
public:
  explicit Rows(uint64_t count) : count(count) {}

  uint64_t rows() const override { return count; }
  std::string describe() const override { return "prompts"; }
  bool has(const std::string &) const override { return true; }
  std::string feeds() const override { return "--generate feeds prompts"; }
  const std::byte *row(const format::Input &input, uint64_t row, std::vector<std::byte> &) const override {
    return reinterpret_cast<const std::byte *>(inputs.row(input.name, row));
  }
  const std::byte *whole(const format::Input &) const override { return nullptr; }

  DecoderInputs inputs;

private:
  uint64_t count;
};

Decoder::Decoder(Session &session, const DecoderShape &shape)
    : session(session), shape(shape), given(std::make_unique<Rows>(shape.rows)), order(shape.rows, false, 0) {
  const format::Manifest &manifest = session.manifest();
  outputs[0] = manifest.findOutput("logits");
  outputs[1] = shape.prefill ? manifest.findOutput("prefill.logits") : nullptr;
  all.resize(shape.rows * static_cast<uint64_t>(shape.vocabulary));
  auto holders = [&](const format::Output &output) -> std::vector<uint32_t> {
    if (output.layout.parts.empty())
      return output.ranks;
    return output.layout.parts.size() == 1 ? output.layout.parts[0].ranks : std::vector<uint32_t>();
  };
  std::vector<uint32_t> whole = holders(*outputs[0]);
  for (uint32_t rank : outputs[1] ? holders(*outputs[1]) : whole)
    if (std::find(whole.begin(), whole.end(), rank) != whole.end()) {
      choosing = rank;
      isWhole = true;
      break;
    }
  session.onResult([this](const format::Output &output, int64_t microbatch, std::span<const std::byte> from) {
    take(output, microbatch, from);
  });
}

Decoder::~Decoder() { session.onResult({}); }

void Decoder::run(const DecoderCall &call) {
  prefilling = call.prefill;
  own.clear();
  given->inputs.set(call, call.prefill ? shape.prefill : 1);
  session.run(entryNames[prefilling], {given.get(), &order, 0});
  if (!isWhole)
    gather();
}

void Decoder::take(const format::Output &output, int64_t microbatch, std::span<const std::byte> from) {
  if (&output != outputs[prefilling])
    return;
  if (isWhole && session.rank() == choosing)
    return place(choosing, microbatch, from);
  const format::Rectangle *part = format::rectangleOf(output.layout, session.rank());
  if (isWhole || (part && part->ranks.front() != session.rank()))
    return;
  own.append(reinterpret_cast<const char *>(&microbatch), sizeof microbatch);
  own.append(reinterpret_cast<const char *>(from.data()), from.size());
}

/// Puts a rank's part of a microbatch where it belongs.
void Decoder::place(uint32_t rank, int64_t microbatch, std::span<const std::byte> from) {
  const format::Output &output = *outputs[prefilling];
  uint64_t rowBytes = static_cast<uint64_t>(shape.vocabulary) * sizeof(float);
  uint64_t before = static_cast<uint64_t>(microbatch) * shape.rows / session.manifest().microbatches * rowBytes;
  std::byte *to = reinterpret_cast<std::byte *>(all.data()) + before;
  const format::Rectangle *part = format::rectangleOf(output.layout, rank);
  if (!part) {
    std::memcpy(to, from.data(), from.size());
    return;
  }
  std::vector<int64_t> origin(part->size.size(), 0);
  copyBlock(to, output.layout.shape, part->start, from.data(), output.layout.local, origin, part->size, sizeof(float));
}

/// The parts of all ranks, at rank 0: each a microbatch's number and its bytes.
void Decoder::gather() {
  std::vector<std::string> parts = session.jobControl().gather("logits", own, choosing);
  for (uint32_t rank = 0; rank < parts.size(); ++rank) {
    uint64_t bytes = sizeof(float);
    for (int64_t size : outputs[prefilling]->layout.local)
      bytes *= static_cast<uint64_t>(size);
    for (size_t at = 0; at + sizeof(int64_t) + bytes <= parts[rank].size(); at += sizeof(int64_t) + bytes) {
      int64_t microbatch = 0;
      std::memcpy(&microbatch, parts[rank].data() + at, sizeof microbatch);
      auto *from = reinterpret_cast<const std::byte *>(parts[rank].data() + at + sizeof microbatch);
      place(rank, microbatch, {from, bytes});
    }
  }
}

std::span<const float> Decoder::logits(uint64_t row) const {
  auto width = static_cast<size_t>(shape.vocabulary);
  return std::span(all).subspan(row * width, width);
}

} // namespace par::core
