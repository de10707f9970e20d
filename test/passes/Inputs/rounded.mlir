// Made by make_inputs.py.
kvc.model @rounded attributes {eos = array<i64: 2>, max_context = 64 : i64, vocab_tokens = 67 : i64} {
    kvc.source @seed {seed = 1 : i64}
    kvc.weight @token_embd : !kvc.weight<1x67x64> = [
      #kvc.slice<@seed, f32, 0, "token_embd.weight", [0.0, 0.21650635094610965]>]
    kvc.weight @attn_norm : !kvc.weight<2x64> = [
      #kvc.slice<@seed, f32, 0, "blk.0.attn_norm.weight", [1.0, 0.25]>,
      #kvc.slice<@seed, f32, 0, "blk.1.attn_norm.weight", [1.0, 0.25]>]
    kvc.weight @attn_q : !kvc.weight<2x128x64> = [
      #kvc.slice<@seed, f32, 0, "blk.0.attn_q.weight", [0.0, 0.21650635094610965]>,
      #kvc.slice<@seed, f32, 0, "blk.1.attn_q.weight", [0.0, 0.21650635094610965]>]
    kvc.weight @attn_k : !kvc.weight<2x64x64> = [
      #kvc.slice<@seed, f32, 0, "blk.0.attn_k.weight", [0.0, 0.21650635094610965]>,
      #kvc.slice<@seed, f32, 0, "blk.1.attn_k.weight", [0.0, 0.21650635094610965]>]
    kvc.weight @attn_v : !kvc.weight<2x64x64> = [
      #kvc.slice<@seed, f32, 0, "blk.0.attn_v.weight", [0.0, 0.21650635094610965]>,
      #kvc.slice<@seed, f32, 0, "blk.1.attn_v.weight", [0.0, 0.21650635094610965]>]
    kvc.weight @attn_output : !kvc.weight<2x64x128> = [
      #kvc.slice<@seed, f32, 0, "blk.0.attn_output.weight", [0.0, 0.15309310892394862]>,
      #kvc.slice<@seed, f32, 0, "blk.1.attn_output.weight", [0.0, 0.15309310892394862]>]
    kvc.weight @ffn_norm : !kvc.weight<2x64> = [
      #kvc.slice<@seed, f32, 0, "blk.0.ffn_norm.weight", [1.0, 0.25]>,
      #kvc.slice<@seed, f32, 0, "blk.1.ffn_norm.weight", [1.0, 0.25]>]
    kvc.weight @ffn_gate : !kvc.weight<2x96x64> = [
      #kvc.slice<@seed, f32, 0, "blk.0.ffn_gate.weight", [0.0, 0.21650635094610965]>,
      #kvc.slice<@seed, f32, 0, "blk.1.ffn_gate.weight", [0.0, 0.21650635094610965]>]
    kvc.weight @ffn_up : !kvc.weight<2x96x64> = [
      #kvc.slice<@seed, f32, 0, "blk.0.ffn_up.weight", [0.0, 0.21650635094610965]>,
      #kvc.slice<@seed, f32, 0, "blk.1.ffn_up.weight", [0.0, 0.21650635094610965]>]
    kvc.weight @ffn_down : !kvc.weight<2x64x96> = [
      #kvc.slice<@seed, f32, 0, "blk.0.ffn_down.weight", [0.0, 0.1767766952966369]>,
      #kvc.slice<@seed, f32, 0, "blk.1.ffn_down.weight", [0.0, 0.1767766952966369]>]
    kvc.weight @output_norm : !kvc.weight<1x64> = [
      #kvc.slice<@seed, f32, 0, "output_norm.weight", [1.0, 0.25]>]
    kvc.weight @output : !kvc.weight<1x67x64> = [
      #kvc.slice<@seed, f32, 0, "output.weight", [0.0, 0.21650635094610965]>]
    kvc.cache @kv : !kvc.cache<layers = 2, kv_heads = 2, head_dim = 32, type = f32, page = 16, split = 64>

    kvc.forward @forward(%tokens: tensor<?xi32, #kvc.rows>, %batch: !kvc.batch) -> tensor<?x67xf32, #kvc.outputs> {
      %x = kvc.embed %tokens, @token_embd : (tensor<?xi32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
      %y = kvc.layers 2 (%x) : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows> {
      ^bb0(%h: tensor<?x64xf32, #kvc.rows>, %layer: index):
        %n = kvc.rms_norm %h, @attn_norm[%layer] {eps = 1.0e-5 : f64} : tensor<?x64xf32, #kvc.rows>
        %nq = kvc.quantize %n : tensor<?x64xf32, #kvc.rows>
        %q = kvc.linear %nq, [@attn_q][%layer] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x4x32xf32, #kvc.rows>
        %k = kvc.linear %nq, [@attn_k][%layer] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x2x32xf32, #kvc.rows>
        %v = kvc.linear %nq, [@attn_v][%layer] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x2x32xf32, #kvc.rows>
        %qr = kvc.rope %q, %batch {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[1.0, 0.5623413251903491, 0.31622776601683794, 0.1778279410038923, 0.1, 0.05623413251903491, 0.03162277660168379, 0.01778279410038923, 0.01, 0.005623413251903491, 0.0031622776601683794, 0.0017782794100389228, 0.001, 0.0005623413251903491, 0.00031622776601683794, 0.00017782794100389227]>} : tensor<?x4x32xf32, #kvc.rows>
        %kr = kvc.rope %k, %batch {layout = #kvc.rope_layout<half>, inv_freq = #kvc.reals<[1.0, 0.5623413251903491, 0.31622776601683794, 0.1778279410038923, 0.1, 0.05623413251903491, 0.03162277660168379, 0.01778279410038923, 0.01, 0.005623413251903491, 0.0031622776601683794, 0.0017782794100389228, 0.001, 0.0005623413251903491, 0.00031622776601683794, 0.00017782794100389227]>} : tensor<?x2x32xf32, #kvc.rows>
        kvc.cache_append %kr, %v, @kv[%layer], %batch : tensor<?x2x32xf32, #kvc.rows>
        %s = kvc.scores %qr, @kv[%layer], %batch {scale = 0.1767766952966369 : f64} : (tensor<?x4x32xf32, #kvc.rows>) -> tensor<?x4x?xf32, #kvc.rows>
        %p = kvc.masked_softmax %s, %batch : tensor<?x4x?xf32, #kvc.rows>
        %c = kvc.context %p, @kv[%layer], %batch : (tensor<?x4x?xf32, #kvc.rows>) -> tensor<?x4x32xf32, #kvc.rows>
        %cq = kvc.quantize %c : tensor<?x4x32xf32, #kvc.rows>
        %o = kvc.linear %cq, [@attn_output][%layer] : (tensor<?x4x32xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
        %h1 = kvc.add %h, %o : tensor<?x64xf32, #kvc.rows>
        %n2 = kvc.rms_norm %h1, @ffn_norm[%layer] {eps = 1.0e-5 : f64} : tensor<?x64xf32, #kvc.rows>
        %n2q = kvc.quantize %n2 : tensor<?x64xf32, #kvc.rows>
        %g = kvc.linear %n2q, [@ffn_gate][%layer] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x96xf32, #kvc.rows>
        %u = kvc.linear %n2q, [@ffn_up][%layer] : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x96xf32, #kvc.rows>
        %a = kvc.activation %g {kind = #kvc.activation_kind<silu>} : tensor<?x96xf32, #kvc.rows>
        %m = kvc.mul %a, %u : tensor<?x96xf32, #kvc.rows>
        %mq = kvc.quantize %m : tensor<?x96xf32, #kvc.rows>
        %d = kvc.linear %mq, [@ffn_down][%layer] : (tensor<?x96xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.rows>
        %h2 = kvc.add %h1, %d : tensor<?x64xf32, #kvc.rows>
        kvc.yield %h2 : tensor<?x64xf32, #kvc.rows>
      }
      %r = kvc.select_rows %y, %batch : (tensor<?x64xf32, #kvc.rows>) -> tensor<?x64xf32, #kvc.outputs>
      %n = kvc.rms_norm %r, @output_norm {eps = 1.0e-5 : f64} : tensor<?x64xf32, #kvc.outputs>
      %nq = kvc.quantize %n : tensor<?x64xf32, #kvc.outputs>
      %l = kvc.linear %nq, [@output] : (tensor<?x64xf32, #kvc.outputs>) -> tensor<?x67xf32, #kvc.outputs>
      kvc.return %l : tensor<?x67xf32, #kvc.outputs>
    }
}
