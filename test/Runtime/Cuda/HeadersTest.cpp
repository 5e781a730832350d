// If NVIDIA's headers are available, the runtime's own declarations are checked against them. No other code needs them.
#include "par/cuda/blas/Gemm.h"
#include "par/cuda/comm/Nccl.h"
#include "par/cuda/dnn/Dnn.h"

#include <cstddef>

namespace own = par::cuda;

#define SAME(OURS, THEIRS) static_assert(static_cast<long long>(OURS) == static_cast<long long>(THEIRS))

#if __has_include(<cuda.h>)
#include <cuda.h>
SAME(own::notReady, CUDA_ERROR_NOT_READY);
SAME(own::streamNonBlocking, CU_STREAM_NON_BLOCKING);
SAME(own::eventWithoutTiming, CU_EVENT_DISABLE_TIMING);
SAME(own::captureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
SAME(own::attributeMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
SAME(own::attributeMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
SAME(own::functionSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
SAME(sizeof(own::Address), sizeof(CUdeviceptr));
#endif

#if __has_include(<cublasLt.h>)
#include <cublasLt.h>
using Theirs = cublasLtMatmulHeuristicResult_t;
SAME(sizeof(own::BlasAlgorithm), sizeof(cublasLtMatmulAlgo_t));
SAME(sizeof(own::BlasHeuristic), sizeof(Theirs));
SAME(offsetof(own::BlasHeuristic, workspace), offsetof(Theirs, workspaceSize));
SAME(offsetof(own::BlasHeuristic, state), offsetof(Theirs, state));
#endif

#if __has_include(<nccl.h>)
#include <nccl.h>
SAME(own::ncclInProgress, ::ncclInProgress);
SAME(own::ncclRemoteError, ::ncclRemoteError);
SAME(own::ncclNoColor, NCCL_SPLIT_NOCOLOR);
SAME(own::NcclConfig::unset, NCCL_CONFIG_UNDEF_INT);
SAME(sizeof(own::NcclId), sizeof(ncclUniqueId));
SAME(offsetof(own::NcclConfig, magic), offsetof(ncclConfig_t, magic));
SAME(offsetof(own::NcclConfig, version), offsetof(ncclConfig_t, version));
SAME(offsetof(own::NcclConfig, blocking), offsetof(ncclConfig_t, blocking));
SAME(offsetof(own::NcclConfig, netName), offsetof(ncclConfig_t, netName));
SAME(offsetof(own::NcclConfig, splitShare), offsetof(ncclConfig_t, splitShare));
SAME(offsetof(own::NcclConfig, trafficClass), offsetof(ncclConfig_t, trafficClass));
#endif

#if __has_include(<cudnn.h>)
#include <cudnn.h>
namespace dnn = own::dnn;
SAME(dnn::Kind::Pointwise, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
SAME(dnn::Kind::Convolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
SAME(dnn::Kind::Engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR);
SAME(dnn::Kind::EngineConfig, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
SAME(dnn::Kind::Heuristic, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
SAME(dnn::Kind::Plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
SAME(dnn::Kind::KnobChoice, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR);
SAME(dnn::Kind::ConvolutionForward, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
SAME(dnn::Kind::ConvolutionFilterGrad, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR);
SAME(dnn::Kind::ConvolutionInputGrad, CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR);
SAME(dnn::Kind::PointwiseOperation, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
SAME(dnn::Kind::Graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
SAME(dnn::Kind::VariantPack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
SAME(dnn::Kind::Tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
SAME(dnn::Kind::Matmul, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
SAME(dnn::Kind::MatmulOperation, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
SAME(dnn::Kind::Reduction, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
SAME(dnn::Kind::ReductionOperation, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
SAME(dnn::Kind::ReshapeOperation, CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
SAME(dnn::Attribute::PointwiseMode, CUDNN_ATTR_POINTWISE_MODE);
SAME(dnn::Attribute::PointwiseComputeType, CUDNN_ATTR_POINTWISE_MATH_PREC);
SAME(dnn::Attribute::PointwiseAxis, CUDNN_ATTR_POINTWISE_AXIS);
SAME(dnn::Attribute::PointwiseDescriptor, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
SAME(dnn::Attribute::PointwiseX, CUDNN_ATTR_OPERATION_POINTWISE_XDESC);
SAME(dnn::Attribute::PointwiseB, CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
SAME(dnn::Attribute::PointwiseY, CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
SAME(dnn::Attribute::PointwiseT, CUDNN_ATTR_OPERATION_POINTWISE_TDESC);
SAME(dnn::Attribute::MatmulComputeType, CUDNN_ATTR_MATMUL_COMP_TYPE);
SAME(dnn::Attribute::MatmulA, CUDNN_ATTR_OPERATION_MATMUL_ADESC);
SAME(dnn::Attribute::MatmulB, CUDNN_ATTR_OPERATION_MATMUL_BDESC);
SAME(dnn::Attribute::MatmulC, CUDNN_ATTR_OPERATION_MATMUL_CDESC);
SAME(dnn::Attribute::MatmulDescriptor, CUDNN_ATTR_OPERATION_MATMUL_DESC);
SAME(dnn::Attribute::ReductionOperator, CUDNN_ATTR_REDUCTION_OPERATOR);
SAME(dnn::Attribute::ReductionComputeType, CUDNN_ATTR_REDUCTION_COMP_TYPE);
SAME(dnn::Attribute::ReductionX, CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
SAME(dnn::Attribute::ReductionY, CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
SAME(dnn::Attribute::ReductionDescriptor, CUDNN_ATTR_OPERATION_REDUCTION_DESC);
SAME(dnn::Attribute::ReshapeX, CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
SAME(dnn::Attribute::ReshapeY, CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
SAME(dnn::pointwiseAdd, CUDNN_POINTWISE_ADD);
SAME(dnn::pointwiseMultiply, CUDNN_POINTWISE_MUL);
SAME(dnn::pointwiseDivide, CUDNN_POINTWISE_DIV);
SAME(dnn::pointwiseSubtract, CUDNN_POINTWISE_SUB);
SAME(dnn::pointwiseExp, CUDNN_POINTWISE_EXP);
SAME(dnn::pointwiseLog, CUDNN_POINTWISE_LOG);
SAME(dnn::pointwiseAtLeast, CUDNN_POINTWISE_CMP_GE);
SAME(dnn::pointwiseIndex, CUDNN_POINTWISE_GEN_INDEX);
SAME(dnn::pointwiseSelect, CUDNN_POINTWISE_BINARY_SELECT);
SAME(dnn::reduceAdd, CUDNN_REDUCE_TENSOR_ADD);
SAME(dnn::reduceMax, CUDNN_REDUCE_TENSOR_MAX);
SAME(dnn::dataBoolean, CUDNN_DATA_BOOLEAN);
SAME(dnn::Kind::Device, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
SAME(dnn::Type::Character, CUDNN_TYPE_CHAR);
SAME(dnn::Attribute::HeuristicDevice, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
SAME(dnn::Attribute::PlanDevice, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
SAME(dnn::Attribute::EngineDevice, CUDNN_ATTR_ENGINE_DEVICEPROP);
SAME(dnn::Attribute::DeviceProperties, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
SAME(dnn::Kind::AttentionForward, CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR);
SAME(dnn::Kind::AttentionBackward, CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR);
SAME(dnn::Type::Handle, CUDNN_TYPE_HANDLE);
SAME(dnn::Type::DataType, CUDNN_TYPE_DATA_TYPE);
SAME(dnn::Type::Boolean, CUDNN_TYPE_BOOLEAN);
SAME(dnn::Type::Int64, CUDNN_TYPE_INT64);
SAME(dnn::Type::Float, CUDNN_TYPE_FLOAT);
SAME(dnn::Type::Double, CUDNN_TYPE_DOUBLE);
SAME(dnn::Type::Pointer, CUDNN_TYPE_VOID_PTR);
SAME(dnn::Type::ConvolutionMode, CUDNN_TYPE_CONVOLUTION_MODE);
SAME(dnn::Type::HeuristicMode, CUDNN_TYPE_HEUR_MODE);
SAME(dnn::Type::KnobType, CUDNN_TYPE_KNOB_TYPE);
SAME(dnn::Type::NumericalNote, CUDNN_TYPE_NUMERICAL_NOTE);
SAME(dnn::Type::PointwiseMode, CUDNN_TYPE_POINTWISE_MODE);
SAME(dnn::Type::Descriptor, CUDNN_TYPE_BACKEND_DESCRIPTOR);
SAME(dnn::Type::ReductionOperator, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE);
SAME(dnn::Attribute::ConvolutionComputeType, CUDNN_ATTR_CONVOLUTION_COMP_TYPE);
SAME(dnn::Attribute::ConvolutionMode, CUDNN_ATTR_CONVOLUTION_CONV_MODE);
SAME(dnn::Attribute::ConvolutionDilations, CUDNN_ATTR_CONVOLUTION_DILATIONS);
SAME(dnn::Attribute::ConvolutionStrides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
SAME(dnn::Attribute::ConvolutionPostPaddings, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
SAME(dnn::Attribute::ConvolutionPrePaddings, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
SAME(dnn::Attribute::ConvolutionSpatialDims, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
SAME(dnn::Attribute::HeuristicMode, CUDNN_ATTR_ENGINEHEUR_MODE);
SAME(dnn::Attribute::HeuristicGraph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
SAME(dnn::Attribute::HeuristicResults, CUDNN_ATTR_ENGINEHEUR_RESULTS);
SAME(dnn::Attribute::ConfigEngine, CUDNN_ATTR_ENGINECFG_ENGINE);
SAME(dnn::Attribute::ConfigKnobChoices, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES);
SAME(dnn::Attribute::PlanHandle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE);
SAME(dnn::Attribute::PlanConfig, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
SAME(dnn::Attribute::PlanWorkspace, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
SAME(dnn::Attribute::KnobType, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE);
SAME(dnn::Attribute::KnobValue, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE);
SAME(dnn::Attribute::ForwardAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA);
SAME(dnn::Attribute::ForwardBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA);
SAME(dnn::Attribute::ForwardConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
SAME(dnn::Attribute::ForwardW, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
SAME(dnn::Attribute::ForwardX, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X);
SAME(dnn::Attribute::ForwardY, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
SAME(dnn::Attribute::InputGradAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA);
SAME(dnn::Attribute::InputGradBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA);
SAME(dnn::Attribute::InputGradConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC);
SAME(dnn::Attribute::InputGradW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
SAME(dnn::Attribute::InputGradDx, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
SAME(dnn::Attribute::InputGradDy, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY);
SAME(dnn::Attribute::FilterGradAlpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA);
SAME(dnn::Attribute::FilterGradBeta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA);
SAME(dnn::Attribute::FilterGradConvolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC);
SAME(dnn::Attribute::FilterGradDw, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
SAME(dnn::Attribute::FilterGradX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X);
SAME(dnn::Attribute::FilterGradDy, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
SAME(dnn::Attribute::GraphHandle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE);
SAME(dnn::Attribute::GraphOperations, CUDNN_ATTR_OPERATIONGRAPH_OPS);
SAME(dnn::Attribute::TensorAlignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
SAME(dnn::Attribute::TensorDataType, CUDNN_ATTR_TENSOR_DATA_TYPE);
SAME(dnn::Attribute::TensorDims, CUDNN_ATTR_TENSOR_DIMENSIONS);
SAME(dnn::Attribute::TensorStrides, CUDNN_ATTR_TENSOR_STRIDES);
SAME(dnn::Attribute::TensorId, CUDNN_ATTR_TENSOR_UNIQUE_ID);
SAME(dnn::Attribute::TensorVirtual, CUDNN_ATTR_TENSOR_IS_VIRTUAL);
SAME(dnn::Attribute::TensorByValue, CUDNN_ATTR_TENSOR_IS_BY_VALUE);
SAME(dnn::Attribute::PackIds, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
SAME(dnn::Attribute::PackPointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
SAME(dnn::Attribute::PackWorkspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
SAME(dnn::Attribute::EngineGraph, CUDNN_ATTR_ENGINE_OPERATION_GRAPH);
SAME(dnn::Attribute::EngineIndex, CUDNN_ATTR_ENGINE_GLOBAL_INDEX);
SAME(dnn::Attribute::EngineNotes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE);
SAME(dnn::dataF32, CUDNN_DATA_FLOAT);
SAME(dnn::dataF64, CUDNN_DATA_DOUBLE);
SAME(dnn::dataF16, CUDNN_DATA_HALF);
SAME(dnn::dataI32, CUDNN_DATA_INT32);
SAME(dnn::dataBF16, CUDNN_DATA_BFLOAT16);
SAME(dnn::dataI64, CUDNN_DATA_INT64);
SAME(dnn::crossCorrelation, CUDNN_CROSS_CORRELATION);
SAME(dnn::heuristicBest, CUDNN_HEUR_MODE_A);
SAME(dnn::heuristicFallback, CUDNN_HEUR_MODE_FALLBACK);
SAME(dnn::noteTensorCore, CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
SAME(dnn::noteDownConvert, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS);
SAME(dnn::noteReducedPrecision, CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION);
SAME(dnn::noteNondeterministic, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC);
static_assert(dnn::noteCount >= CUDNN_NUMERICAL_NOTE_TYPE_COUNT && dnn::knobCount >= CUDNN_KNOB_TYPE_COUNTS);
SAME(sizeof(own::DnnDescriptor), sizeof(cudnnBackendDescriptor_t));
#endif
