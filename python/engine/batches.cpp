#include "batches.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "captured_model.h"
#include "data/loader/loader_settings.h"
#include "data/source/open_source.h"
#include "data/storage/storage_settings.h"
#include "job/training_data.h"
#include "run/batch_loader.h"

namespace renkei::python {
namespace {

std::unique_ptr<data::StoredData> open_data(const Batches::Options& options,
                                            const Settings& settings, int threads) {
  const auto storage = data::open_storage(options.path, data::storage_options(settings));
  auto source = data::open_source(
      storage, {.path = options.path,
                .part = options.held_out ? data::Part::held_out : data::Part::train,
                .input = settings.text("data.input"),
                .label = settings.text("data.label"),
                .threads = threads});
  if (!source)
    throw Error(ErrorCode::data, fmt::format("{} has no held-out part", options.path),
                "docs/data.md says where one is looked for");
  data::StoredDataOptions stored{.seed = options.seed};
  const bool encoded = std::ranges::any_of(source->fields(), [](const data::StoredField& field) {
    return !field.is_label() && !field.layout;
  });
  if (encoded && !options.image_size)
    throw Error(ErrorCode::usage,
                fmt::format("{} has images, and batches need them in one size", options.path),
                "give image_size=(height, width)");
  if (options.image_size) {
    stored.transform.height = options.image_size->first;
    stored.transform.width = options.image_size->second;
    stored.transform.normalisation = job::normalisation_of(settings);
    if (options.augment) {
      stored.transform.crop = options.held_out ? data::Crop::centre : data::Crop::random;
      stored.transform.flip = !options.held_out;
    }
  } else {
    // Numbers stay as they are stored.
    for (const data::StoredField& field : source->fields())
      if (field.layout) stored.inputs.push_back({field.name, field.layout->shape});
  }
  return std::make_unique<data::StoredData>(std::move(source), stored);
}

Settings data_settings(const std::map<std::string, std::string>& given) {
  for (const auto& [name, value] : given)
    if (!name.starts_with("data."))
      throw Error(ErrorCode::usage, fmt::format("the setting {} has no effect on data", name),
                  "settings of data begin with data.");
  return engine_settings(given);
}

}  // namespace

Batches::Batches(World& world, const Options& options)
    : open_(std::make_shared<Open>(
          open_data(options, data_settings(options.settings), world.threads()))),
      sampler_({.count = open_->data->count(),
                .global_batch = options.per_rank * world.size(),
                .ranks = world.size(),
                .seed = options.seed,
                .shuffle = options.shuffle}) {
  data::LoaderOptions loading = data::loader_options(data_settings(options.settings), world.rank());
  loading.seed = options.seed;
  loading.timeout_seconds = world.timeout_seconds();
  loading.epochs = 0;
  open_->loader = std::make_unique<data::Loader>(*open_->data, sampler_, loading);
}

Batches::Named Batches::load(int64_t epoch, int64_t step) {
  // A loop still has the batch before when it asks for the next one; one buffer must stay free.
  const bool copied = open_->lent >= std::min<int64_t>(2, open_->loader->buffers() - 1);
  const std::shared_ptr<const data::LoadedBatch> batch = open_->loader->load(epoch, step);
  struct Loan {
    std::shared_ptr<Open> of;
    std::shared_ptr<const data::LoadedBatch> batch;
    ~Loan() {
      batch.reset();
      --of->lent;
    }
  };
  ++open_->lent;
  const std::shared_ptr<Loan> loan(new Loan{open_, batch});
  Named named;
  for (const data::LoadedField& field : batch->fields) {
    std::vector<int64_t> sizes = field.field->shape;
    sizes.insert(sizes.begin(), batch->samples);
    // Nobody writes to it but who asked for it.
    void* memory = const_cast<std::byte*>(field.bytes.data());  // NOLINT
    const torch::Tensor tensor = torch::from_blob(
        memory, sizes, [loan](void*) {}, run::torch_dtype(field.field->dtype));
    named.emplace_back(field.field->name, copied ? tensor.clone() : tensor);
  }
  return named;
}

int64_t Batches::classes() const {
  int64_t most = 0;
  for (const data::Field& field : open_->data->fields())
    most = std::max<int64_t>(most, field.classes);
  return most;
}

void Batches::close() {
  open_->loader->close();
}

}  // namespace renkei::python
