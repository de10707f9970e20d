// A case for every message of the verifiers of attributes and types.
// REQUIRES: kvc-opt
// RUN: kvc-opt %s --split-input-file --verify-diagnostics --allow-unregistered-dialect

// expected-error@+1 {{offset must not be negative, found -1}}
"test.op"() {attr = #kvc.slice<@s, f32, -1>} : () -> ()

// -----

// expected-error@+1 {{range is [center, scale], found 1 numbers}}
"test.op"() {attr = #kvc.slice<@s, f32, 0, "w", [1.0]>} : () -> ()

// -----

// expected-error@+2 {{expected ::kvc::WeightFormat to be one of: f32, f16, bf16, q4_0}}
// expected-error@+1 {{failed to parse Kvc_SliceAttr parameter 'format'}}
"test.op"() {attr = #kvc.slice<@s, q9_9, 0>} : () -> ()

// -----

// expected-error@+1 {{lanes must be a power of two from 4 to 32, found 12}}
"test.op"() {attr = #kvc.panels<lanes = 12, unit = 32>} : () -> ()

// -----

// expected-error@+1 {{lanes must be a power of two from 4 to 32, found 64}}
"test.op"() {attr = #kvc.panels<lanes = 64, unit = 32>} : () -> ()

// -----

// expected-error@+1 {{unit must be at least 1, found 0}}
"test.op"() {attr = #kvc.panels<lanes = 8, unit = 0>} : () -> ()

// -----

// expected-error@+1 {{offset must not be negative, found -64}}
"test.op"() {attr = #kvc.slot<rows, offset = -64, stride = 64, f32>} : () -> ()

// -----

// expected-error@+1 {{stride must be at least 1, found 0}}
"test.op"() {attr = #kvc.slot<rows, offset = 0, stride = 0, f32>} : () -> ()

// -----

// expected-error@+1 {{offset and stride must be multiples of 64, found 32 and 64}}
"test.op"() {attr = #kvc.slot<rows, offset = 32, stride = 64, f32>} : () -> ()

// -----

// expected-error@+1 {{offset and stride must be multiples of 64, found 64 and 100}}
"test.op"() {attr = #kvc.slot<worker, offset = 64, stride = 100, q8>} : () -> ()

// -----

// expected-error@+1 {{logits are f32}}
"test.op"() {attr = #kvc.slot<logits, offset = 0, stride = 24, q8>} : () -> ()

// -----

// expected-error@+1 {{logits are f32}}
"test.op"() {attr = #kvc.slot<logits, offset = 0, stride = 24, bf16>} : () -> ()

// -----

// expected-error@+1 {{arch must not be empty}}
"test.op"() {attr = #kvc.target<arch = "", cpu = "x86-64-v3", features = "", vector_width = 256>} : () -> ()

// -----

// expected-error@+1 {{vector_width must be a power of two from 128 to 1024, found 96}}
"test.op"() {attr = #kvc.target<arch = "cpu", cpu = "x86-64-v3", features = "", vector_width = 96>} : () -> ()

// -----

// expected-error@+1 {{numbers must be finite, found INF}}
"test.op"() {attr = #kvc.reals<[0x7FF0000000000000]>} : () -> ()

// -----

// expected-error@+1 {{a weight is layers x rows or layers x rows x columns, found rank 1}}
"test.op"() {attr = !kvc.weight<4>} : () -> ()

// -----

// expected-error@+1 {{dimensions must be at least 1, found 0}}
"test.op"() {attr = !kvc.weight<1x0>} : () -> ()

// -----

// expected-error@+1 {{only matrices are packed in panels or tiles}}
"test.op"() {attr = !kvc.weight<1x64, #kvc.panels<lanes = 8, unit = 32>>} : () -> ()

// -----

// expected-error@+1 {{only matrices are packed in panels or tiles}}
"test.op"() {attr = !kvc.weight<1x64, #kvc.tiles<unit = 16, pair = 8, splits = 1>>} : () -> ()

// -----

// expected-error@+1 {{a layout is #kvc.panels or #kvc.tiles, found #kvc.rows}}
"test.op"() {attr = !kvc.weight<1x64x64, #kvc.rows>} : () -> ()

// -----

// expected-error@+1 {{unit and pair must be at least 1, found 16 and 0}}
"test.op"() {attr = #kvc.tiles<unit = 16, pair = 0, splits = 1>} : () -> ()

// -----

// expected-error@+1 {{splits must be from 1 to 16, found 17}}
"test.op"() {attr = #kvc.tiles<unit = 16, pair = 8, splits = 17>} : () -> ()

// -----

// expected-error@+1 {{layers, kv_heads and head_dim must be at least 1, found 1, 0 and 16}}
"test.op"() {attr = !kvc.cache<layers = 1, kv_heads = 0, head_dim = 16, type = f16, page = 64, split = 256>} : () -> ()

// -----

// expected-error@+1 {{the element type is f32, f16 or bf16, found 'f64'}}
"test.op"() {attr = !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f64, page = 64, split = 256>} : () -> ()

// -----

// expected-error@+1 {{page must be a power of two, found 48}}
"test.op"() {attr = !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 48, split = 256>} : () -> ()

// -----

// expected-error@+1 {{split must be a multiple of page, found 96 and 64}}
"test.op"() {attr = !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 96>} : () -> ()

// -----

// expected-error@+1 {{split must be a multiple of page, found 32 and 64}}
"test.op"() {attr = !kvc.cache<layers = 1, kv_heads = 2, head_dim = 16, type = f16, page = 64, split = 32>} : () -> ()
