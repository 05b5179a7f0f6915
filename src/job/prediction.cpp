#include "job/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "comm/collectives/gather.h"
#include "data/source/npy.h"
#include "job/network_data.h"
#include "run/executor.h"

namespace renkei::job {
namespace {

using program::Port;
using program::Program;

bool uses(const run::Executor& executor, const Port& input) {
  return std::ranges::count(executor.inputs(), input.value) > 0;
}

// Types that numbers in a file can have.
torch::Tensor as_plain(const torch::Tensor& tensor) {
  const bool half =
      tensor.scalar_type() == torch::kFloat16 || tensor.scalar_type() == torch::kBFloat16;
  return (half ? tensor.to(torch::kFloat32) : tensor).contiguous();
}

// What is not a number has none in JSON.
template <typename Number>
void put_number(std::string& text, Number number) {
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(number)) {
      text += "null";
      return;
    }
  }
  fmt::format_to(std::back_inserter(text), "{}", number);
}

// A row as nested lists, the last dimension innermost.
template <typename Number>
void put_lists(std::string& text, const Number*& at, std::span<const int64_t> sizes) {
  if (sizes.empty()) return put_number(text, *at++);
  text += '[';
  for (int64_t i = 0; i < sizes[0]; ++i) {
    if (i > 0) text += ',';
    put_lists(text, at, sizes.subspan(1));
  }
  text += ']';
}

void put_row(std::string& text, const torch::Tensor& row) {
  AT_DISPATCH_ALL_TYPES_AND(torch::kBool, row.scalar_type(), "prediction", [&] {
    const auto* at = row.const_data_ptr<scalar_t>();
    put_lists(text, at, {row.sizes().data(), row.sizes().size()});
  });
}

data::ElementType npy_type(torch::ScalarType type) {
  const auto bytes = static_cast<int>(c10::elementSize(type));
  if (type == torch::kBool) return {data::ElementKind::boolean, bytes};
  if (c10::isFloatingType(type)) return {data::ElementKind::floating, bytes};
  return {type == torch::kUInt8 ? data::ElementKind::unsigned_integer
                                : data::ElementKind::signed_integer,
          bytes};
}

// The outputs of one batch of this rank, with the names that results have.
struct Results {
  std::vector<std::string> names;
  std::vector<torch::Tensor> tensors;
};

class Predictor {
 public:
  Predictor(const run::BoundProgram& bound, const PredictionOptions& options)
      : bound_(bound),
        options_(options),
        executor_(bound.program, run::whole(bound.program)),
        context_{.winograd = options.compute.winograd,
                 .dense = options.compute.dense,
                 .products = options.compute.products} {
    for (const run::BatchInput& input : run::inputs_of(bound.program))
      for (const Port& port : bound.program.inputs)
        if (port.name == input.name && uses(executor_, port)) inputs_.push_back(input);
    state_ = run::tensors_at(bound.state, executor_.state());
  }

  const std::vector<run::BatchInput>& inputs() const { return inputs_; }

  Results run(const run::Batch& batch) {
    const torch::NoGradGuard no_grad;
    const Program& program = bound_.program;
    const auto inputs = run::batch_inputs(program, executor_.inputs(), batch);
    const auto made = executor_.run(inputs, state_, batch.samples, context_);
    Results results;
    for (const Port& output : program.outputs) {
      const auto at = std::ranges::find(executor_.outputs(), output.value);
      results.names.push_back(output.name);
      results.tensors.push_back(
          as_plain(made.at(static_cast<size_t>(at - executor_.outputs().begin()))));
      check_rows(output, results.tensors.back(), batch.samples);
    }
    return options_.top > 0 ? highest(results.tensors[0]) : results;
  }

 private:
  static void check_rows(const Port& output, const torch::Tensor& tensor, int64_t samples) {
    if (tensor.dim() == 0 || tensor.size(0) != samples)
      throw Error(ErrorCode::data,
                  fmt::format("the output '{}' does not have a row for each sample", output.name),
                  "export the model with a dynamic batch");
  }

