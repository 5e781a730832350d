#ifndef PAR_INTERFACES_INTERPRETABLE_H
#define PAR_INTERFACES_INTERPRETABLE_H

#include "par/Dialect/Par.h"
#include "par/Interpreter/Tensor.h"

#include "par/Interfaces/Interpretable.h.inc"

#endif
