// A case for every message of the verifiers of regions and slots.
// REQUIRES: kvc-opt
// RUN: kvc-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // expected-error@+1 {{count must be at least 1, found 0}}
    kvc.layers 0 {
    ^bb0(%i: index):
    }
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // expected-error@+1 {{count must be at least 1, found -1}}
    kvc.layers -1 {
    ^bb0(%i: index):
    }
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // expected-error@+1 {{the body takes the carried values, then the layer's index}}
    kvc.layers 2 {
    }
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{the body takes the carried values, then the layer's index}}
    %y = kvc.layers 2 (%x) : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows> {
    ^bb0(%i: index):
      kvc.yield %x : tensor<?x64xf32, #kvc.rows>
    }
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{carries, yields and returns the same types}}
    %y = kvc.layers 2 (%x) : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows> {
    ^bb0(%a: tensor<?x64xf32, #kvc.rows>, %i: index):
      kvc.yield
    }
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %h = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x4x16xf32, #kvc.rows>
    // expected-error@+1 {{yields other types than it returns}}
    %y = kvc.kernel "k" -> tensor<?x64xf32, #kvc.rows> {
      kvc.yield %h : tensor<?x4x16xf32, #kvc.rows>
    }
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // expected-error@+1 {{must not contain kvc.barrier}}
    kvc.kernel "k" {
      kvc.barrier
    }
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // expected-error@+1 {{must not contain kvc.kernel}}
    kvc.dispatch "k" 0 {
      kvc.kernel "inner" {
      }
    }
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.source @s {seed = 1 : i64}
  kvc.weight @m : !kvc.weight<1x6x64> = [#kvc.slice<@s, f32, 0, "m", [0.0, 1.0]>]
  kvc.cache @kv : !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 64>
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    %h = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x4x16xf32, #kvc.rows>
    // expected-error@+1 {{has more than one anchor}}
    kvc.kernel "k" {
      %c = kvc.attention %h, @kv, %b {scale = 1.0 : f64} : tensor<?x4x16xf32, #kvc.rows>
      %y = kvc.linear %x, [@m] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x6xf32, #kvc.rows>
    }
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // expected-error@+1 {{yields nothing: its results lie in slots}}
    kvc.dispatch "k" 0 {
      %y = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
      kvc.yield %y : tensor<?x64xf32, #kvc.rows>
    }
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    kvc.dispatch "k" 0 {
      // expected-error@+1 {{in a kvc.dispatch takes a value from outside, which belongs into a slot}}
      %y = kvc.add %x, %x : tensor<?x64xf32, #kvc.rows>
    }
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // expected-error@+1 {{a q8 slot holds blocks of 32 values, found 48 in a row}}
    %y = kvc.read slot<rows, offset = 0, stride = 256, q8> : tensor<?x48xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // expected-error@+1 {{takes 256 bytes, but the slot's stride is 192}}
    %y = kvc.read slot<rows, offset = 0, stride = 192, f32> : tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // expected-error@+1 {{takes 96 bytes, but the slot's stride is 64}}
    %y = kvc.read slot<rows, offset = 0, stride = 64, q8> : tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // expected-error@+1 {{takes 128 bytes, but the slot's stride is 64}}
    %y = kvc.read slot<rows, offset = 0, stride = 64, f32> : tensor<?x4x?xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{is not the slot's, which is outputs}}
    kvc.write %x, slot<outputs, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // expected-error@+1 {{is not the slot's, which is rows}}
    %y = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.outputs>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{a q8 slot takes the result of a kvc.quantize}}
    kvc.write %x, slot<rows, offset = 0, stride = 256, q8> : tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{a worker slot is filled by kvc.stage}}
    kvc.write %x, slot<worker, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // expected-error@+1 {{a worker slot holds what its kvc.stage returns}}
    %y = kvc.read slot<worker, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{stages in a worker slot, found rows}}
    %y = kvc.stage %x, slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{a q8 slot takes the result of a kvc.quantize}}
    %y = kvc.stage %x, slot<worker, offset = 0, stride = 256, q8> : tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{a bf16 slot takes the result of a kvc.round to it}}
    kvc.write %x, slot<rows, offset = 0, stride = 128, bf16> : tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    %x = kvc.read slot<rows, offset = 0, stride = 256, f32> : tensor<?x64xf32, #kvc.rows>
    %r = kvc.round %x to bf16 : tensor<?x64xf32, #kvc.rows>
    // expected-error@+1 {{a f16 slot takes the result of a kvc.round to it}}
    %y = kvc.stage %r, slot<worker, offset = 0, stride = 128, f16> : tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}

// -----

kvc.model @m attributes {max_context = 8 : i64} {
  kvc.forward @f(%t: tensor<?xi32, #kvc.rows>, %b: !kvc.batch) -> tensor<?x6xf32, #kvc.outputs> {
    // expected-error@+1 {{takes 128 bytes, but the slot's stride is 64}}
    %x = kvc.read slot<rows, offset = 0, stride = 64, bf16> : tensor<?x64xf32, #kvc.rows>
    %l = kvc.read slot<logits, offset = 0, stride = 24, f32> : tensor<?x6xf32, #kvc.outputs>
    kvc.return %l : tensor<?x6xf32, #kvc.outputs>
  }
}
