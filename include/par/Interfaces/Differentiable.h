#pragma once

#include "par/Dialect/Par.h"

#include "par/Interfaces/Differentiable.h.inc"
