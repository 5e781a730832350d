// Values of tensors from the model file, safetensors files, a checkpoint, or the init rules.
#pragma once

#include "par/files/ArrayFile.h"
#include "par/format/Manifest.h"
#include "par/messages/Messages.h"

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>

namespace par::core {

/// Data of a file of a save, which must be unchanged: the first rank of this process that reads it computes its
/// checksum, once.
class SavedData {
public:
  /// `save` is the folder, for messages; `checksum` is that of all data of the file; `advise` says which other save the
  /// user may take instead of a damaged one.
  SavedData(std::shared_ptr<const SafetensorsReader> file, std::string save, std::string checksum,
            std::string (*advise)(const std::string &save))
      : file(std::move(file)), save(std::move(save)), checksum(std::move(checksum)), advise(advise) {}
  /// Whether the checksum is that of the data.
  bool intact() const;
  /// Throws Failure where it is not.
  void check() const;

private:
  std::shared_ptr<const SafetensorsReader> file;
  std::string save, checksum;
  std::string (*advise)(const std::string &save);
  mutable std::once_flag once;
  mutable bool good = false;
};

/// A block of a global array, dense, in a mapped file.
struct Piece {
  std::vector<int64_t> start, size;
  const std::byte *data = nullptr;
  std::shared_ptr<const SavedData> saved = nullptr; ///< what to check before `data` is read

  /// Throws Failure if a save's file has changed.
  void check() const;
};

/// A global array, whole or in pieces (rectangles) that need not be those of the bundle.
struct StoredArray {
  DType type = DType::F32;
  std::vector<int64_t> shape;
  std::vector<Piece> pieces;
  std::string file = {}; ///< that says type and shape, where it is not the file of the first piece
  /// The shape in files of weights, where the pieces' is another one of as many elements.
  std::optional<std::vector<int64_t>> stored = {};
};

/// Arrays by canonical name, with the files they lie in.
class ContentCheck;

struct WeightStore {
  std::string place; ///< for messages: "gpt2.safetensors", "ckpt/200"
  std::map<std::string, StoredArray> arrays;
  std::vector<std::shared_ptr<SafetensorsReader>> readers;
  std::vector<std::shared_ptr<ArrayFile>> foreign; ///< files of other programs than Par's saves
  std::vector<std::shared_ptr<MappedFile>> files;
  std::vector<std::shared_ptr<std::vector<std::byte>>> made; ///< what no file holds
  std::set<std::string> anew;                          ///< states of a save that it lacks and that begin by their rules
  std::vector<std::shared_ptr<const SavedData>> saved; ///< all files of a save that have a checksum
  std::shared_ptr<ContentCheck> content;               ///< of a model file that is compared while it is read

