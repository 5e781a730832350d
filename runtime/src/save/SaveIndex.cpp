// Reads and writes a save's index.json. The text is checked against its checksum first; parts of each tensor must be
// disjoint and cover it, which a sweep along the most divided dim decides.
#include "SaveIndex.h"

#include "format/Json.h"
#include "par/files/Checksum.h"
#include "par/messages/Failure.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

namespace par::core {

// Read into nlohmann::json, a map: a list of entries, which keeps their order, would be searched for each of them.

namespace {

/// Texts between the checked text and its checksum, and after the checksum.
constexpr std::string_view beforeChecksum = ",\n \"checksum\": \"", afterChecksum = "\"\n}\n";
constexpr size_t digits = 32;
/// Steps as --steps takes them, and rows that many steps of any batch consume.
constexpr uint64_t maxSteps = uint64_t(1) << 40, maxRows = uint64_t(1) << 60;

[[noreturn]] void refuse(const std::string &folder, const std::string &what) {
  throw Failure::at(folder, Message::checkpointIndex, what);
}

/// A value as messages show it; a hostile one may be of any size and depth.
std::string shown(const nlohmann::json &value) {
  if (value.is_structured())
    return (value.is_array() ? "an array of " : "an object of ") + std::to_string(value.size());
  std::string text = value.dump();
  return text.size() > 60 ? text.substr(0, 57) + "..." : text;
}

/// The entries of one object, each checked as it is taken.
class Entries {
public:
  Entries(const std::string &folder, const nlohmann::json &object, const std::string &where)
      : folder(folder), object(object), where(where) {
    if (!object.is_object())
      refuse(folder, (where.empty() ? "the file" : where) + " is no JSON object");
  }

  const nlohmann::json &at(const char *key) const {
    auto found = object.find(key);
    if (found == object.end())
      refuse(folder, "has no \"" + name(key) + "\"");
    return *found;
  }
  uint64_t number(const char *key, uint64_t least, uint64_t most) const {
    const nlohmann::json &value = at(key);
    bool good = value.is_number_unsigned() && value.get<uint64_t>() >= least && value.get<uint64_t>() <= most;
    if (!good)
      refuse(folder,
             core::format("\"{}\" is {}, not a whole number from {} to {}", name(key), shown(value), least, most));
    return value.get<uint64_t>();
  }
  std::string text(const char *key) const {
    const nlohmann::json &value = at(key);
    if (!value.is_string())
      refuse(folder, "\"" + name(key) + "\" is " + shown(value) + ", not text");
    return value.get<std::string>();
  }
  std::vector<std::string> texts(const char *key) const {
    const nlohmann::json &value = at(key);
    auto isText = [](const nlohmann::json &item) { return item.is_string(); };
    if (!value.is_array() || !std::all_of(value.begin(), value.end(), isText))
      refuse(folder, "\"" + name(key) + "\" is " + shown(value) + ", not a list of texts");
    return value.get<std::vector<std::string>>();
  }
  /// Dims, none of them negative, whose element count fits into 62 bits.
  std::vector<int64_t> dims(const char *key) const {
    const nlohmann::json &value = at(key);
    std::vector<int64_t> result;
    uint64_t product = 1;
    bool good = value.is_array();
    for (size_t i = 0; good && i < value.size(); ++i) {
      good = value[i].is_number_unsigned() && value[i].get<uint64_t>() >> 62 == 0 &&
             !__builtin_mul_overflow(product, value[i].get<uint64_t>(), &product) && product >> 62 == 0;
      result.push_back(good ? value[i].get<int64_t>() : 0);
    }
    if (!good)
      refuse(folder, "\"" + name(key) + "\" is " + shown(value) + ", which is no shape");
    return result;
  }
  const nlohmann::json &all() const { return object; }
  const std::string &place() const { return folder; }

private:
  std::string name(const char *key) const { return where.empty() ? key : where + "." + key; }

