// The sentences about a job whose ranks NCCL could not join, before it is asked to. Every sentence in one table: a test
// walks it and finds each quoted. `{}` stands for a value.
#pragma once

#include "par/messages/Failure.h"

namespace par::cuda {

#define PAR_NCCL_SENTENCES(M)                                                                                          \
  M(versions, "rank {} has {}, and rank {} has {}; all hosts need one version (PAR_NCCL_LIBRARY names the file)")      \
  M(commId, "NCCL_COMM_ID is set for rank {}: NCCL would take whoever comes to that address; unset it")                \
  M(settings, "{} is {} for rank {}, and {} for rank {}; NCCL hangs where ranks differ in it: give all one value")     \
  M(sameGpu, "rank {} and rank {} have one GPU ({}); NCCL needs a GPU for each rank: CUDA_VISIBLE_DEVICES is {} and "  \
             "{}")                                                                                                     \
  M(noInterface, "NCCL_SOCKET_IFNAME={} of rank {} names no interface of its host, which has {}{}")                    \
  M(loopback, "NCCL of rank {} would listen on {} ({}), which other hosts do not reach{}")                             \
  M(otherInterface, "NCCL of rank {} listens on {} ({}), and the rendezvous came by {}; if ranks do not find each "    \
                    "other, set NCCL_SOCKET_IFNAME={}")                                                                \
  M(byRendezvous, "; the rendezvous came by {}: NCCL_SOCKET_IFNAME={}")                                                \
  M(uneven, "hosts have different numbers of ranks ({}); NCCL then uses as many channels everywhere as the host with " \
            "the fewest allows")                                                                                       \
  M(onlyWarned, "PAR_NCCL_CHECK=0 goes on all the same")                                                               \
  M(slowStart, "communicator \"{}\" of rank {} is not made after {} s (PAR_NCCL_START); it waits in {}")               \
  M(whereRootListens, "rank 0's NCCL listens on {} ({}), at ports that the system chooses: each host must reach it")   \
  M(sayMore, "NCCL_DEBUG=INFO shows what NCCL does")                                                                   \
  M(waitedFor, "rank {} waited for {}")                                                                                \
  M(onHost, "that is rank {}")

enum class NcclSentence : uint8_t {
#define PAR_NCCL_SENTENCE(key, text) key,
  PAR_NCCL_SENTENCES(PAR_NCCL_SENTENCE)
#undef PAR_NCCL_SENTENCE
};

inline constexpr core::MessageText ncclSentences[] = {
#define PAR_NCCL_SENTENCE(key, text) {#key, text},
    PAR_NCCL_SENTENCES(PAR_NCCL_SENTENCE)
#undef PAR_NCCL_SENTENCE
};
#undef PAR_NCCL_SENTENCES

/// The sentence with each `{}` replaced by the next value.
template <typename... Values>
std::string say(NcclSentence sentence, const Values &...values) {
  return core::format(ncclSentences[static_cast<size_t>(sentence)].text, core::shown(values)...);
}

} // namespace par::cuda
