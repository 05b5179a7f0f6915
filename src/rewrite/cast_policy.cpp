// PyTorch's lists of autocast for CPUs, of 2.13; "name" or "name.overload".
#include <set>
#include <string>

#include "program/effects.h"
#include "rewrite/mixed_precision.h"

namespace renkei::rewrite {
namespace {

using Names = std::set<std::string, std::less<>>;

const Names& in_bf16() {
  static const Names names{
      "_addmm_activation", "_convolution.deprecated", "_native_multi_head_attention", "addbmm",
      "addmm", "baddbmm", "bmm", "conv1d", "conv1d.padding", "conv2d", "conv2d.padding", "conv3d",
      "conv3d.padding", "conv_tbc", "conv_transpose1d", "conv_transpose2d.input",
      "conv_transpose3d.input", "linalg_vecdot", "linear", "matmul", "mkldnn_rnn_layer", "mm",
      "prelu", "scaled_dot_product_attention",
      // Made of those above:
      "einsum", "tensordot"};
  return names;
}

const Names& in_f32() {
  static const Names names{
      "_grid_sampler_2d_cpu_fallback", "_lu_with_info", "adaptive_avg_pool3d",
      "adaptive_max_pool3d", "avg_pool3d", "binary_cross_entropy",
      "binary_cross_entropy_with_logits", "cdist", "cholesky", "cholesky_inverse", "cholesky_solve",
      "cosine_embedding_loss", "cross_entropy_loss", "ctc_loss.IntList", "ctc_loss.Tensor",
      "fake_quantize_per_tensor_affine", "fft_fft", "fft_fft2", "fft_fftn", "fft_hfft", "fft_ifft",
      "fft_ifft2", "fft_ifftn", "fft_ihfft", "fft_irfft", "fft_irfft2", "fft_irfftn", "fft_rfft",
      "fft_rfft2", "fft_rfftn", "fractional_max_pool2d", "fractional_max_pool3d", "geqrf",
      "grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "hinge_embedding_loss", "huber_loss",
      "inverse", "kl_div", "l1_loss", "linalg_cholesky", "linalg_cholesky_ex", "linalg_cond",
      "linalg_cond.p_str", "linalg_eig", "linalg_eigh", "linalg_eigvals", "linalg_eigvalsh",
      "linalg_householder_product", "linalg_inv", "linalg_inv_ex", "linalg_lstsq",
      "linalg_matrix_rank", "linalg_matrix_rank.atol_rtol_float",
      "linalg_matrix_rank.atol_rtol_tensor", "linalg_matrix_rank.tol_tensor", "linalg_qr",
      "linalg_solve", "linalg_svd", "linalg_svdvals", "linalg_tensorinv", "linalg_tensorsolve",
      "lu_solve", "margin_ranking_loss", "max_pool3d", "max_unpool2d", "max_unpool3d", "mse_loss",
      "multi_margin_loss", "multilabel_margin_loss", "multilabel_margin_loss_forward",
      "nanquantile", "nanquantile.scalar", "nll_loss", "nll_loss2d", "orgqr", "ormqr", "pinverse",
      "poisson_nll_loss", "polar", "prod", "prod.dim_int", "qr", "quantile", "quantile.scalar",
      "reflection_pad1d", "reflection_pad2d", "replication_pad1d", "replication_pad2d",
      "replication_pad3d", "smooth_l1_loss", "soft_margin_loss", "stft", "stft.center", "svd",
      "trace", "triangular_solve", "triplet_margin_loss", "view_as_complex",
      // Of the losses above, what they are called with targets of any shape:
      "nll_loss_nd",
      // Recurrent layers take all their inputs and weights in one dtype:
      "lstm.input", "lstm.data", "gru.input", "gru.data", "rnn_tanh.input", "rnn_tanh.data",
      "rnn_relu.input", "rnn_relu.data"};
  return names;
}

const Names& widest() {
  static const Names names{"cat", "index_copy", "stack"};
  return names;
}

// They refuse values of another dtype than the tensor that they put them into.
const Names& like_self() {
  static const Names names{"index_put",      "index_put_",     "index_add",     "index_add_",
                           "scatter.src",    "scatter_.src",   "scatter_add",   "scatter_add_",
                           "masked_scatter", "select_scatter", "slice_scatter", "masked_scatter_"};
  return names;
}

}  // namespace

CastPolicy cast_policy(std::string_view target) {
  const auto [library, name, overload] = program::parts_of(target);
  // Of other libraries' operators nothing is known: they get what they got.
  if (library != "aten") return CastPolicy::f32;
  std::string full(name);
  if (!overload.empty() && overload != "default") full.append(".").append(overload);
  if (in_bf16().contains(full)) return CastPolicy::bf16;
  if (in_f32().contains(full)) return CastPolicy::f32;
  if (widest().contains(full)) return CastPolicy::widest;
  return like_self().contains(full) ? CastPolicy::like_self : CastPolicy::follow;
}

}  // namespace renkei::rewrite