  const std::string &folder;
  const nlohmann::json &object;
  std::string where;
};

/// The text of the file up to its checksum, which must be that of the text.
void checkText(const std::string &folder, std::string_view text) {
  size_t tail = beforeChecksum.size() + digits + afterChecksum.size();
  std::string_view sum = text.size() < tail ? "" : text.substr(text.size() - tail);
  bool good = sum.starts_with(beforeChecksum) && sum.ends_with(afterChecksum);
  std::string_view content = text.substr(0, good ? text.size() - tail : 0);
  if (!good || sum.substr(beforeChecksum.size(), digits) != checksumOf(std::as_bytes(std::span(content))))
    refuse(folder, "it is not as it was written: its checksum is that of another text");
}

std::vector<SavedFile> readFiles(const Entries &index, uint64_t format) {
  Entries files(index.place(), index.at("files"), "files");
  std::vector<SavedFile> result(index.at("files").size());
  for (size_t rank = 0; rank < result.size(); ++rank) {
    std::string name = rankFile(rank);
    if (format == 1) {
      result[rank].bytes = files.number(name.c_str(), 0, ~uint64_t(0));
      continue;
    }
    Entries file(index.place(), files.at(name.c_str()), "files." + name);
    result[rank] = {file.number("bytes", 0, ~uint64_t(0)), file.text("header")};
  }
  return result;
}

DType readType(const Entries &tensor, const std::string &name) {
  std::string text = tensor.text("type");
  if (std::optional<DType> type = format::dtypeOf(text))
    return *type;
  refuse(tensor.place(), "\"" + name + "\" has the type " + text + ", which is unknown");
}

bool overlap(const SavedPart &a, const SavedPart &b) {
  for (size_t d = 0; d < a.start.size(); ++d)
    if (a.start[d] >= b.start[d] + b.size[d] || b.start[d] >= a.start[d] + a.size[d])
      return false;
  return true;
}

/// The dim along which the parts begin at the most places.
size_t maxCutDim(const SavedTensor &tensor) {
  size_t best = 0, most = 0;
  for (size_t d = 0; d < tensor.shape.size(); ++d) {
    std::set<int64_t> starts;
    for (const SavedPart &part : tensor.parts)
      starts.insert(part.start[d]);
    if (starts.size() > most)
      best = d, most = starts.size();
  }
  return best;
}

/// Sweeps over the dim that is cut most: a part is compared with those that have begun and not ended there.
void checkDisjoint(const std::string &folder, const std::string &name, const SavedTensor &tensor) {
  if (tensor.parts.size() < 2)
    return;
  size_t dim = maxCutDim(tensor);
  std::vector<const SavedPart *> order, open;
  for (const SavedPart &part : tensor.parts)
    order.push_back(&part);
  std::sort(order.begin(), order.end(),
            [&](auto *a, auto *b) { return std::pair(a->start[dim], a) < std::pair(b->start[dim], b); });
  for (const SavedPart *part : order) {
    std::erase_if(open, [&](auto *other) { return other->start[dim] + other->size[dim] <= part->start[dim]; });
    for (const SavedPart *other : open)
      if (overlap(*other, *part))
        refuse(folder, core::format("two parts of \"{}\" overlap, at {} and {}", name, describeShape(other->start),
                                    describeShape(part->start)));
    open.push_back(part);
  }
}

/// Each element of the tensor is in exactly one part.
void checkCover(const std::string &folder, const std::string &name, const SavedTensor &tensor) {
  uint64_t covered = 0;
  for (const SavedPart &part : tensor.parts) {
    bool inside = part.start.size() == tensor.shape.size() && part.size.size() == tensor.shape.size();
    for (size_t d = 0; inside && d < tensor.shape.size(); ++d)
      inside = part.size[d] > 0 && part.size[d] <= tensor.shape[d] && part.start[d] <= tensor.shape[d] - part.size[d];
    if (!inside)
      refuse(folder, core::format("a part of \"{}\" at {} of size {} is not inside of {}", name,
                                  describeShape(part.start), describeShape(part.size), describeShape(tensor.shape)));
    covered += static_cast<uint64_t>(elementCount(part.size));
  }
  if (covered != static_cast<uint64_t>(elementCount(tensor.shape)))
    refuse(folder, core::format("the parts of \"{}\" hold {} elements, its shape {} has {}", name, covered,
                                describeShape(tensor.shape), elementCount(tensor.shape)));
  checkDisjoint(folder, name, tensor);
}

SavedTensor readTensor(const std::string &folder, const std::string &name, const nlohmann::json &entry,
                       const SaveIndex &index) {
  Entries entries(folder, entry, "tensors." + name);
  SavedTensor tensor;
  tensor.type = readType(entries, name);
  tensor.shape = entries.dims("shape");
  if (index.format > 1) {
    tensor.stored = entries.dims("stored");
    if (elementCount(*tensor.stored) != elementCount(tensor.shape))
      refuse(folder, core::format("\"{}\" is {} and stored as {}", name, describeShape(tensor.shape),
                                  describeShape(*tensor.stored)));
  }
  if (entry.contains("also"))
    tensor.also = entries.texts("also");
  std::set<std::string> files;
  for (const nlohmann::json &part : entries.at("parts")) {
    Entries of(folder, part, "tensors." + name + ".parts");
    tensor.parts.push_back({of.text("file"), of.dims("start"), of.dims("size")});
    const std::string &file = tensor.parts.back().file;
    if (!index.knows(file) || !files.insert(file).second)
      refuse(folder, "a part of \"" + name + "\" is in \"" + file + "\", which " +
                         (index.knows(file) ? "holds another one" : "is none of its files"));
  }
  checkCover(folder, name, tensor);
  return tensor;
}

RunPosition readPosition(const Entries &index) {
  RunPosition position;
  position.step = index.number("step", 1, maxSteps);
  position.rows = index.number("rows", position.step, maxRows); // a step takes a row at least
  position.seed = index.number("seed", 0, ~uint64_t(0));
  std::string order = index.text("order");
  if (order != "shuffled" && order != "sequential")
    refuse(index.place(), "\"order\" is \"" + order + "\", neither shuffled nor sequential");
  position.shuffled = order == "shuffled";
  if (index.all().contains("data")) // saves of before say nothing of it
    position.data = index.text("data");
  if (index.all().contains("skipped"))
    position.skipped = index.number("skipped", 0, position.step);
  return position;
}

uint64_t readFormat(const Entries &index) {
  const nlohmann::json &version = index.at("par_checkpoint");
  if (!version.is_array() || version.empty() || !version[0].is_number_unsigned() || version[0] == 0)
    refuse(index.place(), "\"par_checkpoint\" is " + shown(version) + ", not a version");
  auto format = version[0].get<uint64_t>();
  if (format > saveFormat)
    refuse(index.place(), "written by a newer par-run");
  return format;
}

} // namespace

std::string rankFile(size_t rank) { return "rank" + std::to_string(rank) + ".safetensors"; }

bool SaveIndex::knows(const std::string &file) const {
  size_t rank = 0;
  auto [end, error] = std::from_chars(file.data() + std::min<size_t>(4, file.size()), file.data() + file.size(), rank);
  return error == std::errc() && rank < files.size() && file == rankFile(rank);
}

std::string writeIndex(const SaveIndex &index) {
  using json = nlohmann::ordered_json;
  const RunPosition &position = index.position;
  json out = {{"par_checkpoint", {saveFormat, 0}},
              {"run", index.run},
              {"serial", index.serial},
              {"plan", index.plan},
              {"step", position.step},
              {"rows", position.rows},
              {"seed", position.seed},
              {"order", position.shuffled ? "shuffled" : "sequential"}};
  if (!position.data.empty())
    out["data"] = position.data;
  if (position.skipped > 0)
    out["skipped"] = position.skipped;
  for (size_t rank = 0; rank < index.files.size(); ++rank)
    out["files"][rankFile(rank)] = {{"bytes", index.files[rank].bytes}, {"header", index.files[rank].header}};
  json::object_t tensors;
  for (const auto &[name, tensor] : index.tensors) {
    json entry = {{"type", format::toString(tensor.type)},
                  {"shape", tensor.shape},
                  {"stored", *tensor.stored},
                  {"parts", json::array()}};
    if (!tensor.also.empty())
      entry["also"] = tensor.also;
    for (const SavedPart &part : tensor.parts)
      entry["parts"].push_back({{"file", part.file}, {"start", part.start}, {"size", part.size}});
    tensors.emplace_back(name, std::move(entry));
  }
  out["tensors"] = std::move(tensors);
  std::string text = out.dump(1);
  text.resize(text.size() - 2); // "\n}"
  std::string sum = checksumOf(std::as_bytes(std::span(text)));
  return text + std::string(beforeChecksum) + sum + std::string(afterChecksum);
}

namespace {

/// FOLDER/index.json as text, mapped.
struct IndexText {
  explicit IndexText(const std::string &folder) : file(folder + "/index.json") {}
  std::string_view all() const { return {reinterpret_cast<const char *>(file.bytes().data()), file.bytes().size()}; }
  MappedFile file;
};

nlohmann::json parseIndex(const std::string &folder, std::string_view text) {
  if (auto status = format::checkNoZero(text); !status)
    refuse(folder, status.message());
  try {
    return nlohmann::json::parse(text);
  } catch (const nlohmann::json::exception &error) {
    refuse(folder, error.what());
  }
}

/// Reads the part before the files and tensors; `text` is the whole.
void readBegin(const Entries &entries, std::string_view text, SaveIndex &index) {
  index.format = readFormat(entries);
  if (index.format > 1) {
    checkText(entries.place(), text);
    index.run = entries.text("run");
    index.serial = entries.number("serial", 1, ~uint64_t(0) >> 1); // the next one is a number too
  }
  index.plan = entries.text("plan");
  index.position = readPosition(entries);
}

} // namespace

SaveIndex readIndex(const std::string &folder) {
  IndexText text(folder);
  nlohmann::json parsed = parseIndex(folder, text.all());
  Entries entries(folder, parsed, "");
  SaveIndex index;
  readBegin(entries, text.all(), index);
  index.files = readFiles(entries, index.format);
  for (const auto &[name, entry] : Entries(folder, entries.at("tensors"), "tensors").all().items())
    index.tensors.emplace_back(name, readTensor(folder, name, entry, index));
  return index;
}

SaveIndex readIndexBegin(const std::string &folder) {
  IndexText text(folder);
  // As this par-run writes it: keys of the whole stand one space in, and no text of JSON holds a line end.
  size_t end = text.all().find(",\n \"files\":");
  if (end == std::string_view::npos)
    return readIndex(folder);
  nlohmann::json parsed = parseIndex(folder, std::string(text.all().substr(0, end)) + "\n}");
  SaveIndex index;
  readBegin(Entries(folder, parsed, ""), text.all(), index);
  return index.format > 1 ? index : readIndex(folder); // only reading shows that a file without a checksum is complete
}

} // namespace par::core
