// The version of Par, which CMake reads here too.
#pragma once

#define PAR_VERSION "0.1.0"
