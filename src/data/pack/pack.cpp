#include "data/pack/pack.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/checksum.h"
#include "base/philox.h"
#include "data/image/decode.h"
#include "data/pack/shard_writer.h"
#include "data/source/npy.h"

namespace renkei::data {
namespace {

struct Shard {
  const Source* source;
  std::string stem;
  int64_t begin, end;  // samples
};

// The one that is stored in shards; the index has room for one, and the label.
const StoredField& packed_field(const Source& source) {
  if (const StoredField* input = find_field(source, kInput)) return *input;
  throw Error(ErrorCode::usage, fmt::format("{} has no field 'input'", source.file_name(0)),
              "say which array it is: --set data.input=NAME");
}

std::vector<Shard> plan_shards(const PackInput& input, const PackOptions& options) {
  std::vector<Shard> shards;
  int64_t bytes = options.shard_bytes;  // so that the first sample opens a shard
  for (int64_t sample = 0; sample < input.source.count(); ++sample) {
    const int64_t length = input.source.locate(sample, packed_field(input.source).record).length;
    if (bytes + length > options.shard_bytes) {
      const auto number = shards.size();
      shards.push_back({&input.source,
                        join_path(options.directory, fmt::format("{}-{:06}", input.name, number)),
                        sample, sample});
      bytes = 0;
    }
    bytes += length;
    shards.back().end = sample + 1;
  }
  return shards;
}

// What must be the same for an interrupted run to be continued.
std::string describe_job(const std::vector<PackInput>& inputs, const PackOptions& options) {
  nlohmann::ordered_json parts = nlohmann::json::array();
  for (const PackInput& input : inputs) {
    Checksum lengths;
    const int64_t record = packed_field(input.source).record;
    for (int64_t sample = 0; sample < input.source.count(); ++sample)
      lengths.add(fmt::format("{} {},", input.source.locate(sample, record).length,
                              input.source.label(sample)));
    parts.push_back({{"name", input.name},
                     {"format", input.source.format()},
                     {"samples", input.source.count()},
                     {"lengths", lengths.hex()}});
  }
  return nlohmann::ordered_json{{"inputs", parts},
                                {"shard_bytes", options.shard_bytes},
                                {"resize", options.resize},
                                {"quality", options.quality},
                                {"baseline", options.baseline},
                                {"raw_share", options.raw_share}}
             .dump(2) +
         "\n";
}

// pack.json says what a run writes; one that was interrupted leaves it behind.
class Job {
 public:
  Job(const Storage& storage, const std::string& directory, const std::string& description)
      : storage_(storage),
        path_(join_path(directory, "pack.json")),
        lock_path_(join_path(directory, "pack.lock")) {
    if (storage.is_file(join_path(directory, "dataset.json")))
      throw Error(ErrorCode::usage, fmt::format("{} already holds a data set", directory),
                  "choose a new directory, or remove this one first");
    lock_ = storage.lock(lock_path_);
    const bool found = storage.is_file(path_);
    if (found && storage.read(path_) != description)
      throw Error(ErrorCode::usage,
                  fmt::format("{} holds a part of another data set, or of one with other options",
                              directory),
                  "choose a new directory, or remove this one first");
    if (!found) storage.write(path_, description);
  }
  void finish() {
    storage_.remove(path_);
    storage_.remove(lock_path_);
  }

