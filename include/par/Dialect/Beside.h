#pragma once

#include "par/Dialect/Par.h"

#define GET_OP_CLASSES
#include "par/Dialect/BesideOps.h.inc"
