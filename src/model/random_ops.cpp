#include "model/random_ops.h"

#include <ATen/record_function.h>
#include <torch/library.h>
#include <torch/torch.h>

#include <mutex>
#include <set>

#include "base/philox.h"

namespace renkei::model {
namespace {

struct Numbering {
  RandomKey key;
  int next = 0;
  int depth = 0;  // inside a drawing operation: what it calls is not another one
};
thread_local Numbering numbering;

// Torch has one generator for all threads: between the start from a state and the end of drawing
// nobody else may draw.
std::mutex drawing;

void start_from_own_state() {
  Random random(
      numbering.key.seed, RandomUse::dropout, static_cast<uint32_t>(numbering.key.micro_batch),
      static_cast<uint64_t>(numbering.key.step) << 20 | static_cast<uint64_t>(numbering.next++));
  torch::manual_seed(uint64_t{random()} << 32 | random());
}

struct Drawing : at::ObserverContext {};

std::unique_ptr<at::ObserverContext> operation_starts(const at::RecordFunction& function) {
  if (!draws(function.name())) return nullptr;
  if (numbering.depth++ == 0) {
    drawing.lock();
    start_from_own_state();
  }
  return std::make_unique<Drawing>();
}

void operation_ends(const at::RecordFunction&, at::ObserverContext* context) {
  if (context && --numbering.depth == 0) drawing.unlock();
}

void set_next_number(int64_t number) {
  numbering.next = static_cast<int>(number);
}

TORCH_LIBRARY_FRAGMENT(renkei, library) {
  library.def("random_op(int number) -> ()", &set_next_number);
}

}  // namespace

KeyedRandom::KeyedRandom(const RandomKey& key) {
  numbering = {.key = key};
  callback_ =
      at::addThreadLocalCallback(at::RecordFunctionCallback(operation_starts, operation_ends)
                                     .scopes({at::RecordScope::FUNCTION}));
}

KeyedRandom::~KeyedRandom() {
  at::removeCallback(callback_);
}

bool draws(std::string_view operation) {
  // Those in the second half call dropout themselves.
  static const std::set<std::string_view> names{"aten::dropout",
                                                "aten::dropout_",
                                                "aten::feature_dropout",
                                                "aten::feature_dropout_",
                                                "aten::alpha_dropout",
                                                "aten::alpha_dropout_",
                                                "aten::feature_alpha_dropout",
                                                "aten::feature_alpha_dropout_",
                                                "aten::native_dropout",
                                                "aten::bernoulli",
                                                "aten::bernoulli_",
                                                "aten::rand",
                                                "aten::rand_like",
                                                "aten::randn",
                                                "aten::randn_like",
                                                "aten::randint",
                                                "aten::randint_like",
                                                "aten::randperm",
                                                "aten::normal",
                                                "aten::normal_",
                                                "aten::uniform_",
                                                "aten::exponential_",
                                                "aten::multinomial",
                                                "aten::poisson",
                                                "aten::rrelu",
                                                "aten::rrelu_",
                                                "aten::rrelu_with_noise",
                                                "aten::lstm",
                                                "aten::gru",
                                                "aten::rnn_tanh",
                                                "aten::rnn_relu",
                                                "aten::_scaled_dot_product_attention"};
  return operation.starts_with("aten::") && names.contains(operation);
}

}  // namespace renkei::model
