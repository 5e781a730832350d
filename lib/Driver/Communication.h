// What a rank sends in one step, and which line of the plan forced it.
#ifndef PAR_LIB_DRIVER_COMMUNICATION_H
#define PAR_LIB_DRIVER_COMMUNICATION_H

#include "par/Annotate/Passes.h"
#include "par/format/Bundle.h"

namespace par {

/// The lines `communication per rank and step`: of every kind over every axis, the role that does most of it.
void printCommunication(const format::Bundle &bundle, llvm::StringRef entry, const ModelPlan &model,
                        llvm::raw_ostream &os);

/// --explain=collectives: every communication of an entry with the module it is from and the rule that forced
/// it.
void explainCommunication(const format::Bundle &bundle, llvm::StringRef entry, const ModelPlan &model,
                          llvm::raw_ostream &os);

} // namespace par

#endif // PAR_LIB_DRIVER_COMMUNICATION_H
