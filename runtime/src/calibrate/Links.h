// Communication of a bundle's kinds and sizes, measured through the communicators in use.
#pragma once

#include "Bench.h"
#include "Rows.h"

namespace par::calibrate {

/// A collective or a send of some program, and who takes part in measuring it.
struct Link {
  format::Op op = format::Op::Coll;
  std::string communicator;
  comm::Communication what;    ///< kind, reduction, type, n, and the root; of a send without its peer
  std::vector<uint32_t> ranks; ///< all of a collective; sender and receiver
};

/// Each distinct one, the same on every rank and in the same order.
std::vector<Link> linksOf(const format::Bundle &bundle);

/// Scratch memory for them: operands of the largest side by side.
uint64_t scratchForLinks(const std::vector<Link> &links, std::span<const comm::Members> table);

/// Scratch memory that each rank needs beside: for the copies of a rank that comes late.
inline constexpr uint64_t smallScratch = 131'072;

/// This rank's part of a link as a step. Only of its ranks.
void addLink(const Bench &bench, const Link &link, MadeEntry &entry);

/// Collective. `hosts` names each rank's.
void measureLinks(Bench &bench, const std::vector<Link> &links, const std::vector<std::string> &hosts, double seconds,
                  Rows &rows);

} // namespace par::calibrate
