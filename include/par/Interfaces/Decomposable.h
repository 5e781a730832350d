#ifndef PAR_INTERFACES_DECOMPOSABLE_H
#define PAR_INTERFACES_DECOMPOSABLE_H

#include "par/Dialect/Par.h"

#include "par/Interfaces/Decomposable.h.inc"

#endif
