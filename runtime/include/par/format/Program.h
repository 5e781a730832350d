// The program of one role. A program is tables (buffers, kernels, library calls, communicators, queues, events), blocks
// (instruction lists) and entries (lists of runs of blocks). In memory, references between tables are indices; in
// role-K.json they are names. docs/bundle.md documents the file, key by key.
#pragma once

#include "par/format/Error.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace par::format {

/// Version of role-K.json and manifest.json. Another major version is refused; a minor one may add opcodes and keys.
inline constexpr int64_t formatMajor = 1, formatMinor = 14;
/// At most this many queues in a program, and communications in a group.
inline constexpr uint64_t maxQueues = 8, maxGroup = 64;
/// Every entry of Buffer::at is a multiple of this, in bytes.
inline constexpr uint64_t arenaAlignment = 64;
/// The same in bundles for a GPU: the size of one access of a warp.
inline constexpr uint64_t gpuAlignment = 256;
/// There operands of kernels and calls, aliases too, begin at multiples of this: the widest access of a thread, by
/// which generated kernels read and write, and cuBLASLt's demand on a workspace.
inline constexpr uint64_t gpuAccess = 16;

/// Element types. `i1` takes one byte. Unsigned integers of more than 8 bits are types only of files.
enum class DType : uint8_t { F32, F64, F16, BF16, I64, I32, I16, I8, U8, I1, U64, U32, U16 };
/// Bytes of one element.
uint64_t sizeOf(DType type);
std::string_view toString(DType type);
std::optional<DType> dtypeOf(std::string_view word);

/// Memory spaces; each has one arena a rank.
enum class Space : uint8_t { Dev, Host };
/// `State` survives the entry and is saved; `Input` is written by `feed`; `Hyper` by the host before an
/// entry; `Temp` is everything else.
enum class BufferKind : uint8_t { State, Temp, Input, Hyper };
/// Selects a buffer's slot: nothing, the run's microbatch, or its version.
enum class Index : uint8_t { None, Mb, Ver };

/// No table entry.
inline constexpr uint32_t noIndex = ~0u;

/// A value's place. Operands name buffers; offsets stand here only.
struct Buffer {
  std::string name;
  Space space = Space::Dev;
  BufferKind kind = BufferKind::Temp;
  DType type = DType::F32;
  /// Local shape of one slot; [] is a scalar. Dense, row-major.
  std::vector<int64_t> shape;
  Index index = Index::None;
  /// One arena offset in bytes for each slot (its depth). Empty for an alias.
  std::vector<uint64_t> at;
  /// Alias: the buffer whose slots it lies in (never itself an alias; same space and index), and how many
  /// bytes after the slot's begin. noIndex for a buffer of its own.
  uint32_t of = noIndex;
  uint64_t offset = 0;
  /// State: the manifest's tensor. Hyper: the manifest's hyperparameter. Otherwise empty.
  std::string tensor;

  /// Bytes of one slot.
  uint64_t bytes() const;
};

/// `r`, `w`, `rw`, `acc` (adds to what is there; as `rw` for every check of memory).
enum class Access : uint8_t { Read, Write, ReadWrite, Accumulate };

/// A slot or event index, before the modulo: `@3` (Fixed), `@mb-1`, `@ver+1`. An operand without `@` means
/// `@mb+0` or `@ver+0` on a buffer so indexed, and slot 0 on one that is not.
struct SlotExpr {
  enum Base : uint8_t { Fixed, Mb, Ver } base = Fixed;
  int64_t offset = 0;
  bool operator==(const SlotExpr &) const = default;
};

/// `r x3`, `rw t4`, `acc g.wte`, `w p@ver+1`.
struct Operand {
  Access access = Access::Read;
  uint32_t buffer = 0;
  SlotExpr slot;
  bool operator==(const Operand &) const = default;
};

/// An immediate of a kernel. With an axis, the loader binds it to `coordinate(axis) * scale + value` of the
/// rank.
struct Imm {
  int64_t value = 0;
  std::string axis;
  int64_t scale = 1;
  bool operator==(const Imm &) const = default;
};

/// One operand of a kernel: how it is used, and bytes from the operand's begin (at most the buffer's). No other operand
/// of the same instruction may overlap a written one: in place is one `rw` operand.
struct KernelOperand {
  Access access = Access::Read;
  uint64_t bytes = 0;
};

/// Inputs of the value that a kernel leaves in an operand: operands that it reads, and immediates, as indices in order.
struct Dependence {
  std::vector<uint32_t> operands, imms;
  bool operator==(const Dependence &) const = default;
};

/// How a GPU starts a generated kernel: blocks of the grid, threads of a block, bytes of dynamic shared
/// memory of a block. All zero: a kernel of the CPU.
struct Launch {
  std::array<uint32_t, 3> grid{}, block{};
  uint64_t shared = 0;
  bool operator==(const Launch &) const = default;

