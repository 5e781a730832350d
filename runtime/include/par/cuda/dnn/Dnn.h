// cuDNN through its graph API: one table of entry points, and the names of the parts of graphs (DnnGraph.h). No cuDNN
// header is needed; HeadersTest holds the numbers against cuDNN's own where it is installed.
#pragma once

#include "par/cuda/driver/Driver.h"

namespace par::cuda {

using DnnHandle = struct DnnObject *;
using DnnDescriptor = void *; ///< cudnnBackendDescriptor_t

namespace dnn {

/// Members of cudnnDataType_t.
inline constexpr int dataF32 = 0, dataF64 = 1, dataF16 = 2, dataI32 = 4, dataBF16 = 9, dataI64 = 10, dataBoolean = 11;
/// A cudnnConvolutionMode_t: windows are not mirrored.
inline constexpr int crossCorrelation = 1;

/// Kind of a descriptor: CUDNN_BACKEND_..._DESCRIPTOR.
enum class Kind : int {
  Pointwise = 0,
  Convolution = 1,
  Engine = 2,
  EngineConfig = 3,
  Heuristic = 4,
  Plan = 5,
  KnobChoice = 7,
  ConvolutionForward = 10,
  ConvolutionFilterGrad = 11,
  ConvolutionInputGrad = 12,
  PointwiseOperation = 13,
  Graph = 15,
  VariantPack = 16,
  Tensor = 17,
  Matmul = 18,
  MatmulOperation = 19,
  Reduction = 21,
  ReductionOperation = 22,
  ReshapeOperation = 31,
  Device = 38,
  AttentionForward = 41,
  AttentionBackward = 43,
};

/// Type of an attribute's elements: CUDNN_TYPE_....
enum class Type : int {
  Handle = 0,
  DataType = 1,
  Boolean = 2,
  Int64 = 3,
  Float = 4,
  Double = 5,
  Pointer = 6,
  ConvolutionMode = 7,
  HeuristicMode = 8,
  KnobType = 9,
  NumericalNote = 11,
  PointwiseMode = 14,
  Descriptor = 15,
  ReductionOperator = 18,
  Character = 24,
};

/// CUDNN_ATTR_....
enum class Attribute : int {
  PointwiseMode = 0,
  PointwiseComputeType = 1,
  PointwiseAxis = 9,
  ConvolutionComputeType = 100,
  ConvolutionMode = 101,
  ConvolutionDilations = 102,
  ConvolutionStrides = 103,
  ConvolutionPostPaddings = 104,
  ConvolutionPrePaddings = 105,
  ConvolutionSpatialDims = 106,
  HeuristicMode = 200,
  HeuristicGraph = 201,
  HeuristicResults = 202,
  HeuristicDevice = 204,
  ConfigEngine = 300,
  ConfigKnobChoices = 302,
  PlanHandle = 400,
  PlanConfig = 401,
  PlanWorkspace = 402,
  PlanDevice = 407,
  KnobType = 600,
  KnobValue = 601,
  ForwardAlpha = 700,
  ForwardBeta = 701,
  ForwardConvolution = 702,
  ForwardW = 703,
  ForwardX = 704,
  ForwardY = 705,
  InputGradAlpha = 706,
  InputGradBeta = 707,
  InputGradConvolution = 708,
  InputGradW = 709,
  InputGradDx = 710,
  InputGradDy = 711,
  FilterGradAlpha = 712,
  FilterGradBeta = 713,
  FilterGradConvolution = 714,
  FilterGradDw = 715,
  FilterGradX = 716,
  FilterGradDy = 717,
  PointwiseDescriptor = 750,
  PointwiseX = 751,
  PointwiseB = 752,
  PointwiseY = 753,
  PointwiseT = 758,
  GraphHandle = 800,
  GraphOperations = 801,
  TensorAlignment = 900,
  TensorDataType = 901,
  TensorDims = 902,
  TensorStrides = 903,
  TensorId = 906,
  TensorVirtual = 907,
  TensorByValue = 908,
  PackIds = 1000,
  PackPointers = 1001,
  PackWorkspace = 1003,
  EngineGraph = 1300,
  EngineIndex = 1301,
  EngineNotes = 1303,
  EngineDevice = 1307,
  MatmulComputeType = 1500,
  MatmulA = 1520,
  MatmulB = 1521,
  MatmulC = 1522,
  MatmulDescriptor = 1523,
  ReductionOperator = 1600,
  ReductionComputeType = 1601,
  ReductionX = 1610,
  ReductionY = 1611,
  ReductionDescriptor = 1612,
  ReshapeX = 2200,
  ReshapeY = 2201,
  DeviceProperties = 2702,
};

/// CUDNN_POINTWISE_...: exp(x), log(x), x + b and so on; x >= b; the index along an axis; x where t holds, else b.
inline constexpr int pointwiseAdd = 0, pointwiseMultiply = 1, pointwiseDivide = 6, pointwiseSubtract = 9,
                     pointwiseExp = 13, pointwiseLog = 15, pointwiseAtLeast = 303, pointwiseIndex = 501,
                     pointwiseSelect = 601;
/// CUDNN_REDUCE_TENSOR_....
inline constexpr int reduceAdd = 0, reduceMax = 3;

/// CUDNN_HEUR_MODE_...: the best first; the fallback.
inline constexpr int heuristicBest = 3, heuristicFallback = 2;
/// CUDNN_NUMERICAL_NOTE_....
inline constexpr int noteTensorCore = 0, noteDownConvert = 1, noteReducedPrecision = 2, noteNondeterministic = 4,
                     noteCount = 10;
/// CUDNN_KNOB_TYPE_COUNTS: an engine has at most so many knobs; later versions have more.
inline constexpr int knobCount = 64;

} // namespace dnn

#define PAR_DNN_ENTRIES(M)                                                                                             \
  M(version, size_t, "cudnnGetVersion", ())                                                                            \
  M(errorText, const char *, "cudnnGetErrorString", (int))                                                             \
  M(lastError, void, "cudnnGetLastErrorString", (char *text, size_t bytes))                                            \
  M(create, int, "cudnnCreate", (DnnHandle *))                                                                         \
  M(destroy, int, "cudnnDestroy", (DnnHandle))                                                                         \
  M(setStream, int, "cudnnSetStream", (DnnHandle, Stream))                                                             \
  M(descriptorCreate, int, "cudnnBackendCreateDescriptor", (int kind, DnnDescriptor *))                                \
  M(descriptorDestroy, int, "cudnnBackendDestroyDescriptor", (DnnDescriptor))                                          \
  M(descriptorFinalize, int, "cudnnBackendFinalize", (DnnDescriptor))                                                  \
  M(descriptorSet, int, "cudnnBackendSetAttribute",                                                                    \
    (DnnDescriptor, int attribute, int type, int64_t count, const void *elements))                                     \
  M(descriptorGet, int, "cudnnBackendGetAttribute",                                                                    \
    (DnnDescriptor, int attribute, int type, int64_t room, int64_t *count, void *elements))                            \
  M(execute, int, "cudnnBackendExecute", (DnnHandle, DnnDescriptor plan, DnnDescriptor variantPack))

/// cuDNN, opened: 9.0 or later. One for each rank; its handle belongs to the context that was current.
class Dnn {
public:
  /// Throws core::Failure where it is missing, old, or finds no GPU.
  Dnn();
  /// Without a GPU: plans are for one that is described, in the JSON of cuDNN 9.8 and later, and nothing
  /// runs.
  explicit Dnn(const std::string &properties);
  ~Dnn();
  Dnn(const Dnn &) = delete;
#define PAR_DNN_MEMBER(NAME, RESULT, SYMBOL, PARAMETERS) RESULT(*NAME) PARAMETERS = nullptr;
  PAR_DNN_ENTRIES(PAR_DNN_MEMBER)
#undef PAR_DNN_MEMBER
  DnnHandle handle = nullptr;
  DnnDescriptor device = nullptr; ///< of the described GPU; null with a real one
  /// What describe() would say, without a GPU in use. Throws core::Failure as the constructor does.
  static std::string installed();
  /// "cuDNN 9.19.0".
  std::string describe() const;
  /// "CUDNN_STATUS_BAD_PARAM: what the library said last".
  std::string words(int status) const;
  /// Throws core::Failure unless the status is 0: "WHOSE: WHAT failed: words".
  void check(int status, const std::string &whose, const std::string &what) const;

private:
  explicit Dnn(Library &&opened);
  Library library;
};

} // namespace par::cuda
