#pragma once

#include "par/Dialect/Par.h"

#include "par/Dialect/Interfaces/Decomposable.h.inc"