 private:
  const Storage& storage_;
  std::string path_, lock_path_;
  std::shared_ptr<void> lock_;
};

Image decode_whole(std::string_view bytes, const std::string& name) {
  const ImageExtent extent = read_image_extent(bytes, name);
  Image image;
  decode_image_region(bytes, name, {0, 0, extent.width, extent.height}, 1, image);
  return image;
}

std::string npy_of(const Image& image) {
  return make_npy_header(kByteElement, {image.height, image.width, image.channels}) +
         std::string(image.pixels.begin(), image.pixels.end());
}

struct Content {
  std::string bytes;
  std::string_view extension;
  ImageExtent extent;
};

// A sample as it will be stored.
Content convert(const Source& source, int64_t sample, const PackOptions& options) {
  const StoredField& field = packed_field(source);
  const std::string record = source.read(sample, field.record);
  std::string bytes;
  if (const std::string_view content = source.content(sample, field, record, bytes);
      content.data() != bytes.data())
    bytes = std::string(content);
  if (field.layout)
    return {make_npy_header(field.layout->type, field.layout->shape) + bytes, "npy", {}};
  const std::string name = source.describe(sample);
  ImageExtent extent = read_image_extent(bytes, name);
  const bool raw = Random(0, RandomUse::shuffle, 0, static_cast<uint64_t>(sample)).uniform() <
                   static_cast<float>(options.raw_share);
  const int shorter = std::min(extent.width, extent.height);
  const bool shrink = options.resize > 0 && shorter > options.resize;
  if (shrink || raw) {
    Image image = decode_whole(bytes, name);
    const auto side = [&](int length) {
      return std::max(1, static_cast<int>(int64_t{length} * options.resize / shorter));
    };
    if (shrink) image = resize(image, side(extent.width), side(extent.height));
    extent = {image.width, image.height};
    bytes = raw ? npy_of(image) : encode_jpeg(image, options.quality);
  } else if (options.baseline && looks_like_jpeg(bytes)) {
    bytes = make_jpeg_baseline(bytes, name);
  }
  const std::string_view extension = looks_like_jpeg(bytes)  ? "jpg"
                                     : looks_like_npy(bytes) ? "npy"
                                                             : "png";
  return {std::move(bytes), extension, extent};
}

std::vector<IndexedSample> read_index(const Storage& storage, const Shard& shard,
                                      int64_t archive_bytes) {
  const std::string path = shard.stem + ".index";
  return parse_shard_index(storage.read(path), path, archive_bytes);
}

bool is_finished(const Storage& storage, const Shard& shard) {
  if (!storage.is_file(shard.stem + ".index") || !storage.is_file(shard.stem + ".tar"))
    return false;
  const int64_t bytes = storage.open(shard.stem + ".tar")->size();
  try {
    return static_cast<int64_t>(read_index(storage, shard, bytes).size()) ==
           shard.end - shard.begin;
  } catch (const Error& error) {
    if (error.code != ErrorCode::data) throw;
    return false;  // written again
  }
}

void write_shard(const Storage& storage, const Shard& shard, const PackOptions& options,
                 const std::function<void(int64_t)>& report) {
  ShardWriter writer(storage, shard.stem);
  for (int64_t sample = shard.begin; sample < shard.end; ++sample) {
    const Content content = convert(*shard.source, sample, options);
    writer.add(fmt::format("{:08}", sample), content.extension, content.bytes,
               shard.source->label(sample), static_cast<uint32_t>(content.extent.width),
               static_cast<uint32_t>(content.extent.height));
    report(1);
  }
  writer.finish();
}

// Passes samples of many threads on to a Progress that wants one at a time.
class Counter {
 public:
  Counter(int64_t total, const Progress& progress) : total_(total), progress_(progress) {}
  void add(int64_t samples) {
    const std::lock_guard lock(mutex_);
    done_ += samples;
    if (progress_) progress_(done_, total_);
  }

 private:
  std::mutex mutex_;
  int64_t done_ = 0;
  int64_t total_;
  const Progress& progress_;
};

void check(const PackOptions& options) {
  if (options.shard_bytes < 1 || options.resize < 0 || options.raw_share < 0 ||
      options.raw_share > 1)
    throw Error(ErrorCode::usage, "a size of shards below 1, or a share that is not in 0 … 1",
                "see renkei data pack --help");
}

}  // namespace

PackResult pack(const std::vector<PackInput>& inputs, const PackOptions& options) {
  check(options);
  const auto storage = open_storage(options.directory, options.storage);
  Job job(*storage, options.directory, describe_job(inputs, options));
  std::vector<Shard> shards;
  PackResult result;
  for (const PackInput& input : inputs) {
    std::ranges::copy(plan_shards(input, options), std::back_inserter(shards));
    result.samples += input.source.count();
  }
  result.shards = static_cast<int64_t>(shards.size());

  std::atomic<int64_t> found = 0;
  Counter counter(result.samples, options.progress);
  parallel_for(result.shards, options.threads, [&](int64_t i) {
    const Shard& shard = shards[static_cast<size_t>(i)];
    if (is_finished(*storage, shard)) {
      ++found;
      counter.add(shard.end - shard.begin);
    } else {
      write_shard(*storage, shard, options, [&](int64_t samples) { counter.add(samples); });
    }
  });
  result.shards_found = found;

  Checksum checksum;
  for (const Shard& shard : shards) {
    const int64_t bytes = storage->open(shard.stem + ".tar")->size();
    result.bytes += bytes;
    for (const IndexedSample& sample : read_index(*storage, shard, bytes))
      checksum.add(fmt::format("{:016x} {},", sample.checksum, sample.label));
  }
  result.checksum = checksum.hex();
  nlohmann::ordered_json description{{"format", "renkei shards 1"},
                                     {"samples", result.samples},
                                     {"bytes", result.bytes},
                                     {"checksum", result.checksum},
                                     {"classes", inputs.front().source.class_names()}};
  for (const PackInput& input : inputs) description["parts"][input.name] = input.source.count();
  storage->write(join_path(options.directory, "dataset.json"), description.dump(2) + "\n");
  job.finish();
  return result;
}

}  // namespace renkei::data
