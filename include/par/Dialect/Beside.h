#ifndef PAR_DIALECT_BESIDE_H
#define PAR_DIALECT_BESIDE_H

#include "par/Dialect/Par.h"

#define GET_OP_CLASSES
#include "par/Dialect/BesideOps.h.inc"

#endif
