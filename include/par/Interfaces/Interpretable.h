#pragma once

#include "par/Dialect/Par.h"
#include "par/Interpreter/Tensor.h"

#include "par/Interfaces/Interpretable.h.inc"
