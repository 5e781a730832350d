#ifndef PAR_PLUGIN_TENSOROP_TD
#define PAR_PLUGIN_TENSOROP_TD

include "par/Dialect/Base.td"

// A tensor op of a plugin's dialect. As Par's own (Par_TensorOp) it has the attributes by which phases know it: the
// stage that it is placed on, and the shardings of its results.
class Par_PluginTensorOp<Dialect dialect, string mnemonic, dag ins_, dag outs_, list<Trait> traits = []>
    : Op<dialect, mnemonic, !listconcat(traits, [Pure])> {
  let arguments = !con(ins_, (ins DefaultValuedAttr<I64Attr, "-1">:$stage,
                                  DefaultValuedAttr<Par_ShardingsAttr, "{}">:$shardings));
  let results = outs_;
}

#endif
