// The manifest of a bundle.
#pragma once

#include "par/format/Layout.h"
#include "par/format/Program.h"
#include "par/format/RankGroups.h"

#include <array>
#include <optional>

namespace par::format {

/// A file of the bundle; every one but manifest.json is listed.
struct File {
  std::string name;
  uint64_t size = 0;
  /// 64 lower-case hex digits.
  std::string sha256;
};

struct MeshAxis {
  std::string name;
  uint32_t size = 1;
};

/// A rank: its program, and its coordinate on every axis of Manifest::mesh.
struct Rank {
  uint32_t role = 0;
  std::vector<uint32_t> coordinate;
};

/// One communicator over disjoint groups of ranks. The place of a rank in its group is its member index; a
/// rank in no group does not take part.
struct Communicator {
  std::string name;
  RankGroups groups;
};

/// `parameter`; `state` of a parameter (optimizer); `copy` of a parameter on another stage; `buffer`;
/// `counter`; `frozen`; `constant`: a table that the compiler knows and nothing writes, in no checkpoint and no
/// file of weights.
enum class TensorKind : uint8_t { Parameter, State, Copy, Buffer, Counter, Frozen, Constant };
std::string_view toString(TensorKind kind);

/// The bundle's file of constants, which is there if some tensor has a value in it.
inline constexpr const char *constantsFile = "constants.bin";
/// A copy of the weights (par-compile --with-weights), which then come from here; other bundles have none.
inline constexpr const char *weightsFile = "weights.safetensors";

/// The place of an initial value, row-major, little-endian.
struct Source {
  /// A file beside the model file, or the model file itself, relative to the model's folder.
  std::string file;
  uint64_t offset = 0, length = 0;
  DType type = DType::F32;
  bool transposed = false; ///< only for `copies`: the matrix is stored transposed
};

/// The value that `--init`, or a tensor without a source, starts from. `Constant`: a. `Normal`: mean a,
/// standard deviation b. `Uniform`: in [a, b). Random ones are Philox4x32-10 on (seed, global element, hash
/// of the name).
struct InitRule {
  enum Kind : uint8_t { Constant, Normal, Uniform } kind = Constant;
  double a = 0, b = 0;
};
std::string_view toString(InitRule::Kind kind);

/// A variable: checkpoints, initialisation and export use only this table.
struct Tensor {
  /// Canonical name, the key in checkpoints and exports; a copy bears the stage in its name.
  std::string name;
  TensorKind kind = TensorKind::Parameter;
  /// State: its parameter. Copy: the tensor that it copies. Otherwise empty.
  std::string of;
  DType type = DType::F32;
  /// Shape under which it is stored and exported; same elements as layout.shape in the same order.
  std::vector<int64_t> stored;
  Layout layout;
  InitRule init;
  /// Absent: `init` says the value.
  std::optional<Source> source;
  /// Further places in the model file that the plan tied to this tensor: an export of the model is written there too. A
  /// copy in the model's text has no file name; such a model cannot be exported.
  std::vector<Source> copies = {};
  /// The byte of the bundle's file of constants at which the value begins: all of `stored`, dense, of `type`. Every
  /// constant has it, and so has each value that the model file holds as text.
  std::optional<uint64_t> value = {};
  /// Other names of a tied parameter: weights are found under them too, and exports write all.
  std::vector<std::string> aliases = {};
  /// Names of the transposed matrix, where the exporter had transposed PyTorch's: weights are found under them too, and
  /// exports write them instead of `name`. `stored` has two dims then.
  std::vector<std::string> transposed = {};
};

/// The range of `count` consecutive integers: [0, limit), or [-limit, limit) if negative ones count `fromEnd`; a limit
/// of 0 is unknown. `ignored` marks a label that does not count.
struct Limits {
  uint64_t count = 1;
  int64_t limit = 0;
  bool fromEnd = false;
  std::optional<int64_t> ignored = {};
  bool operator==(const Limits &) const = default;
};

/// An input of the entries. `layout` is that of one microbatch where `microbatched` (dim 0 of the graph input
/// being cut: microbatch i is rows [i*B/m, (i+1)*B/m)), else of the whole input.
struct Input {
  std::string name;
  DType type = DType::I64;
  /// Global shape, all microbatches.
  std::vector<int64_t> shape;
  bool microbatched = true;
  Layout layout;
  /// Ranges of integers: consecutive runs over the elements of a row (over all elements if there are no rows); the list
  /// repeats after its last run. Empty: nothing is known.
  std::vector<Limits> limits = {};
  /// How ranks have it whose stage has another mesh than those of `layout`.
  std::vector<Layout> more = {};
};

/// An output that `fetch` gives. A metric is the same on all `ranks`; the first one reports it. Each rank gives its
/// rectangle of a result, and the first rank of a rectangle writes it.
struct Output {
  std::string name;
  DType type = DType::F32;
  /// Global shape, all microbatches.
  std::vector<int64_t> shape;
  /// True: a scalar for the log (loss, grad_norm). False: a result of the graph.
  bool metric = true;
  std::vector<uint32_t> ranks;
  /// For a result: whether dim 0 is sliced into microbatches, as an input's is, and each rank's part of one (of the
  /// whole, if it is not sliced). No parts: all `ranks` have the whole.
  bool microbatched = false;
  Layout layout = {};
  /// For a microbatched result: the batch dim of the model's output. `shape` and `layout` have it first.
  int64_t batchDim = 0;
  /// How values of batches are put together, for a metric of `eval`: "samples", a mean over them; the output
  /// "count(NAME)", the number of labels of which it is the mean; "sum(NAME)", 1, of a sum; "terms(NAME)", how many
  /// outputs "term(NAME,i)" add up to it, each with a `mean` of its own; "batch(NAME)", 1: it is none of these, and
  /// batches are averaged. Empty: it is not averaged, or nothing is known.
  std::string mean = {};
};

/// A scalar that the host writes before an entry.
struct Hyper {
  std::string name;
  double value = 0;
};

/// A part of a cycle: the rate goes from `from` to `to`, which it has at step `end`.
struct LrPhase {
  double end = 0, from = 0, to = 0;
};

/// lr(s), s = 0 for the first step: peak * (s + 1) / warmup while s < warmup, then from peak to floor over
/// `steps - warmup` steps by `decay`; rsqrt: peak * sqrt(max(warmup, 1) / (s + 1)), not below the floor; step: peak *
/// gamma^n, not below the floor, where n milestones are at most s, or n is (s - warmup) / stepSize; one_cycle: through
/// the phases.
struct LrSchedule {
  enum Decay : uint8_t { Constant, Linear, Cosine, Rsqrt, Step, OneCycle } decay = Constant;
  double peak = 0, floor = 0;
  uint64_t warmup = 0, steps = 0;
  // With the decay step:
  double gamma = 1;
  uint64_t stepSize = 0; ///< 0: milestones
  std::vector<uint64_t> milestones = {};
  // With one_cycle:
  bool isLinear = false; ///< phases are lines, else half waves of the cosine
  std::vector<LrPhase> phases = {};
};
std::string_view toString(LrSchedule::Decay decay);

/// How `--text` feeds the graph.
struct TextFeed {
  /// Names of inputs; labels may be empty.
  std::string tokens, labels;
  /// Labels are tokens one later (`next`), the same (`same`: the model shifts them), or the compiler cannot
  /// tell (`unknown`: the flag --labels is required).
  enum Mode : uint8_t { Unknown, Next, Same } mode = Unknown;
};
std::string_view toString(TextFeed::Mode mode);

/// Bytes of a rank of one role. state + pool is its arena and a bound; reserve is for libraries; host is the arena in
/// the host's memory.
struct Peak {
  uint64_t state = 0, pool = 0, reserve = 0, host = 0;
};

/// The file that was compiled.
struct ModelFile {
  std::string name;
  uint64_t size = 0;
  std::string sha256;
};

/// manifest.json.
struct Manifest {
  /// Minor version of the format in which it was written; new bundles have formatMinor.
  int64_t minor = formatMinor;
  /// SHA-256 over the lines "name size sha256\n" of `files`; made by writeBundle, checked by readBundle.
  std::string bundleHash;
  std::string planHash;
  ModelFile model;
  /// Files beside the model in which tensors have their source, with hashDataFile's hash: those that were there when it
  /// was compiled. par-run refuses others of their names.
  std::vector<File> data;
  std::vector<File> files;
  std::vector<MeshAxis> mesh;
  /// Index = rank.
  std::vector<Rank> ranks;
  /// Number of programs role-0.json ... role-(roles-1).json.
  uint32_t roles = 0;
  std::vector<Communicator> communicators;
  std::vector<Tensor> tensors;
  std::vector<Input> inputs;
  std::vector<Output> outputs;
  std::vector<Hyper> hypers;
  /// Present when a hyperparameter called "lr" follows a schedule.
  std::optional<LrSchedule> lr;
  std::optional<TextFeed> text;
  uint64_t microbatches = 1;
  /// Batches that one call of the entry `train` takes in sequence, each with an update: those between two flushes of an
  /// asynchronous schedule. Microbatch indices of batch k begin at k * microbatches; hyperparameters have a slot for
  /// each batch.
  uint64_t calls = 1;
  /// Rows of the whole batch, all ranks and microbatches.
  uint64_t batch = 1;
  uint64_t seed = 0;
  /// Threads a rank was compiled for.
  uint32_t threads = 1;
  /// The device of all ranks: "cpu" or "cuda". Generated kernels of a cuda bundle have a Launch.
  std::string device = "cpu";
  /// "isa: avx512f", "sm: 90", ...
  std::vector<std::string> needs;
  /// One for each role.
  std::vector<Peak> peak;
  /// Predicted time of a batch of the entry `train` (or the first one), nanoseconds; 0: none.
  uint64_t predictedNs = 0;

