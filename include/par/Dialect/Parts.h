#ifndef PAR_DIALECT_PARTS_H
#define PAR_DIALECT_PARTS_H

#include "par/Dialect/Par.h"

#define GET_OP_CLASSES
#include "par/Dialect/PartsOps.h.inc"

#endif
