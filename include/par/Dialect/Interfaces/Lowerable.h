#pragma once

#include "par/Dialect/Par.h"

#include "par/Dialect/Interfaces/Lowerable.h.inc"
