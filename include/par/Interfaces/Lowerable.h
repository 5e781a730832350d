#pragma once

#include "par/Dialect/Par.h"

#include "par/Interfaces/Lowerable.h.inc"
