// The part of a control plane that every kind shares: its use of the board.
#pragma once

#include "Life.h"
#include "comm/shared/SharedState.h"
#include "par/comm/job/Launch.h"

namespace par::comm {

/// The label of the exchange after which ranks leave.
inline constexpr std::string_view endLabel = "end";

/// Which ranks get whose values.
enum class Sharing : uint8_t { broadcast, gather, allGather };

/// Everything but the exchange itself and the arenas.
class SharedStateControl : public Control {
public:
  /// `supervised`: of a rank that is started again when it is lost.
  SharedStateControl(SharedState &sharedState, std::string bundle, uint32_t rank,
                     const Supervised *supervised = nullptr)
      : sharedState(sharedState), supervised(supervised), bundle(std::move(bundle)), me(rank) {}

  uint32_t rank() const override { return me; }
  uint32_t world() const override { return sharedState.world(); }
  void meet(const Hello &hello) override;
  std::string broadcast(std::string_view label, std::string_view value, uint32_t root) override;
  std::vector<std::string> gather(std::string_view label, std::string_view value, uint32_t root) override;
  std::vector<std::string> allGather(std::string_view label, std::string_view value) override;
  void barrier(std::string_view label) override;
  bool startStep(uint64_t step) override;
  void requestStop() override { sharedState.stop(); }
  bool stopped() const override { return hasStopped; }
  bool stopRequested() const override { return sharedState.stops(); }
  void at(std::string_view instruction) override {
    sharedState[me].instruction.set(instruction);
    if (supervised)
      supervised->life().instruction.set(instruction);
  }
  void entry(std::string_view name) override { sharedState[me].entry.set(name); }
  void saved(std::string_view path) override { sharedState.saved.set(path); }
  void wrote(std::string_view path) override { sharedState.wrote.set(path); }
  [[noreturn]] void fail(int code, std::string_view message) override;

  const std::string &bundleName() const { return bundle; }
  /// This rank and all others have reached the end of the job.
  void finish();

protected:
  /// The values that this rank gets: all ranks', with `broadcast` only the root's, or none.
  virtual std::vector<std::string> exchange(Sharing sharing, std::string_view label, std::string_view value,
                                            uint32_t root) = 0;

  SharedState &sharedState;
  const Supervised *supervised;

private:
  /// exchange(), noted on the board as waiting for all other ranks.
  std::vector<std::string> share(Sharing sharing, std::string_view label, std::string_view value, uint32_t root);

  std::string bundle;
  uint32_t me;
  bool hasStopped = false, hasStarted = false;
};

/// The error of ranks whose exchanges do not match: "rank 0 is in broadcast "kernels", rank 3 in gather
/// "loss"".
std::string differentExchange(uint32_t a, Sharing sharingA, std::string_view labelA, uint32_t b, Sharing sharingB,
                              std::string_view labelB);

} // namespace par::comm
