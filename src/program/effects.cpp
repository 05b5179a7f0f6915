#include "program/effects.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace renkei::program {
namespace {

using Names = std::set<std::string_view>;

// True or false; unknown (computed, or left out) is `otherwise`.
bool flag(const Op& op, std::string_view name, bool otherwise) {
  const Argument* argument = find_argument(op, name);
  if (!argument) return otherwise;
  if (const auto* value = std::get_if<bool>(argument)) return *value;
  if (const auto* value = std::get_if<int64_t>(argument)) return *value != 0;
  return otherwise;
}

// Whether a number is above a bound; a computed one may be.
bool above(const Op& op, std::string_view name, double bound, bool otherwise) {
  const Argument* argument = find_argument(op, name);
  if (!argument) return otherwise;
  if (const auto* value = std::get_if<double>(argument)) return *value > bound;
  if (const auto* value = std::get_if<int64_t>(argument))
    return static_cast<double>(*value) > bound;
  return !std::holds_alternative<None>(*argument) || otherwise;
}

bool in_place(std::string_view name) {
  static const Names doubly{"__iand__", "__ior__", "__ixor__", "__ilshift__", "__irshift__"};
  return (name.ends_with('_') && !name.ends_with("__")) || doubly.contains(name);
}

bool has_values(const Argument& argument) {
  if (std::holds_alternative<Reference>(argument)) return true;
  const auto* list = std::get_if<List>(&argument);
  return list && std::any_of(list->begin(), list->end(), has_values);
}

// Overloads that write where the caller says: aten.add.out, aten.max.dim_max.
bool writes_out(const Target& target) {
  return target.overload == "out" || target.overload.ends_with("_out");
}

// What an operation changes beside what its name says.
const std::vector<std::string_view>* silent_writes(const Op& op, const Target& target) {
  static const std::vector<std::string_view> statistics{
      "running_mean", "running_var", "running_variance", "num_batches_tracked", "batches"};
  static const std::vector<std::string_view> noise{"noise"};
  static const std::vector<std::string_view> observed{"running_min", "running_max", "scale",
                                                      "zero_point"};
  static const std::vector<std::string_view> best{"values", "indices"};
  static const std::vector<std::string_view> output{"out"};
  static const std::vector<std::string_view> state{"state"};
  static const std::map<std::string_view, const std::vector<std::string_view>*> always{
      {"_batch_norm_with_update", &statistics},
      {"batch_norm_gather_stats", &statistics},
      {"batch_norm_gather_stats_with_counts", &statistics},
      {"rrelu_with_noise", &noise},
      {"rrelu_with_noise_", &noise},
      {"fused_moving_avg_obs_fake_quant", &observed},
      {"_fused_moving_avg_obs_fq_helper", &observed},
      {"_cummax_helper", &best},
      {"_cummin_helper", &best},
      {"_flash_attention_forward_no_dropout_inplace", &output}};
  if (target.library == "renkei" && target.name == "opaque") return &state;
  if (target.library == "renkei" && target.name.find("batch_norm") != target.name.npos)
    return flag(op, "training", true) ? &statistics : nullptr;
  if (target.library != "aten") return nullptr;
  if (is_batch_norm(target.name)) return flag(op, "training", true) ? &statistics : nullptr;
  if (target.name == "instance_norm")
    return flag(op, "use_input_stats", true) ? &statistics : nullptr;
  const auto found = always.find(target.name);
  return found == always.end() ? nullptr : found->second;
}

// For each operation that gives views, or its argument where it can: which argument. What
// PyTorch's schemas do not say (dropout, type_as …) is here too.
const std::map<std::string_view, std::string_view>& aliases() {
  static const std::map<std::string_view, std::string_view> table = [] {
    std::map<std::string_view, std::string_view> all;
    for (const char* name :
         {"view", "reshape", "flatten", "permute", "transpose", "t", "select", "slice", "split",
          "split_with_sizes", "chunk", "unbind", "expand", "unsqueeze", "squeeze", "narrow",
          "detach", "contiguous", "to", "unflatten", "view_as", "expand_as", "reshape_as", "alias",
          "movedim", "moveaxis", "diagonal", "unfold", "as_strided", "broadcast_to", "swapaxes",
          "swapdims", "ravel", "tensor_split", "hsplit", "vsplit", "dsplit", "real", "imag", "conj",
          "_conj", "_neg_view", "adjoint", "mT", "mH", "matrix_H", "numpy_T", "positive",
          "resolve_conj", "resolve_neg", "view_as_real", "view_as_complex", "_reshape_alias",
          "lift_fresh", "pin_memory", "_autocast_to_full_precision",
          "_autocast_to_reduced_precision", "coalesce", "indices", "values", "_indices", "_values",
          "crow_indices", "col_indices", "ccol_indices", "row_indices", "slice_inverse",
          "_fw_primal", "_nested_view_from_buffer", "_nested_view_from_jagged",
          "_nested_get_values", "_sparse_broadcast_to", "_test_autograd_multiple_dispatch_view",
          // Not said by their schemas:
          "type_as", "sum_to_size", "_sum_to_size", "unsafe_chunk", "unsafe_split",
          "unsafe_split_with_sizes", "atleast_1d", "atleast_2d", "atleast_3d", "to_dense", "lift"})
      all[name] = "self";
    for (const char* name :
         {"dropout", "feature_dropout", "alpha_dropout", "feature_alpha_dropout"})
      all[name] = "input";
    all["linalg_diagonal"] = "A";
    all["_make_dual"] = "primal";
    all["_unpack_dual"] = "dual";
    all["einsum"] = "tensors";
    for (const char* name : {"meshgrid", "broadcast_tensors", "cartesian_prod"})
      all[name] = "tensors";
    return all;
  }();
  return table;
}

bool draws_always(std::string_view name) {
  static const Names names{"bernoulli",
                           "bernoulli_",
                           "rand",
                           "rand_like",
                           "randn",
                           "randn_like",
                           "randint",
                           "randint_like",
                           "randperm",
                           "normal",
                           "normal_",
                           "normal_functional",
                           "uniform",
                           "uniform_",
                           "exponential",
                           "exponential_",
                           "cauchy",
                           "cauchy_",
                           "geometric",
                           "geometric_",
                           "log_normal",
                           "log_normal_",
                           "random",
                           "random_",
                           "multinomial",
                           "poisson",
                           "binomial",
                           "_sample_dirichlet",
                           "_standard_gamma",
                           "_fused_dropout",
                           "_cudnn_init_dropout_state",
                           "_fill_mem_eff_dropout_mask_"};
  return names.contains(name);
}

bool is_dropout(std::string_view name) {
  static const Names names{
      "dropout",       "dropout_",       "feature_dropout",       "feature_dropout_",
      "alpha_dropout", "alpha_dropout_", "feature_alpha_dropout", "feature_alpha_dropout_"};
  return names.contains(name);
}

bool is_recurrent(std::string_view name) {
  static const Names names{"lstm",       "gru",        "rnn_tanh", "rnn_relu",
                           "_cudnn_rnn", "miopen_rnn", "_lstm_mps"};
  return names.contains(name);
}

// Comparisons, whole numbers, new tensors.
bool stops_gradients(std::string_view name) {
  static const Names names{"detach",
                           "detach_",
                           "argmax",
                           "argmin",
                           "argsort",
                           "argwhere",
                           "eq",
                           "ne",
                           "lt",
                           "le",
                           "gt",
                           "ge",
                           "equal",
                           "not_equal",
                           "less",
                           "less_equal",
                           "greater",
                           "greater_equal",
                           "isclose",
                           "allclose",
                           "isnan",
                           "isinf",
                           "isfinite",
                           "isposinf",
                           "isneginf",
                           "isreal",
                           "isin",
                           "is_nonzero",
                           "signbit",
                           "logical_and",
                           "logical_or",
                           "logical_xor",
                           "logical_not",
                           "bitwise_and",
                           "bitwise_or",
                           "bitwise_xor",
                           "bitwise_not",
                           "bitwise_left_shift",
                           "bitwise_right_shift",
                           "__and__",
                           "__or__",
                           "__xor__",
                           "__lshift__",
                           "__rshift__",
                           "all",
                           "any",
                           "nonzero",
                           "nonzero_numpy",
                           "nonzero_static",
                           "unravel_index",
                           "data",
                           "hash_tensor",
                           "linalg_matrix_rank",
                           "count_nonzero",
                           "one_hot",
                           "bincount",
                           "histc",
                           "bucketize",
                           "searchsorted",
                           "gcd",
                           "lcm",
                           "multinomial",
                           "zeros",
                           "ones",
                           "full",
                           "empty",
                           "arange",
                           "linspace",
                           "logspace",
                           "range",
                           "eye",
                           "zeros_like",
                           "ones_like",
                           "full_like",
                           "empty_like",
                           "new_zeros",
                           "new_ones",
                           "new_full",
                           "new_empty",
                           "new_empty_strided",
                           "empty_strided",
                           "empty_permuted",
                           "scalar_tensor",
                           "rand",
                           "randn",
                           "randint",
                           "randperm",
                           "rand_like",
                           "randn_like",
                           "randint_like",
                           "tril_indices",
                           "triu_indices",
                           "hann_window",
                           "hamming_window",
                           "blackman_window",
                           "bartlett_window",
                           "kaiser_window",
                           "unique_dim",
                           "_unique2",
                           "sym_size",
                           "sym_numel",
                           "sym_stride",
                           "item",
                           "_local_scalar_dense",
                           "_shape_as_tensor"};
  return names.contains(name);
}

}  // namespace