  const StoredArray *find(const std::string &name) const;
  /// The array of a tensor, under its name or an alias.
  const StoredArray *find(const format::Tensor &tensor) const;
  /// Path of the file in which the array's first byte lies; `place` if no file holds it.
  std::string fileOf(const StoredArray &array) const;
  /// If no weight has a name of the bundle's: removes or adds the prefixes of wrappers that all names share (`module.`,
  /// `_orig_mod.`, `model.`), if that finds some, and says so; "" if nothing was done. Throws Failure if two ways find
  /// equally many, but different, weights.
  std::string renameFor(const format::Manifest &manifest);
  /// Adds the tensors that are only there under a name of their transposed matrix.
  void transposeFor(const format::Manifest &manifest);
  /// Call after the values were copied: gives the memory of the mapped files back; they can still be read. Throws
  /// Failure if one has become shorter meanwhile.
  void release() const;
  /// Throws Failure if a file of a save has changed, also one that was not read. The files are shared out among the
  /// ranks of the job.
  void checkSaved(uint32_t rank, uint32_t ranks) const;
  /// Runs `load`, which reads the values, beside the comparison of a model file that is still to be compared. Throws
  /// Failure if that is another one, before any mistake that `load` found.
  void loadChecked(const std::function<void()> &load) const;
};

/// The file of weights in a folder that Hugging Face wrote, the index of several; other paths as they are, among them
/// folders that are saves. Throws Failure where a folder holds several.
std::string findWeights(const std::string &path);
/// The arrays of safetensors files, or of an index.json that names them. Throws Failure.
WeightStore openSafetensors(const std::vector<std::string> &paths);
/// "w.safetensors holds NaN in \"h.0.weight\" (element 60)" of the first such array, in the order of the names; "" if
/// there is none.
std::string describeNaN(const WeightStore &store);
/// Path of the model file that was compiled: as it was named, then beside the bundle. Throws Failure with
/// `missing` (about its name) if it is in neither place, with `changed` (about its path and what differs) if
/// it is another one.
std::string findCompiledModel(const format::Manifest &manifest, const std::string &bundle, Message missing,
                              Message changed);
/// Throws Failure of the file `blamed` with `changed` (about data, model and what differs) where a file of data that
/// was there when `model` was compiled is another one now. A missing file is reported by its first reader. Reads up to
/// 1 GiB of each.
void checkCompiledData(const format::Manifest &manifest, const std::string &blamed, const std::string &model,
                       Message changed);
/// Path of a file of a model's data: beside the model, or, if it is not there and the model is a link, beside its
/// target. Throws Failure for a link that leads out of that folder, which par-compile refuses too.
std::filesystem::path besideModel(const std::filesystem::path &model, const std::string &file);
/// The compiled model file, where it is found, and the files beside it that hold its tensors, whether they are there or
/// not. Throws Failure where the model file cannot be looked for.
std::vector<std::string> filesOfModel(const format::Manifest &manifest, const std::string &bundle);
/// When the content of a model file is compared with that of the compiled one: before this is known nothing is
/// computed.
enum class ModelComparison {
  First,       ///< when it is opened
  WhileLoading ///< by WeightStore::loadChecked(), which must follow
};

/// The initial values that the manifest finds in the model file; looked for as it was named, then beside the
/// bundle. Throws Failure (error 16) if there are none, or the file is not the compiled one; with `checkData` also if a
/// file of data beside it is not. One process of a host does that for all: it reads up to 1 GiB of each.
WeightStore openModelFile(const format::Manifest &manifest, const std::string &bundle, bool checkData,
                          ModelComparison comparison = ModelComparison::First);

/// The tensors whose values stand in the bundle itself, in its file of constants; none where it has no such file.
/// Throws Failure if the file is not as large as they need.
WeightStore openConstants(const format::Manifest &manifest, const std::string &bundle);

/// Whether a tensor's value is a weight (parameter, frozen, buffer, or a copy of one) rather than state that
/// training makes.
bool isWeight(const format::Tensor &tensor);
/// Tensors that stand in a checkpoint: all but copies and constants.
bool isSaved(const format::Tensor &tensor);
/// The rectangle that a rank saves or exports, of those that several hold the first one's; null if it saves
/// none.
const format::Rectangle *ownedPart(const format::Tensor &tensor, uint32_t rank);
/// The tensor under whose name a value is stored: for a copy the one that it copies.
const format::Tensor &sourceOf(const format::Manifest &manifest, const format::Tensor &tensor);

/// The tensor whose initial value a tensor has: for an average its parameter; for a copy the one that it copies.
const format::Tensor &beginsAs(const format::Manifest &manifest, const format::Tensor &tensor);
/// The average of a parameter that the bundle keeps one of; else the tensor itself.
const format::Tensor &averageOf(const format::Manifest &manifest, const format::Tensor &tensor);
bool isAverage(const format::Tensor &tensor);
/// Puts the averages of a save in the place of the weights. Throws Failure if it holds none.
void takeAverages(WeightStore &store);

/// All elements of an array in their order, its pieces put together.
std::vector<std::byte> assemble(const StoredArray &array);

/// Throws Failure if the store holds a tensor under two of its names with different values: it is unknown which of them
/// to train.
void checkNames(const format::Manifest &manifest, const WeightStore &store);

/// Throws Failure (error 17) unless the store has every weight of the manifest in its stored shape, and as
/// floats where that has floats.
void checkWeights(const format::Manifest &manifest, const WeightStore &store);
/// The same where weights that the store lacks begin by their rules, unless it lacks all: says how many these are; ""
/// where it has each.
std::string checkSomeWeights(const format::Manifest &manifest, const WeightStore &store);
/// Says which weights have another float type than the bundle's and so are converted; "" where none has.
std::string describeConverted(const format::Manifest &manifest, const WeightStore &store);
/// For a store that holds no weight: whether one prefix more or less would make its names the bundle's; "" if
/// not.
std::string hintAtPrefix(const format::Manifest &manifest, const WeightStore &store);
/// Names the store's arrays that have no place in the bundle: an exporter may have folded it into others (a batch
/// norm), or made a constant of it, which then stays as in the model file. "" where there is none.
std::string describeUnused(const format::Manifest &manifest, const WeightStore &store);
/// The same for all that stands in a checkpoint, which a run goes on from: in the bundle's own types.
void checkState(const format::Manifest &manifest, const WeightStore &store);
/// Has states begin by their rules that a checkpoint lacks: of parameters that were frozen when it was saved, of
/// another optimizer than the save's, and averages. The count of steps begins again with the optimizer's states if
/// the checkpoint has none of them. Says so, a line each; "" where it lacks none.
std::string beginAnew(const format::Manifest &manifest, WeightStore &store);
/// States of another optimizer in a checkpoint, as a sentence; "" for none.
std::string unusedStates(const format::Manifest &manifest, const WeightStore &store);

/// Copies this rank's part of a tensor into its buffer; padding becomes 0. Throws Failure where elements are
/// missing.
void loadTensor(std::byte *to, const format::Tensor &tensor, uint32_t rank, const StoredArray &from,
                const std::string &place);

} // namespace par::core
