#ifndef PAR_INTERFACES_LOWERABLE_H
#define PAR_INTERFACES_LOWERABLE_H

#include "par/Dialect/Par.h"

#include "par/Interfaces/Lowerable.h.inc"

#endif
