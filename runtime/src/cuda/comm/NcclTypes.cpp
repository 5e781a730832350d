#include "NcclTypes.h"

#include "par/messages/Failure.h"

namespace par::cuda {

using core::Failure;
using core::Message;
using format::DType;
using format::Reduction;

WireType wireType(const comm::Communication &c, bool reduces) {
  switch (c.type) {
  case DType::I8:
    return {0};
  case DType::U8:
    return {1};
  case DType::I32:
    return {2};
  case DType::U32:
    return {3};
  case DType::I64:
    return {4};
  case DType::U64:
    return {5};
  case DType::F16:
    return {6};
  case DType::F32:
    return {7};
  case DType::F64:
    return {8};
  case DType::BF16:
    return {9};
  case DType::I16:
  case DType::U16:
  case DType::I1:
    break;
  }
  if (reduces)
    throw Failure::at("", Message::unsupportedInstruction, c.id,
                      "a reduction of " + std::string(format::toString(c.type)) + " over NCCL");
  return {1, format::sizeOf(c.type)}; // moved as bytes
}

int operation(Reduction reduction) {
  switch (reduction) {
  case Reduction::Sum:
    return 0;
  case Reduction::Prod:
    return 1;
  case Reduction::Max:
    return 2;
  case Reduction::Min:
    return 3;
  }
  return 0;
}

} // namespace par::cuda