Target parts_of(std::string_view target) {
  const size_t first = target.find('.');
  if (first == target.npos) return {.library = {}, .name = target, .overload = {}};
  const std::string_view rest = target.substr(first + 1);
  const size_t second = rest.find('.');
  return {.library = target.substr(0, first),
          .name = rest.substr(0, second),
          .overload = second == rest.npos ? std::string_view() : rest.substr(second + 1)};
}

std::vector<std::string> writes(const Op& op) {
  const Target target = parts_of(op.target);
  std::vector<std::string> names;
  const auto add = [&](std::string_view name) {
    const Argument* argument = find_argument(op, name);
    if (argument && has_values(*argument)) names.emplace_back(name);
  };
  if (in_place(target.name) && !op.arguments.empty())
    add(find_argument(op, "self") ? std::string_view("self") : op.arguments.front().name);
  if (writes_out(target))
    for (const NamedArgument& argument : op.arguments)
      if (argument.name.starts_with("out") &&
          argument.name.find_first_not_of("0123456789", 3) == std::string::npos)
        add(argument.name);
  if (const auto* silent = silent_writes(op, target))
    for (const std::string_view name : *silent) add(name);
  return names;
}

std::vector<ValueId> written_values(const Op& op) {
  std::vector<ValueId> values;
  for (const std::string& name : writes(op)) {
    const Op only{.target = {}, .arguments = {{name, *find_argument(op, name)}}, .outputs = {}};
    for (const ValueId id : references(only)) values.push_back(id);
  }
  return values;
}