  /// nullptr when there is none of that name.
  const Tensor *findTensor(std::string_view name) const;
  const Input *findInput(std::string_view name) const;
  const Output *findOutput(std::string_view name) const;
  const Communicator *findCommunicator(std::string_view name) const;
};

/// nullopt when `rank` is in no group of `communicator`.
std::optional<Membership> membershipOf(const Communicator &communicator, uint32_t rank);
/// Whether `it`, in a run of this microbatch, is a send that `rank` leaves out: the rank is in no group of the
/// communicator, or its group has no such member.
bool isSentToNobody(const Communicator &communicator, const Instruction &it, int64_t microbatch, uint32_t rank);
/// The layout of an input in which a rank has a part; `layout` when none.
const Layout &layoutFor(const Input &input, uint32_t rank);
/// The rectangle that `rank` holds; nullptr when none.
const Rectangle *rectangleOf(const Layout &layout, uint32_t rank);
/// Coordinate of a rank on an axis; nullopt when the mesh has no such axis.
std::optional<uint32_t> coordinateOf(const Manifest &manifest, uint32_t rank, std::string_view axis);

/// Reads manifest.json, as strictly as parseProgram.
Expected<Manifest> parseManifest(std::string_view text, const std::string &where);
std::string writeManifest(const Manifest &manifest);

} // namespace par::format
