#ifndef PAR_DIALECT_PARTSOPS_TD
#define PAR_DIALECT_PARTSOPS_TD

include "par/Dialect/Base.td"

// Communication between stages of different meshes, in programs. Apart from the other ops, so that few files depend on
// it.

class Par_PartsOp<string name, list<Trait> traits> : Par_Op<name, traits> {
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// World ranks of each group.
    ::llvm::SmallVector<::llvm::ArrayRef<int64_t>> getRankGroups() {
      return ::llvm::map_to_vector(getGroups().getAsRange<::mlir::DenseI64ArrayAttr>(),
                                   [](::mlir::DenseI64ArrayAttr group) { return group.asArrayRef(); });
    }
    /// The rank to which operand `part` goes from a rank, or from which result `part` comes; -1 if there is none.
    int64_t getPeerOf(int64_t rank, unsigned part) {
      for (::llvm::ArrayRef<int64_t> group : getRankGroups())
        if (::llvm::is_contained(group, rank))
          return getPeers()[part] < int64_t(group.size()) ? group[getPeers()[part]] : -1;
      return -1;
    }
  }];
}

def Par_SendPartsOp : Par_PartsOp<"send_parts", [MemoryEffects<[MemWrite]>]> {
  let summary = "sends parts of a value to ranks of a stage with another mesh; a rendezvous with its recv_parts of the "
                "same tag";
  let description = [{
    `groups` lists world ranks, those that send before those that receive; `peers` gives for each operand the member of
    its group to which a rank sends it. A rank that is in no group, and one whose group has no such member, does not
    send. All are one group.

    (parts_c1) one peer an operand; (parts_c2) no rank is in two groups.

    Example: rank 0 and rank 1 each send half of their rows to one rank of the next stage and half to another:
    `par.send_parts %a, %b to [1, 2] groups [array<i64: 0, 2, 3>, array<i64: 1, 4, 5>] tag 7 : tensor<2x8xf32>,
    tensor<2x8xf32>`
  }];
  let arguments = (ins Variadic<Par_Tensor>:$operands, DenseI64ArrayAttr:$peers, ArrayAttr:$groups, I64Attr:$tag);
  let assemblyFormat = "$operands `to` $peers `groups` $groups `tag` $tag attr-dict `:` type($operands)";
}

def Par_RecvPartsOp : Par_PartsOp<"recv_parts", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "receives parts of a value, each from the member of the rank's group that `peers` says";
  let description = [{
    As `par.send_parts`, but every rank receives all of its results.

    (parts_c1) one peer a result; (parts_c2) no rank is in two groups.

    Example: `%a, %b = par.recv_parts from [0, 1] groups [array<i64: 0, 1, 2>] tag 7 : tensor<2x8xf32>, tensor<2x8xf32>`
  }];
  let arguments = (ins DenseI64ArrayAttr:$peers, ArrayAttr:$groups, I64Attr:$tag);
  let results = (outs Variadic<Par_Tensor>:$results);
  let assemblyFormat = "`from` $peers `groups` $groups `tag` $tag attr-dict `:` type($results)";
}

#endif
