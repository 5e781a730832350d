#ifndef PAR_INTERFACES_DIFFERENTIABLE_H
#define PAR_INTERFACES_DIFFERENTIABLE_H

#include "par/Dialect/Par.h"

#include "par/Interfaces/Differentiable.h.inc"

#endif
