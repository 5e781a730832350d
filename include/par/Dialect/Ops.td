#ifndef PAR_DIALECT_OPS_TD
#define PAR_DIALECT_OPS_TD

include "par/Dialect/CollectiveOps.td"
include "par/Dialect/ContractOps.td"
include "par/Dialect/ElementwiseOps.td"
include "par/Dialect/IndexOps.td"
include "par/Dialect/LossOps.td"
include "par/Dialect/MarkerOps.td"
include "par/Dialect/NormOps.td"
include "par/Dialect/OptimizerOps.td"
include "par/Dialect/ProgramOps.td"
include "par/Dialect/ReduceOps.td"
include "par/Dialect/ShapeOps.td"
include "par/Dialect/StepOps.td"
include "par/Dialect/WindowOps.td"

#endif
