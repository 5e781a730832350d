#ifndef PAR_INTERFACES_COST_H
#define PAR_INTERFACES_COST_H

#include "par/Dialect/Par.h"

#include "par/Interfaces/Cost.h.inc"

#endif
