#pragma once

#include "par/Dialect/Par.h"

#include "par/Interfaces/Decomposable.h.inc"
