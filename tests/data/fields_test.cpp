// Samples of several fields, of different types, from every format that can hold them.
#include <fmt/ranges.h>

#include <filesystem>

#include "data/loader/loader.h"
#include "data/source/open_source.h"
#include "data/stored_data.h"
#include "tests/data/expect_error.h"
#include "tests/data/field_values.h"
#include "tests/data/source/sample_files.h"
#include "tests/data/temporary_directory.h"
#include "tests/data/write_file.h"
#ifdef RENKEI_HAVE_JPEG
#include "data/image/jpeg.h"
#include "data/shapes.h"
#endif
#ifdef RENKEI_HAVE_HDF5
#include <hdf5.h>
#endif

namespace renkei::data {
namespace {

using testing::ElementsAre;

constexpr ElementType kInt32{ElementKind::signed_integer, 4, false};
constexpr ElementType kInt64{ElementKind::signed_integer, 8, false};
constexpr ElementType kFloat32{ElementKind::floating, 4, false};
constexpr ElementType kFloat64{ElementKind::floating, 8, false};
constexpr ElementType kBool{ElementKind::boolean, 1, false};

class Fields : public testing::Test {
 protected:
  std::string add(const std::string& name, std::string_view content) {
    write_test_file(directory_.path() / name, content);
    return (directory_.path() / name).string();
  }
  StoredData open(const std::string& path, const StoredDataOptions& options = {},
                  Part part = Part::train) {
    storage_ = open_storage(path);
    return StoredData(open_source(storage_, {.path = path, .part = part}), options);
  }
  // "name dtype shape classes" of each.
  static std::vector<std::string> described(const Dataset& data) {
    std::vector<std::string> texts;
    for (const Field& field : data.fields())
      texts.push_back(fmt::format("{} {} [{}] {}", field.name, name_of(field.dtype),
                                  fmt::join(field.shape, " "), field.classes));
    return texts;
  }

