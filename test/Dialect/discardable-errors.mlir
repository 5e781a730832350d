// A discardable attribute of the dialect stands only where it is declared, with a value of its kind.
// RUN: par-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

// expected-error @below {{has the attribute par.calls with the value 0 : i64, which it cannot have}}
par.step @train() attributes {par.calls = 0} {
  par.return
}

// -----

par.step @train() {
  // expected-error @below {{has the attribute par.versions, which only par.entry may have}}
  %0 = par.constant {par.versions = array<i64: 0>} dense<1.0> : tensor<4xf32>
  par.return
}

// -----

par.step @train() {
  // expected-error @below {{has the attribute "par.colour", which the dialect does not declare}}
  %0 = par.constant {par.colour = "red"} dense<1.0> : tensor<4xf32>
  par.return
}
