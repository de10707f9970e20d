// Made by make_inputs.py.
kvc.model @gqa attributes {eos = array<i64: 2>, max_context = 128 : i64, vocab_tokens = 131 : i64} {
    kvc.source @seed {seed = 1 : i64}
    kvc.weight @token_embd : !kvc.weight<1x131x80> = [
      #kvc.slice<@seed, f32, 0, "token_embd.weight", [0.0, 0.19364916731037085]>]
    kvc.weight @attn_norm : !kvc.weight<3x80> = [
      #kvc.slice<@seed, f32, 0, "blk.0.attn_norm.weight", [1.0, 0.25]>,
      #kvc.slice<@seed, f32, 0, "blk.1.attn_norm.weight", [1.0, 0.25]>,
      #kvc.slice<@seed, f32, 0, "blk.2.attn_norm.weight", [1.0, 0.25]>]
    kvc.weight @attn_q : !kvc.weight<3x144x80> = [
      #kvc.slice<@seed, f32, 0, "blk.0.attn_q.weight", [0.0, 0.19364916731037085]>,
      #kvc.slice<@seed, f32, 0, "blk.1.attn_q.weight", [0.0, 0.19364916731037085]>,
      #kvc.slice<@seed, f32, 0, "blk.2.attn_q.weight", [0.0, 0.19364916731037085]>]
    kvc.weight @attn_k : !kvc.weight<3x48x80> = [
      #kvc.slice<@seed, f32, 0, "blk.0.attn_k.weight", [0.0, 0.19364916731037085]>,
      #kvc.slice<@seed, f32, 0, "blk.1.attn_k.weight", [0.0, 0.19364916731037085]>,
      #kvc.slice<@seed, f32, 0, "blk.2.attn_k.weight", [0.0, 0.19364916731037085]>]
    kvc.weight @attn_v : !kvc.weight<3x48x80> = [
      #kvc.slice<@seed, f32, 0, "blk.0.attn_v.weight", [0.0, 0.19364916731037085]>,
      #kvc.slice<@seed, f32, 0, "blk.1.attn_v.weight", [0.0, 0.19364916731037085]>,
      #kvc.slice<@seed, f32, 0, "blk.2.attn_v.weight", [0.0, 0.19364916731037085]>]
    kvc.weight @attn_output : !kvc.weight<3x80x144> = [
      #kvc.slice<@seed, f32, 0, "blk.0.attn_output.weight", [0.0, 0.14433756729740643]>,
      #kvc.slice<@seed, f32, 0, "blk.1.attn_output.weight", [0.0, 0.14433756729740643]>,
      #kvc.slice<@seed, f32, 0, "blk.2.attn_output.weight", [0.0, 0.14433756729740643]>]
    kvc.weight @ffn_norm : !kvc.weight<3x80> = [
      #kvc.slice<@seed, f32, 0, "blk.0.ffn_norm.weight", [1.0, 0.25]>,
      #kvc.slice<@seed, f32, 0, "blk.1.ffn_norm.weight", [1.0, 0.25]>,
      #kvc.slice<@seed, f32, 0, "blk.2.ffn_norm.weight", [1.0, 0.25]>]
    kvc.weight @ffn_gate : !kvc.weight<3x112x80> = [
      #kvc.slice<@seed, f32, 0, "blk.0.ffn_gate.weight", [0.0, 0.19364916731037085]>,
      #kvc.slice<@seed, f32, 0, "blk.1.ffn_gate.weight", [0.0, 0.19364916731037085]>,
      #kvc.slice<@seed, f32, 0, "blk.2.ffn_gate.weight", [0.0, 0.19364916731037085]>]
    kvc.weight @ffn_up : !kvc.weight<3x112x80> = [
      #kvc.slice<@seed, f32, 0, "blk.0.ffn_up.weight", [0.0, 0.19364916731037085]>,
      #kvc.slice<@seed, f32, 0, "blk.1.ffn_up.weight", [0.0, 0.19364916731037085]>,
      #kvc.slice<@seed, f32, 0, "blk.2.ffn_up.weight", [0.0, 0.19364916731037085]>]
    kvc.weight @ffn_down : !kvc.weight<3x80x112> = [
      #kvc.slice<@seed, f32, 0, "blk.0.ffn_down.weight", [0.0, 0.16366341767699427]>,
      #kvc.slice<@seed, f32, 0, "blk.1.ffn_down.weight", [0.0, 0.16366341767699427]>,
      #kvc.slice<@seed, f32, 0, "blk.2.ffn_down.weight", [0.0, 0.16366341767699427]>]
    kvc.weight @output_norm : !kvc.weight<1x80> = [
      #kvc.slice<@seed, f32, 0, "output_norm.weight", [1.0, 0.25]>]
    kvc.weight @output : !kvc.weight<1x131x80> = [
      #kvc.slice<@seed, f32, 0, "output.weight", [0.0, 0.19364916731037085]>]
    kvc.cache @kv : !kvc.cache<layers = 3, kv_heads = 2, head_dim = 24, type = f32, page = 16, split = 64>

    kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x131xf32, #kvc.outputs> {
      %x = kvc.embed %tokens, @token_embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x80xf32, #kvc.rows>
      %y = kvc.layers 3 (%x) : (tensor<?x80xf32, #kvc.rows>) -> tensor<?x80xf32, #kvc.rows> {
      ^bb0(%h: tensor<?x80xf32, #kvc.rows>, %layer: index):
        %n = kvc.rms_norm %h, @attn_norm[%layer] {eps = 1.0e-5 : f64} : tensor<?x80xf32, #kvc.rows>
        %q = kvc.linear %n, [@attn_q][%layer] : (tensor<?x80xf32, #kvc.rows>) -> tensor<?x6x24xf32, #kvc.rows>
        %k = kvc.linear %n, [@attn_k][%layer] : (tensor<?x80xf32, #kvc.rows>) -> tensor<?x2x24xf32, #kvc.rows>
        %v = kvc.linear %n, [@attn_v][%layer] : (tensor<?x80xf32, #kvc.rows>) -> tensor<?x2x24xf32, #kvc.rows>
        %qr = kvc.rope %q, %batch {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[1.0, 0.4641588833612779, 0.2154434690031884, 0.1, 0.046415888336127795, 0.021544346900318832, 0.01, 0.004641588833612777, 0.0021544346900318843, 0.001, 0.00046415888336127773, 0.00021544346900318845]>} : tensor<?x6x24xf32, #kvc.rows>
        %kr = kvc.rope %k, %batch {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[1.0, 0.4641588833612779, 0.2154434690031884, 0.1, 0.046415888336127795, 0.021544346900318832, 0.01, 0.004641588833612777, 0.0021544346900318843, 0.001, 0.00046415888336127773, 0.00021544346900318845]>} : tensor<?x2x24xf32, #kvc.rows>
        kvc.cache_append %kr, %v, @kv[%layer], %batch : tensor<?x2x24xf32, #kvc.rows>
        %s = kvc.scores %qr, @kv[%layer], %batch {scale = 0.2041241452319315 : f64} : (tensor<?x6x24xf32, #kvc.rows>) -> tensor<?x6x?xf32, #kvc.rows>
        %p = kvc.masked_softmax %s, %batch : tensor<?x6x?xf32, #kvc.rows>
        %c = kvc.context %p, @kv[%layer], %batch : (tensor<?x6x?xf32, #kvc.rows>) -> tensor<?x6x24xf32, #kvc.rows>
        %o = kvc.linear %c, [@attn_output][%layer] : (tensor<?x6x24xf32, #kvc.rows>) -> tensor<?x80xf32, #kvc.rows>
        %h1 = kvc.add %h, %o : tensor<?x80xf32, #kvc.rows>
        %n2 = kvc.rms_norm %h1, @ffn_norm[%layer] {eps = 1.0e-5 : f64} : tensor<?x80xf32, #kvc.rows>
        %g = kvc.linear %n2, [@ffn_gate][%layer] : (tensor<?x80xf32, #kvc.rows>) -> tensor<?x112xf32, #kvc.rows>
        %u = kvc.linear %n2, [@ffn_up][%layer] : (tensor<?x80xf32, #kvc.rows>) -> tensor<?x112xf32, #kvc.rows>
        %a = kvc.activation %g {kind = #kvc.activation_kind<silu>} : tensor<?x112xf32, #kvc.rows>
        %m = kvc.mul %a, %u : tensor<?x112xf32, #kvc.rows>
        %d = kvc.linear %m, [@ffn_down][%layer] : (tensor<?x112xf32, #kvc.rows>) -> tensor<?x80xf32, #kvc.rows>
        %h2 = kvc.add %h1, %d : tensor<?x80xf32, #kvc.rows>
        kvc.yield %h2 : tensor<?x80xf32, #kvc.rows>
      }
      %r = kvc.select_rows %y, %batch : (tensor<?x80xf32, #kvc.rows>) -> tensor<?x80xf32, #kvc.outputs>
      %n = kvc.rms_norm %r, @output_norm {eps = 1.0e-5 : f64} : tensor<?x80xf32, #kvc.outputs>
      %l = kvc.linear %n, [@output] : (tensor<?x80xf32, #kvc.outputs>) -> tensor<?x131xf32, #kvc.outputs>
      kvc.return %l : tensor<?x131xf32, #kvc.outputs>
    }
}
