// Refuses outputs that would overwrite an input, another output or a save.
#include "OutputPlaces.h"

#include "par/messages/Failure.h"
#include "par/save/Export.h"
#include "save/ExportedFiles.h"

#include <filesystem>
#include <set>

namespace par::core {

namespace fs = std::filesystem;

namespace {

/// The target of a path, as far as it exists.
fs::path whereTo(const fs::path &path) {
  std::error_code error;
  fs::path place = fs::weakly_canonical(fs::absolute(path, error), error);
  return error ? path : place;
}

/// A file, and how a message calls it: "--text", "the bundle".
struct Place {
  std::string flag;
  fs::path path, real = whereTo(path);
};

/// One file under two names, hard links too.
bool isSame(const Place &a, const Place &b) {
  std::error_code error;
  return a.real == b.real || fs::equivalent(a.path, b.path, error);
}

/// A pipe or a device.
bool isStream(const fs::path &path) {
  std::error_code error;
  return fs::exists(path, error) && !fs::is_regular_file(path, error);
}

std::vector<Place> outputsOf(const RunOptions &options) {
  std::vector<Place> places;
  for (const auto &[flag, path] : {std::pair<const char *, std::string>{"--metrics", options.metrics},
                                   {"--log csv", options.log},
                                   {"--trace", options.trace},
                                   {"--bench", options.bench.value_or("")},
                                   {"--output", options.output},
                                   {"--export", options.exportTo}})
    if (!path.empty() && !isStream(path))
      places.push_back({flag, path});
  return places;
}

/// The files of a folder that is read as a whole.
void addFolder(std::vector<Place> &places, const std::string &flag, const fs::path &folder) {
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    if (std::error_code ignored; at->is_regular_file(ignored))
      places.push_back({flag, at->path()});
}

void addStore(std::vector<Place> &places, const std::string &flag, const WeightStore &store) {
  for (const auto &reader : store.readers)
    places.push_back({flag, reader->path()});
  for (const auto &file : store.foreign)
    places.push_back({flag, file->path()});
  for (const auto &file : store.files)
    places.push_back({flag, file->path()});
}

/// The model that was compiled and its data, wherever it may be looked for.
void addModel(std::vector<Place> &places, const format::Manifest &manifest, const std::string &bundle) {
  std::error_code ignored;
  fs::path named = manifest.model.name, beside = fs::absolute(bundle, ignored).parent_path();
  std::set<fs::path> files{named.filename()};
  for (const format::Tensor &tensor : manifest.tensors)
    if (tensor.source)
      files.insert(tensor.source->file);
  for (const fs::path &folder : {named.parent_path(), beside})
    for (const fs::path &file : files)
      places.push_back({"the model", folder / file});
}

std::vector<Place> inputsOf(const Job &job) {
  const RunOptions &options = job.options;
  std::vector<Place> places;
  addFolder(places, "the bundle", job.name);
  addModel(places, job.bundle.manifest, job.name);
  for (const std::string &spec : options.data)
    places.push_back({"--data", readDataSpec(spec).path});
  places.push_back({"--text", options.text});
  for (const std::string &spec : options.inputs)
    places.push_back({"--input", readInputSpec(spec).path});
  places.push_back({"--tokens", readTokenSpec(options.tokens).path});
  places.push_back({"--eval-data", readEvalSpec(options.evalData, !options.tokens.empty()).path});
  for (const std::string &path : options.weights)
    places.push_back({"--weights", path});
  if (job.weights)
    addStore(places, options.weights.empty() ? "the model" : "--weights", *job.weights);
  if (job.checkpoint) {
    addStore(places, "--resume", job.checkpoint->store);
    addFolder(places, "--resume", job.checkpoint->store.place);
  }
  std::erase_if(places, [](const Place &place) { return place.path.empty() || isStream(place.path); });
  return places;
}

/// Whether a path is a save (DIR/20) or the lock (DIR/.lock) of the folder `saves`.
bool isOfSaves(const fs::path &path, const fs::path &saves) {
  std::string name = path.filename().string();
  return (name == ".lock" || name.find_first_not_of("0123456789") == std::string::npos) &&
         isSame({"", path.has_parent_path() ? path.parent_path() : fs::path(".")}, {"", saves});
}

} // namespace

void checkOutputs(const Job &job) {
  std::vector<Place> outputs = outputsOf(job.options), inputs;
  if (isExportFolder(job.options.exportTo))
    for (const ExportedFile &file : planExport(job.bundle.manifest, job.options.exportTo, job.options.maxShard))
      outputs.push_back({"--export", file.path});
  if (!outputs.empty())
    inputs = inputsOf(job);
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto &[flag, path, real] = outputs[i];
    for (const Place &input : inputs)
      // --export may replace the file of --weights: it gets the name only when it is whole.
      if (isSame(outputs[i], input) && !(flag == "--export" && input.flag == "--weights"))
        throw Failure::at(path.string(), Message::outputIsRead, flag, input.flag).exitsWith(exitUsage);
    for (size_t j = 0; j < i; ++j)
      if (isSame(outputs[i], outputs[j]))
        throw Failure::at(path.string(), Message::outputsAlike, outputs[j].flag, flag).exitsWith(exitUsage);
    if (!job.options.save.empty() && isOfSaves(path, job.options.save))
      throw Failure::at(path.string(), Message::outputIsSave, flag).exitsWith(exitUsage);
  }
}

} // namespace par::core