  bool isGpu() const { return grid[0] != 0; }
  uint64_t threads() const { return uint64_t(block[0]) * block[1] * block[2]; }
};
/// The most threads of a block and bytes of its dynamic shared memory that a file may ask for.
inline constexpr uint64_t maxThreads = 1024, maxShared = 227 << 10;

/// Kernel ABI of the CPU: void k(void *const *ptr, const uint64_t *imm, uint32_t tile0, uint32_t tile1). For a GPU:
/// .visible .entry k(.u64 ptr0, .u64 ptr1, ..., .u64 imm0, ...), operands in order, then immediates.
struct Kernel {
  std::string name;
  /// True: a builtin of the runtime called `symbol`. False: a symbol of kernels-x86.so, or of kernels.ptx.
  bool builtin = false;
  std::string symbol;
  std::vector<KernelOperand> operands;
  uint32_t tiles = 1;
  /// Operations of one launch of generated code, as the compiler counts them, for predictions of its time; 0: not
  /// counted.
  int64_t flops = 0;
  /// How many immediates it takes.
  uint32_t imms = 0;
  /// Launch of a generated kernel for a GPU; its `tiles` is 1. The runtime chooses that of a builtin.
  Launch launch = {};
  /// One for each operand that is written, in order. Empty: each depends on all that is read.
  std::vector<Dependence> deps = {};
};

/// Applied by a matmul to P = op(A) op(B) (+ bias) before it is written, with a second operand, aux, of C's type: a
/// matrix of C's shape and strides, or the sum of op(A) or op(B) over k. gelu is the approximation by tanh.
enum class Epilogue : uint8_t {
  None,
  Gelu,     ///< C = gelu(P)
  GeluAux,  ///< C = gelu(P), aux = P
  GeluGrad, ///< C = P gelu'(aux)
  SumA,     ///< aux[i] = sum over k of op(A)[i,k]; alpha and beta do not apply
  SumB      ///< aux[j] = sum over k of op(B)[k,j]
};
std::string_view toString(Epilogue epilogue);
std::optional<Epilogue> epilogueOf(std::string_view word);

/// C[m,n] = alpha * op(A) op(B) + beta * C (+ bias[n]), for each index of `batch`. Row-major. op(A) is [m,k]:
/// A is stored [m,k] with leading stride lda, or [k,m] when transA; likewise B [k,n]. Strides in elements.
/// Operands in this order: r A, r B, r bias (if bias), aux (if the epilogue has one: `w`, or `r` of GeluGrad), C (`w`
/// when beta = 0, else `acc`), `w` workspace (if workspace > 0, a buffer of at least that many bytes).
struct Call {
  std::string name;
  /// "matmul" is the only kind of this version.
  std::string kind = "matmul";
  DType type = DType::F32;
  /// Type of C: `type`, or F32 if that is BF16 or F16. Sums are of f32 in any case.
  DType typeC = DType::F32;
  std::vector<int64_t> batch;
  int64_t m = 0, n = 0, k = 0;
  bool transA = false, transB = false;
  int64_t lda = 0, ldb = 0, ldc = 0;
  /// One stride for each batch dim; 0 repeats the matrix (not for C).
  std::vector<int64_t> strideA, strideB, strideC;
  double alpha = 1, beta = 0;
  bool bias = false;
  /// Only in bundles for cuda. GELU needs no batch, alpha 1, beta 0, C of the operands' type, and ldc a multiple of 8.
  /// A sum needs no batch, C of f32, no bias, and an operand in which the sum's elements are contiguous.
  Epilogue epilogue = Epilogue::None;
  bool sums() const { return epilogue == Epilogue::SumA || epilogue == Epilogue::SumB; }
  bool writesAux() const { return epilogue == Epilogue::GeluAux || sums(); }
  bool hasAux() const { return writesAux() || epilogue == Epilogue::GeluGrad; }
  /// Size of aux, in C's type.
  uint64_t auxBytes() const;
  /// Cap of the library's workspace in bytes; a library that wants more is an error at load.
  uint64_t workspace = 0;

  /// Elements from the begin of an operand to its last touched one, plus 1. `which`: 'a', 'b', 'c'.
  /// 0 when the numbers do not fit 63 bits.
  uint64_t extent(char which) const;
};

/// A communicator of the manifest (`name`), bound to one queue.
struct Comm {
  std::string name;
  uint32_t queue = 0;
};

/// Slot-indexed event of depth `depth` (1 when index is None).
struct Event {
  std::string name;
  Index index = Index::None;
  uint32_t depth = 1;
};