  TemporaryDirectory directory_;
  std::shared_ptr<const Storage> storage_;
};

// Three samples: pairs of i32, a number of f64, a flag, ids beyond what floats hold.
std::vector<std::pair<std::string, std::string>> table_files() {
  return {{"pairs.npy", npy(kInt32, {3, 2}, as_bytes<int32_t>({1, 2, 3, 4, 5, 6}))},
          {"price.npy", npy(kFloat64, {3}, as_bytes<double>({0.1, 0.2, 0.3}))},
          {"flag.npy", npy(kBool, {3}, std::string_view("\1\0\1", 3))},
          {"ids.npy", npy(kInt64, {3}, as_bytes<int64_t>({1, (1 << 24) + 1, int64_t{1} << 40}))}};
}

void expect_table(const Dataset& data) {
  EXPECT_EQ(data.count(), 3);
  EXPECT_THAT(values_of<int32_t>(data, 1, "pairs"), ElementsAre(3, 4));
  EXPECT_THAT(values_of<double>(data, 2, "price"), ElementsAre(0.3));
  EXPECT_THAT(values_of<uint8_t>(data, 1, "flag"), ElementsAre(0));
  EXPECT_THAT(values_of<int64_t>(data, 1, "ids"), ElementsAre((1 << 24) + 1));
  EXPECT_THAT(values_of<int64_t>(data, 2, "ids"), ElementsAre(int64_t{1} << 40));
}

TEST_F(Fields, OfATableOfArraysKeepTheirTypesAndShapes) {
  for (const bool deflated : {false, true}) {
    const StoredData data = open(add("a.npz", zip(table_files(), deflated)));
    EXPECT_THAT(described(data), ElementsAre("pairs i32 [2] 0", "price f64 [] 0",
                                             "flag boolean [] 0", "ids i64 [] 0"));
    EXPECT_EQ(data.fields()[1].origin, "array price");
    expect_table(data);
  }
}

TEST_F(Fields, OfAFolderOfArrays) {
  for (const auto& [name, content] : table_files()) add("set/" + name, content);
  const StoredData data = open((directory_.path() / "set").string());
  EXPECT_EQ(data.source()->format(), "npy folder");
  EXPECT_EQ(data.source()->files(), 4);
  expect_table(data);
}

TEST_F(Fields, BesideInputAndTargetHaveTheirOwnNames) {
  const auto path =
      add("a.npz", zip({{"x_train.npy", npy(kFloat32, {2, 3}, as_bytes<float>({1, 2, 3, 4, 5, 6}))},
                        {"y_train.npy", npy(kInt32, {2}, as_bytes<int32_t>({4, 0}))},
                        {"mask_train.npy", npy(kBool, {2, 3}, std::string_view("\1\0\1\1\1\0", 6))},
                        {"x_test.npy", npy(kFloat32, {1, 3}, as_bytes<float>({7, 8, 9}))},
                        {"y_test.npy", npy(kInt32, {1}, as_bytes<int32_t>({3}))},
                        {"mask_test.npy", npy(kBool, {1, 3}, std::string_view("\1\1\1", 3))},
                        {"names.npy", npy(kByteElement, {5}, "about")}},
                       false));
  const StoredData train = open(path), test = open(path, {}, Part::held_out);
  EXPECT_THAT(described(train),
              ElementsAre("input f32 [3] 0", "target i64 [] 5", "mask boolean [3] 0"));
  EXPECT_THAT(described(test),
              ElementsAre("input f32 [3] 0", "target i64 [] 4", "mask boolean [3] 0"));
  EXPECT_EQ(label_of(train, 0), 4);
  EXPECT_THAT(values_of<uint8_t>(train, 1, "mask"), ElementsAre(1, 1, 0));
  EXPECT_THAT(input_of(test, 0), ElementsAre(7, 8, 9));
}

TEST_F(Fields, TargetsMayBeNumbers) {
  const StoredData data =
      open(add("a.npz", zip({{"x.npy", npy(kFloat64, {2, 2}, as_bytes<double>({1, 2, 3, 4}))},
                             {"y.npy", npy(kFloat64, {2, 1}, as_bytes<double>({0.5, 0.25}))}},
                            false)));
  EXPECT_THAT(described(data), ElementsAre("input f64 [2] 0", "target f64 [1] 0"));
  EXPECT_THAT(values_of<double>(data, 1, kTarget), ElementsAre(0.25));
}

TEST_F(Fields, AreRenamedByTheMapAndMissingOnesAreNamed) {
  const auto path = add("a.npz", zip(table_files(), false));
  const StoredData data = open(path, {.map = parse_field_map("input=pairs,target=price")});
  EXPECT_THAT(described(data), ElementsAre("input i32 [2] 0", "target f64 [] 0",
                                           "flag boolean [] 0", "ids i64 [] 0"));
  EXPECT_THAT(values_of<int32_t>(data, 2, kInput), ElementsAre(5, 6));
  expect_error(ErrorCode::usage, "the data has no field 'prize'",
               [&] { open(path, {.map = parse_field_map("target=prize")}); });
  expect_error(ErrorCode::usage, "the data has no field 'target'; it has pairs",
               [&] { field_index(open(path).fields(), kTarget); });
}

TEST_F(Fields, OnlyChosenOnesAreRead) {
  const std::string path =
      add("a.npz", zip({{"x.npy", npy(kByteElement, {64, 5000}, std::string(320'000, 'x'))},
                        {"y.npy", npy(kByteElement, {64}, std::string(64, '\1'))},
                        {"ids.npy", npy(kInt64, {64}, std::string(512, '\0'))}},
                       false));
  const Sampler sampler({.count = 64, .global_batch = 16});
  const auto read_for = [&](const std::vector<std::string>& names) {
    const StoredData data = open(path);
    std::vector<size_t> fields;
    for (const std::string& name : names) fields.push_back(field_index(data.fields(), name));
    const int64_t before = storage_->counters().bytes, reads = storage_->counters().reads;
    Loader loader(data, sampler, {.threads = 2, .epochs = 1, .fields = fields});
    for (int64_t step = 0; step < 4; ++step) {
      const auto batch = loader.load(0, step);
      EXPECT_EQ(batch->fields.size(), names.size());
      for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(batch->fields[i].field->name, names[i]);
    }
    return std::pair{storage_->counters().reads - reads, storage_->counters().bytes - before};
  };
  using Counted = std::pair<int64_t, int64_t>;  // reads, bytes
  EXPECT_EQ(read_for({"target"}), Counted(0, 0));
  EXPECT_EQ(read_for({}), Counted(0, 0));
  EXPECT_LT(read_for({"target", "ids"}).second, 5000);
  EXPECT_GE(read_for({"input"}).second, 320'000);
}

TEST_F(Fields, ArriveTogetherAndInTheOrderThatWasAskedFor) {
  const StoredData data = open(add("a.npz", zip(table_files(), false)));
  const Sampler sampler({.count = 3, .global_batch = 3, .seed = 4});
  Loader loader(data, sampler, {.fields = std::vector<size_t>{3, 0}});
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    const auto batch = loader.load(epoch, 0);
    for (int64_t i = 0; i < 3; ++i) {
      const int64_t sample = sampler.sample(epoch, i);
      const auto place = static_cast<size_t>(i);
      EXPECT_EQ(batch->fields[0].as<int64_t>()[place], values_of<int64_t>(data, sample, "ids")[0]);
      EXPECT_EQ(batch->fields[1].as<int32_t>()[2 * place + 1],
                values_of<int32_t>(data, sample, "pairs")[1]);
    }
    expect_error(ErrorCode::bug, "was taken as numbers of 4 bytes",
                 [&] { batch->fields[0].as<float>(); });
  }
  expect_error(ErrorCode::bug, "field 9",
               [&] { Loader(data, sampler, {.fields = std::vector<size_t>{9}}); });
}

// tf.train.Example with these features, each a name and the message of its list.
std::string example_of(const std::vector<std::pair<std::string, std::string>>& features) {
  std::string entries;
  for (const auto& [name, feature] : features)
    entries += proto(1, proto(1, name) + proto(2, feature));
  return proto(1, entries);
}
std::string floats(const std::vector<float>& values) {
  return proto(2, proto(1, as_bytes(values)));
}
std::string small_integers(std::string_view values) {
  return proto(3, proto(1, values));
}

TEST_F(Fields, OfTfRecordsAreTheFeatures) {
  const auto record = [](float weight, char label) {
    return tf_record(example_of({{"weights", floats({weight, 2})},
                                 {"ids", small_integers("\x01\x02\x03")},
                                 {"label", small_integers(std::string(1, label))},
                                 {"note", proto(1, proto(1, "text is for people"))}}));
  };
  const StoredData data = open(add("a.tfrecord", record(0.5f, 3) + record(1.5f, 1)));
  EXPECT_THAT(described(data),
              ElementsAre("target i64 [] 4", "weights f32 [2] 0", "ids i64 [3] 0"));
  EXPECT_EQ(data.fields()[1].origin, "feature weights");
  EXPECT_THAT(values_of<float>(data, 1, "weights"), ElementsAre(1.5f, 2));
  EXPECT_THAT(values_of<int64_t>(data, 0, "ids"), ElementsAre(1, 2, 3));
  EXPECT_EQ(label_of(data, 1), 1);
}

TEST_F(Fields, ATfRecordWithOtherFeaturesIsABadSample) {
  const StoredData data =
      open(add("a.tfrecord", tf_record(example_of({{"a", floats({1, 2})}})) +
                                 tf_record(example_of({{"a", floats({1, 2, 3})}})) +
                                 tf_record(example_of({{"a", small_integers("\x01\x02")}})) +
                                 tf_record(example_of({{"b", floats({1, 2})}}))));
  for (const int64_t sample : {1, 2})
    expect_error(ErrorCode::data, fmt::format("sample {} has other numbers in 'a'", sample),
                 [&] { values_of<float>(data, sample, "a"); });
  expect_error(ErrorCode::data, "sample 3 has no feature 'a'",
               [&] { values_of<float>(data, 3, "a"); });
}

TEST_F(Fields, OfTarShardsAreTheMembers) {
  const auto sample = [](int number, double depth) {
    const std::string name = std::to_string(number);
    return tar_member(name + ".depth.npy", npy(kFloat64, {2}, as_bytes<double>({depth, 1}))) +
           tar_member(name + ".tokens.npy", npy(kInt32, {}, as_bytes<int32_t>({number}))) +
           tar_member(name + ".cls", std::to_string(number + 1)) + tar_member(name + ".json", "{}");
  };
  const StoredData data =
      open(add("a.tar", sample(0, 0.5) + sample(1, 0.25) +
                            tar_member("2.depth.npy", npy(kFloat32, {2}, as_bytes<float>({1, 2}))) +
                            tar_member("2.cls", "1") + tar_end()));
  EXPECT_THAT(described(data),
              ElementsAre("target i64 [] 3", "depth.npy f64 [2] 0", "tokens.npy i32 [] 0"));
  EXPECT_THAT(values_of<double>(data, 1, "depth.npy"), ElementsAre(0.25, 1));
  EXPECT_THAT(values_of<int32_t>(data, 1, "tokens.npy"), ElementsAre(1));
  EXPECT_EQ(label_of(data, 1), 2);
  expect_error(ErrorCode::data, "has another type or shape than that of sample 0",
               [&] { values_of<double>(data, 2, "depth.npy"); });
  expect_error(ErrorCode::data, "sample 2 has no member .tokens.npy",
               [&] { values_of<int32_t>(data, 2, "tokens.npy"); });

  // The last one is replaced where it is bad, and not where its label is all that is needed.
  const Sampler sampler({.count = 3, .global_batch = 3, .shuffle = false});
  Loader all(data, sampler, {.bad_samples = BadSamples::skip});
  all.load(0, 0);
  EXPECT_EQ(all.statistics().bad_samples.count(2), 1u);
  Loader labels(data, sampler, {.fields = std::vector<size_t>{0}});
  EXPECT_THAT(values_of<int64_t>(*labels.load(0, 0), kTarget), ElementsAre(1, 2, 1));
}

TEST_F(Fields, AnArrayInATarMayBeTheInput) {
  const StoredData data =
      open(add("a.tar", tar_member("0.npy", npy(kFloat32, {3}, as_bytes<float>({1, 2, 3}))) +
                            tar_member("1.npy", npy(kFloat32, {3}, as_bytes<float>({4, 5, 6}))) +
                            tar_end()));
  EXPECT_THAT(described(data), ElementsAre("input f32 [3] 0"));
  EXPECT_THAT(input_of(data, 1), ElementsAre(4, 5, 6));
}

#ifdef RENKEI_HAVE_JPEG
TEST_F(Fields, ImagesOfASampleAreAllDecoded) {
  const std::string left = encode_jpeg(draw_shape(1, 0, 16).image, 95);
  const std::string right = encode_jpeg(draw_shape(1, 1, 16).image, 95);
  const std::string path =
      add("a.tar", tar_member("0.jpg", left) + tar_member("0.right.jpg", right) +
                       tar_member("0.npy", npy(kInt64, {1}, as_bytes<int64_t>({7}))) +
                       tar_member("0.cls", "1") + tar_end());
  const StoredData data = open(path, {.transform = {.height = 8, .width = 8}});
  EXPECT_THAT(described(data), ElementsAre("input f32 [3 8 8] 0", "target i64 [] 2",
                                           "right.jpg f32 [3 8 8] 0", "npy i64 [1] 0"));
  EXPECT_NE(input_of(data, 0), values_of<float>(data, 0, "right.jpg"));
  EXPECT_THAT(values_of<int64_t>(data, 0, "npy"), ElementsAre(7));
}

TEST_F(Fields, LabelsOfImagesAreReadWithoutTheImages) {
  add("c/0.jpg", "not an image at all");
  add("d/0.jpg", "nor is this");
  const StoredData data = open(directory_.path().string());
  const int64_t opens = storage_->counters().opens;
  Loader loader(data, Sampler({.count = 2, .global_batch = 2, .shuffle = false}),
                {.fields = std::vector<size_t>{1}});
  EXPECT_THAT(values_of<int64_t>(*loader.load(0, 0), kTarget), ElementsAre(0, 1));
  EXPECT_EQ(storage_->counters().opens, opens);
}
#endif

#ifdef RENKEI_HAVE_HDF5
template <typename T>
void write_dataset(hid_t file, const char* name, hid_t type, const std::vector<hsize_t>& shape,
                   const std::vector<T>& values, bool packed) {
  const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
  const hid_t options = H5Pcreate(H5P_DATASET_CREATE);
  if (packed) {
    H5Pset_chunk(options, static_cast<int>(shape.size()), shape.data());
    H5Pset_deflate(options, 6);
  }
  const hid_t data = H5Dcreate2(file, name, type, space, H5P_DEFAULT, options, H5P_DEFAULT);
  H5Dwrite(data, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data());
  H5Dclose(data);
  H5Pclose(options);
  H5Sclose(space);
}

TEST_F(Fields, OfHdf5FilesAreTheirDataSets) {
  for (const bool packed : {false, true}) {
    const std::string path = (directory_.path() / "a.h5").string();
    const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    write_dataset<float>(file, "images", H5T_NATIVE_FLOAT, {2, 2}, {1, 2, 3, 4}, packed);
    write_dataset<double>(file, "labels", H5T_NATIVE_DOUBLE, {2, 1}, {0.5, 0.25}, packed);
    write_dataset<int32_t>(file, "ages", H5T_NATIVE_INT32, {2}, {-5, 70000}, packed);
    write_dataset<int64_t>(file, "about", H5T_NATIVE_INT64, {3}, {1, 2, 3}, packed);
    H5Fclose(file);
    const StoredData data = open(path);
    EXPECT_THAT(described(data),
                ElementsAre("input f32 [2] 0", "target f64 [1] 0", "ages i32 [] 0"));
    EXPECT_THAT(input_of(data, 1), ElementsAre(3, 4));
    EXPECT_THAT(values_of<double>(data, 1, kTarget), ElementsAre(0.25));
    EXPECT_THAT(values_of<int32_t>(data, 0, "ages"), ElementsAre(-5));
    EXPECT_THAT(values_of<int32_t>(data, 1, "ages"), ElementsAre(70000));
  }
}
#endif

}  // namespace
}  // namespace renkei::data
