// What a rank sends in one step, and which line of the plan forced it.
#pragma once

#include "par/Base/Hardware.h"
#include "par/Phases/Annotate/Passes.h"
#include "par/format/Bundle.h"

namespace par {

/// The lines `communication per rank and step`: of every kind over every axis, the role that does most of it.
/// Where the hardware has links between hosts and the ranks are on several, each kind in hosts and between them.
void printCommunication(const format::Bundle &bundle, llvm::StringRef entry, const ModelPlan &model,
                        const Hardware &hardware, llvm::raw_ostream &os);

/// --explain=collectives: every communication of an entry with the module it is from and the rule that forced
/// it.
void explainCommunication(const format::Bundle &bundle, llvm::StringRef entry, const ModelPlan &model,
                          const Hardware &hardware, llvm::raw_ostream &os);

} // namespace par
