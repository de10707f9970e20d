// A case for every message of the verifiers of declarations and functions.
// REQUIRES: kvc-opt
// RUN: kvc-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

// expected-error@+1 {{max_context must be at least 1, found 0}}
kvc.model @m attributes {max_context = 0 : i64} {
}

// -----

// expected-error@+1 {{max_context must be at least 1, found -8}}
kvc.model @m attributes {max_context = -8 : i64} {
}

// -----

// expected-error@+1 {{takes its tokenizer from @file, which is not a kvc.source}}
kvc.model @m attributes {max_context = 8 : i64, tokenizer = @file} {
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  // expected-error@+1 {{needs either a path or a seed}}
  kvc.source @s
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  // expected-error@+1 {{needs either a path or a seed}}
  kvc.source @s {path = "a", size = 1 : i64, seed = 1 : i64}
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  // expected-error@+1 {{needs the size of its file}}
  kvc.source @s {path = "a"}
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  // expected-error@+1 {{size must not be negative, found -1}}
  kvc.source @s {path = "a", size = -1 : i64}
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  // expected-error@+1 {{has 1 slices for 2 layers}}
  kvc.weight @w : !kvc.weight<2x4> = [#kvc.slice<@s, f32, 0, "w", [0.0, 1.0]>]
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  // expected-error@+1 {{has offsets, but its type has no packed layout}}
  kvc.weight @w : !kvc.weight<1x4x4> = [#kvc.slice<@s, f32, 0, "w", [0.0, 1.0]>] {offsets = array<i64: 0>}
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  // expected-error@+1 {{has 2 offsets for 1 layers}}
  kvc.weight @w : !kvc.weight<1x4> = [#kvc.slice<@s, f32, 0, "w", [0.0, 1.0]>] {offsets = array<i64: 0, 64>}
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  // expected-error@+1 {{takes values from @other, which is not a kvc.source}}
  kvc.weight @w : !kvc.weight<1x4> = [#kvc.slice<@other, f32, 0>]
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  // expected-error@+1 {{takes generated values from @s: its slices are f32, f16 or bf16 with a name and a range}}
  kvc.weight @w : !kvc.weight<1x4> = [#kvc.slice<@s, f32, 0, "w">]
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  // expected-error@+1 {{takes generated values from @s: its slices are f32, f16 or bf16 with a name and a range}}
  kvc.weight @w : !kvc.weight<1x4> = [#kvc.slice<@s, q8_0, 0, "w", [0.0, 1.0]>]
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {path = "a", size = 1000 : i64}
  // expected-error@+1 {{takes values from the file of @s, which have no range}}
  kvc.weight @w : !kvc.weight<1x4> = [#kvc.slice<@s, f32, 0, "w", [0.0, 1.0]>]
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {path = "a", size = 1000 : i64}
  // expected-error@+1 {{rows of 40 values are not whole blocks of q4_0, which hold 32}}
  kvc.weight @w : !kvc.weight<1x2x40> = [#kvc.slice<@s, q4_0, 0>]
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {path = "a", size = 1000 : i64}
  // expected-error@+1 {{has a slice at byte 941 that does not lie in @s, which has 1000 bytes}}
  kvc.weight @w : !kvc.weight<1x3x5> = [#kvc.slice<@s, f32, 941>]
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {path = "a", size = 1000 : i64}
  // expected-error@+1 {{does not lie in @s}}
  kvc.weight @w : !kvc.weight<1x4611686018427387904x4> = [#kvc.slice<@s, f32, 0>]
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {path = "a", size = 1000 : i64}
  // expected-error@+1 {{does not lie in @s}}
  kvc.weight @w : !kvc.weight<1x4> = [#kvc.slice<@s, f32, 9223372036854775807>]
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  // expected-error@+1 {{takes (tensor<?xi32, #kvc.rows>, !kvc.batch)}}
  kvc.forward @f(%b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    "test.end"() : () -> ()
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  // expected-error@+1 {{takes (tensor<?xi32, #kvc.rows>, !kvc.batch)}}
  kvc.program @f(%t: tensor<?xi32>, %b: !kvc.batch) attributes {phase = #kvc.phase<decode>} {
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  // expected-error@+1 {{returns the logits, one f32 tensor with a first dimension of #kvc.outputs}}
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) {
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  // expected-error@+1 {{returns the logits, one f32 tensor with a first dimension of #kvc.outputs}}
  kvc.program @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.rows> attributes {phase = #kvc.phase<decode>} {
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // expected-error@+1 {{does not return what @f declares}}
    kvc.return
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.program @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) attributes {phase = #kvc.phase<decode>} {
    kvc.dispatch "a" 3 {
    }
    // expected-error@+1 {{has the number of another dispatch: 3}}
    kvc.dispatch "b" 3 {
    }
    kvc.return
  }
}