enum class Op : uint8_t { Kernel, Call, Coll, Send, Recv, Group, Copy, Fill, Signal, Wait, Feed, Fetch };
/// Count `n` of a collective, P members, in elements: all_reduce, broadcast, reduce: the operand holds n.
/// all_gather: member i gives n, all get P*n in member order. reduce_scatter: each gives P*n, member i gets
/// part i of the sum. all_to_all: each gives P parts of n, member i gets part i of every member.
/// One operand `rw x`: in place (gather: own part is part i of x; scatter: result lies in part i, the other
/// parts are undefined afterwards). all_gather, reduce_scatter and all_to_all may have two, `r x`, `w y`.
enum class CollKind : uint8_t { AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast, Reduce };
enum class Reduction : uint8_t { Sum, Max, Min, Prod };
std::string_view toString(Op op);
std::string_view toString(CollKind kind);
std::string_view toString(Reduction reduction);
std::string_view toString(Access access);
std::string_view toString(Space space);
std::string_view toString(BufferKind kind);
std::string_view toString(Index index);

/// One instruction. Only the fields that the table of docs/bundle.md lists for its op are meaningful; the
/// others hold their defaults.
struct Instruction {
  Op op = Op::Kernel;
  uint32_t queue = 0;
  std::vector<Operand> operands;
  uint32_t kernel = 0;                  ///< kernel: index into Program::kernels
  std::vector<Imm> imms;                ///< kernel
  uint32_t call = 0;                    ///< call: index into Program::calls
  uint32_t comm = 0;                    ///< coll, send, recv: index into Program::comms
  CollKind coll = CollKind::AllReduce;  ///< coll
  Reduction reduction = Reduction::Sum; ///< coll (all_reduce, reduce_scatter, reduce)
  DType type = DType::F32;              ///< coll, send, recv: element type
  uint64_t n = 0;                       ///< coll, send, recv, copy, fill: elements; group: instructions
  uint32_t root = 0;                    ///< coll (broadcast, reduce): member index
  std::vector<uint32_t> peer;           ///< send, recv: member index; several: by microbatch modulo their number
  uint64_t tag = 0;                     ///< coll, send, recv: id of the global communication
  double value = 0;                     ///< fill: converted to the buffer's type
  uint32_t event = 0;                   ///< signal, wait: index into Program::events
  SlotExpr eventSlot;                   ///< signal, wait
  std::string name;                     ///< feed: input of the manifest; fetch: output of the manifest
  int32_t provenance = -1;              ///< index into Bundle::provenance, or -1
};

/// A fragment with the communication around it.
struct Block {
  std::string name;
  std::vector<Instruction> instructions;
};

/// One execution of a block. Runs that belong to no microbatch carry 0. Both sides of a communication carry
/// the same microbatch.
struct Run {
  uint32_t block = 0;
  int64_t microbatch = 0;
  int64_t version = 0;
};

/// One graph that is called as a whole: `train`, `eval`, `predict`, `init`.
struct Entry {
  std::string name;
  std::vector<Run> runs;
};

/// Arena of the `dev` space: state buffers lie in [0, state), all others in [state, state + pool). `host` is
/// the size of the `host` space's arena. Bytes.
struct Arena {
  uint64_t state = 0, pool = 0, host = 0;
  /// On the device: bytes of one rank at its peak.
  uint64_t deviceBytes() const { return state + pool; }
};

/// All that one role executes. role-K.json, K = its place in Bundle::programs.
struct Program {
  /// "stage0"; messages print instructions as stage0/forward:12.
  std::string name;
  Arena arena;
  std::vector<std::string> queues;
  std::vector<Buffer> buffers;
  std::vector<Kernel> kernels;
  std::vector<Call> calls;
  std::vector<Comm> comms;
  std::vector<Event> events;
  std::vector<Block> blocks;
  std::vector<Entry> entries;

  /// noIndex when there is none of that name.
  uint32_t findBlock(std::string_view name) const;
  uint32_t findEntry(std::string_view name) const;
  uint32_t findBuffer(std::string_view name) const;
};

/// Calls that an entry makes of its step, one batch after the other: each updates, and each run says after how many
/// updates.
uint32_t callsOf(const Entry &entry);
/// Slots of a buffer (an alias has those of the buffer it lies in).
uint32_t depthOf(const Program &program, uint32_t buffer);
/// The slot that `expr` means in `run`, in [0, depth).
uint32_t slotOf(const SlotExpr &expr, uint32_t depth, const Run &run);
/// Arena offset in bytes of an operand in a run, alias resolved.
uint64_t addressOf(const Program &program, const Operand &operand, const Run &run);
/// "stage0/forward:12".
std::string instructionId(const Program &program, uint32_t block, size_t n);
/// "f32[2x128x128]".
std::string describe(const Buffer &buffer);
/// "rw x3@mb-1".
std::string describe(const Program &program, const Operand &operand);

/// Reads role-K.json. `where` begins each message (a file name). Refuses unknown or duplicate keys, unknown
/// opcodes, floats where integers stand, depth over 16, files over 256 MiB, other major versions, and indices
/// or names that no table holds. Never crashes on hostile bytes.
Expected<Program> parseProgram(std::string_view text, const std::string &where);
/// The text of role-K.json: one instruction a line. writeProgram(parseProgram(t)) == t for texts that it wrote.
std::string writeProgram(const Program &program);

} // namespace par::format
