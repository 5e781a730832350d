// Makes the cuDNN graphs of a program's builtins. Rank 0 chooses each graph's engine, from the tuning file or by
// timing, and all ranks use the same.
#include "LibraryGraphs.h"

#include "AttentionGraph.h"
#include "ConvolutionGraph.h"
#include "par/messages/Failure.h"

namespace par::cuda {

using core::Failure;
using core::Message;

std::vector<DnnChoice> GraphKernel::propose(size_t most) const {
  std::string why;
  std::vector<DnnChoice> choices = graph.propose(limits, most, &why);
  if (choices.empty())
    throw Failure::at("", Message::dnnNoEngine, use.kernel, use.node, graph.dnn.describe(),
                      core::grouped(limits.workspace), why);
  return choices;
}

bool isGraphBuiltin(std::string_view builtin) {
  return ConvolutionGraph::isBuiltin(builtin) || AttentionGraph::isBuiltin(builtin);
}

std::unique_ptr<GraphKernel> makeGraphKernel(const Dnn &dnn, const GraphUse &use) {
  if (ConvolutionGraph::isBuiltin(use.builtin))
    return std::make_unique<ConvolutionGraph>(dnn, use);
  return std::make_unique<AttentionGraph>(dnn, use);
}

} // namespace par::cuda
