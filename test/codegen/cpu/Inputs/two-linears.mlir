// L1: a q4_1 and an f32 projection between an embedding and its head.
kvc.model @m attributes {max_context = 512 : i64} {
  kvc.source @f {path = "w.bin", size = 1000000 : i64}
  kvc.weight @table : !kvc.weight<1x128x256> = [#kvc.slice<@f, q8_0, 0>]
  kvc.weight @codes : !kvc.weight<2x128x256> = [#kvc.slice<@f, q4_1, 65536>, #kvc.slice<@f, q4_1, 131072>]
  kvc.weight @plain : !kvc.weight<2x256x128> = [#kvc.slice<@f, f32, 262144>, #kvc.slice<@f, f32, 524288>]
  kvc.cache @kv : !kvc.cache<layers = 2, kv_heads = 1, head_dim = 32, type = f32, page = 64, split = 256>
  kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x128xf32, #kvc.outputs> {
    %x = kvc.embed %tokens, @table : (tensor<?xi32, #kvc.rows>) -> tensor<?x256xf32, #kvc.rows>
    %y = kvc.layers 2 (%x) : (tensor<?x256xf32, #kvc.rows>) -> tensor<?x256xf32, #kvc.rows> {
    ^bb0(%h: tensor<?x256xf32, #kvc.rows>, %layer: index):
      %a = kvc.linear %h, [@codes][%layer] : (tensor<?x256xf32, #kvc.rows>) -> tensor<?x128xf32, #kvc.rows>
      %s = kvc.activation %a {kind = #kvc.activation_kind<silu>} : tensor<?x128xf32, #kvc.rows>
      %z = kvc.linear %s, [@plain][%layer] : (tensor<?x128xf32, #kvc.rows>) -> tensor<?x256xf32, #kvc.rows>
      %r = kvc.add %h, %z : tensor<?x256xf32, #kvc.rows>
      kvc.yield %r : tensor<?x256xf32, #kvc.rows>
    }
    %o = kvc.select_rows %y, %batch : (tensor<?x256xf32, #kvc.rows>) -> tensor<?x256xf32, #kvc.outputs>
    %l = kvc.linear %o, [@table] : (tensor<?x256xf32, #kvc.outputs>) -> tensor<?x128xf32, #kvc.outputs>
    kvc.return %l : tensor<?x128xf32, #kvc.outputs>
  }
}