  Results highest(const torch::Tensor& scores) const {
    if (scores.dim() < 2 || scores.size(1) < options_.top)
      throw Error(ErrorCode::usage,
                  fmt::format("--top {}: the network gives {} scores for a sample", options_.top,
                              scores.dim() < 2 ? 1 : scores.size(1)),
                  "choose a smaller number, or leave --top out");
    // Of equal scores the first one counts, on every machine.
    const auto [values, places] = scores.sort(true, 1, true);
    return {{"classes", "scores"},
            {places.narrow(1, 0, options_.top).contiguous(),
             values.narrow(1, 0, options_.top).contiguous()}};
  }

  const run::BoundProgram& bound_;
  const PredictionOptions& options_;
  run::Executor executor_;
  run::ExecutionContext context_;
  std::vector<run::BatchInput> inputs_;
  std::vector<torch::Tensor> state_;
};

std::string json_lines(const Results& results, int64_t first) {
  std::string text;
  for (int64_t i = 0; i < results.tensors[0].size(0); ++i) {
    fmt::format_to(std::back_inserter(text), "{{\"sample\": {}", first + i);
    for (size_t k = 0; k < results.tensors.size(); ++k) {
      fmt::format_to(std::back_inserter(text), ", \"{}\": ", results.names[k]);
      put_row(text, results.tensors[k][i]);
    }
    text += "}\n";
  }
  return text;
}

// The bytes of the main output; before those of the first sample, the header of the file.
std::string npy_bytes(const Results& results, int64_t first, int64_t count) {
  const torch::Tensor& main = results.tensors[0];
  std::string text;
  if (first == 0) {
    std::vector<int64_t> shape(main.sizes().begin(), main.sizes().end());
    shape[0] = count;
    text = data::make_npy_header(npy_type(main.scalar_type()), shape);
  }
  return text.append(static_cast<const char*>(main.const_data_ptr()), main.nbytes());
}

}  // namespace

DataNeeds prediction_needs(const run::BoundProgram& predictor, const networks::Network& network,
                           int threads) {
  const run::Executor executor(predictor.program, run::whole(predictor.program));
  DataNeeds needs = needs_of(network, threads);
  needs.target.clear();
  needs.training = false;
  std::erase_if(needs.inputs, [&](const networks::InputShape& input) {
    return std::ranges::none_of(predictor.program.inputs, [&](const Port& port) {
      return port.name == input.name && uses(executor, port);
    });
  });
  return needs;
}

void predict(const run::BoundProgram& bound, const data::Dataset& samples,
             comm::Transport& transport, const PredictionOptions& options,
             const std::function<void(std::string_view)>& write,
             const std::function<void(int64_t)>& tell) {
  Predictor predictor(bound, options);
  const data::Sampler sampler({.count = samples.count(),
                               .global_batch = options.batch_per_rank * transport.size(),
                               .ranks = transport.size(),
                               .shuffle = false});
  data::LoaderOptions loading = options.loader;
  loading.rank = transport.rank();
  loading.epochs = 1;
  loading.peers = nullptr;
  loading.bad_samples = data::BadSamples::stop;  // nobody else's result may take its place
  run::BatchLoader loader(samples, sampler, loading, predictor.inputs());
  std::vector<std::string> names;
  for (const run::BatchInput& input : predictor.inputs()) names.push_back(input.name);
  for (int64_t step = 0; step < sampler.steps_per_epoch(); ++step) {
    const data::Slice mine = sampler.slice(step, transport.rank());
    const run::Batch batch = loader.load(0, step, {{0, mine.size()}}, names);
    std::string part;
    if (mine.size() > 0) {
      const Results results = predictor.run(batch);
      part = options.format == PredictionFormat::npy
                 ? npy_bytes(results, mine.begin, samples.count())
                 : json_lines(results, mine.begin);
    }
    const comm::Call call{.operation = "gathering of results",
                          .step = step,
                          .timeout_seconds = options.timeout_seconds};
    for (const std::string& text : comm::gather_texts(transport, part, call)) write(text);
    if (transport.rank() == 0 && tell) tell(sampler.batch(step).end);
  }
  loader.close();
}

}  // namespace renkei::job