std::string alias_of(const Op& op) {
  const Target target = parts_of(op.target);
  if (in_place(target.name) || writes_out(target)) {
    const auto written = writes(op);
    return written.empty() ? "" : written.front();
  }
  if (op.target == "operator.getitem" && !op.arguments.empty()) return op.arguments.front().name;
  if (target.library != "aten") return {};
  const auto found = aliases().find(target.name);
  if (found == aliases().end()) return {};
  // Lists where others have one tensor: atleast_1d.Sequence; einsum's are called operands in
  // places.
  if (find_argument(op, found->second) || op.arguments.empty()) return std::string(found->second);
  return op.arguments.front().name;
}

bool is_view(const Op& op) {
  static const Names compute{"dropout",
                             "feature_dropout",
                             "alpha_dropout",
                             "feature_alpha_dropout",
                             "einsum",
                             "to",
                             "type_as",
                             "contiguous",
                             "sum_to_size",
                             "to_dense",
                             "cartesian_prod",
                             "pin_memory",
                             "_autocast_to_full_precision",
                             "_autocast_to_reduced_precision",
                             "coalesce"};
  const Target target = parts_of(op.target);
  if (op.target == "operator.getitem") return true;
  return target.library == "aten" && aliases().contains(target.name) &&
         !compute.contains(target.name);
}

bool is_batch_norm(std::string_view name) {
  static const Names forms{"batch_norm",       "native_batch_norm", "_native_batch_norm_legit",
                           "cudnn_batch_norm", "miopen_batch_norm", "_batch_norm_impl_index"};
  return forms.contains(name);
}

bool normalises_by_batch(const Op& op) {
  const Target target = parts_of(op.target);
  if (target.library == "renkei") return target.name == "batch_norm";
  if (target.library != "aten") return false;
  return target.name == "_batch_norm_with_update" ||
         (is_batch_norm(target.name) && flag(op, "training", true));
}

bool draws(const Op& op) {
  const Target target = parts_of(op.target);
  if (target.library == "renkei") {
    if (target.name == "opaque") return true;
    return above(op, "dropout_p", 0, false) || (target.name.find("dropout") != target.name.npos &&
                                                flag(op, "train", true) && above(op, "p", 0, true));
  }
  if (target.library != "aten") return false;
  if (target.name.ends_with("_backward")) return false;  // as the forward pass did
  if (draws_always(target.name)) return true;
  if (is_dropout(target.name)) return flag(op, "train", true) && above(op, "p", 0, true);
  if (target.name == "native_dropout") return flag(op, "train", true);
  if (target.name.starts_with("rrelu")) return flag(op, "training", false);
  if (is_recurrent(target.name))
    return flag(op, "train", true) && above(op, "dropout", 0, true) &&
           above(op, "num_layers", 1, true);
  return above(op, "dropout_p", 0, false);  // all kinds of attention
}

bool differentiable(const Op& op) {
  const Target target = parts_of(op.target);
  if (target.library == "operator") return false;
  if (op.no_grad) return false;
  std::string_view name = target.name;
  if (target.library != "aten") return true;
  if (in_place(name) && !name.ends_with("__")) name.remove_suffix(1);
  if (name == "where" && target.overload == "default") return false;  // the places, as nonzero
  if (name.starts_with("special_") &&
      (name.find("bessel") != name.npos || name.find("polynomial") != name.npos ||
       name == "special_airy_ai"))
    return false;  // they have no derivative in PyTorch
  return !stops_gradients(name);
}

}  // namespace renkei::program
