#pragma once

#include "par/Base/Tensor.h"
#include "par/Dialect/Par.h"

#include "par/Dialect/Interfaces/Interpretable.h.inc"
