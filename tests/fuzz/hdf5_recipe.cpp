#include "tests/fuzz/hdf5_recipe.h"

#include <hdf5.h>

#include <array>
#include <vector>

namespace renkei::data {
namespace {

// Takes choices from the recipe; zeros when it is over.
class Recipe {
 public:
  explicit Recipe(std::string_view bytes) : rest_(bytes) {}
  bool is_over() const { return rest_.empty(); }
  unsigned below(unsigned end) {
    if (rest_.empty()) return 0;
    const auto byte = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return byte % end;
  }

 private:
  std::string_view rest_;
};

hid_t make_type(Recipe& recipe) {
  const std::array plain{H5T_STD_U8LE,   H5T_STD_I8LE,   H5T_STD_U16BE,      H5T_STD_I16LE,
                         H5T_STD_U32LE,  H5T_STD_I32BE,  H5T_STD_U64BE,      H5T_STD_I64LE,
                         H5T_IEEE_F32LE, H5T_IEEE_F64BE, H5T_NATIVE_LDOUBLE, H5T_C_S1,
                         H5T_STD_B8LE,   H5T_UNIX_D32LE};
  const unsigned kind = recipe.below(static_cast<unsigned>(plain.size()) + 3);
  if (kind < plain.size()) {
    const hid_t type = H5Tcopy(plain[kind]);
    if (recipe.below(4) == 1) H5Tset_size(type, 1 + recipe.below(9));
    return type;
  }
  if (kind == plain.size()) {
    const hid_t type = H5Tcreate(H5T_COMPOUND, 4);
    H5Tinsert(type, "a", 0, H5T_STD_I16LE);
    return type;
  }
  if (kind == plain.size() + 1) return H5Tvlen_create(H5T_STD_U8LE);
  const hsize_t side = 1 + recipe.below(3);
  return H5Tarray_create2(H5T_STD_U8LE, 1, &side);
}

hsize_t side_of(Recipe& recipe) {
  const unsigned choice = recipe.below(16);
  if (choice == 15) return hsize_t{1} << (20 + recipe.below(43));
  if (choice == 14) return 1000;
  return choice;
}

void add_dataset(hid_t file, Recipe& recipe) {
  const std::array<const char*, 10> names{"x_train", "y_train", "x",       "y",      "images",
                                          "labels",  "data",    "group/x", "x_test", "other"};
  const char* name = names[recipe.below(static_cast<unsigned>(names.size()))];
  const hid_t type = make_type(recipe);
  std::vector<hsize_t> sides(recipe.below(5)), chunk, most;
  for (hsize_t& side : sides) side = side_of(recipe);
  hsize_t elements = 1;
  for (const hsize_t side : sides) {
    chunk.push_back(1 + recipe.below(4));
    most.push_back(recipe.below(3) == 1 ? H5S_UNLIMITED : side);
    elements = elements > 100'000 || side > 100'000 ? 100'001 : elements * side;
  }
  const unsigned layout = recipe.below(3);
  const hid_t space = sides.empty() ? H5Screate(recipe.below(2) ? H5S_NULL : H5S_SCALAR)
                                    : H5Screate_simple(static_cast<int>(sides.size()), sides.data(),
                                                       layout == 1 ? most.data() : nullptr);
  const hid_t created = H5Pcreate(H5P_DATASET_CREATE), links = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_create_intermediate_group(links, 1);
  if (layout == 1 && !sides.empty()) {
    H5Pset_chunk(created, static_cast<int>(chunk.size()), chunk.data());
    if (recipe.below(3) == 1) H5Pset_deflate(created, 1);
    if (recipe.below(4) == 1) H5Pset_fletcher32(created);
  } else if (layout == 2) {
    H5Pset_layout(created, H5D_COMPACT);
  }
  const hid_t dataset = H5Dcreate2(file, name, type, space, links, created, H5P_DEFAULT);
  // Large ones stay without content, which is allowed.
  if (dataset >= 0 && elements <= 10'000 && recipe.below(3) > 0 && H5Tget_class(type) != H5T_VLEN) {
    std::vector<char> content(elements * H5Tget_size(type) + 1);
    for (char& byte : content) byte = static_cast<char>(recipe.below(256));
    H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, content.data());
  }
  if (dataset >= 0) H5Dclose(dataset);
  H5Pclose(links);
  H5Pclose(created);
  if (space >= 0) H5Sclose(space);
  H5Tclose(type);
}

}  // namespace

std::string make_hdf5_file(std::string_view bytes) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  Recipe recipe(bytes);
  const hid_t access = H5Pcreate(H5P_FILE_ACCESS), created = H5Pcreate(H5P_FILE_CREATE);
  H5Pset_fapl_core(access, 1 << 16, false);
  if (recipe.below(4) == 1) H5Pset_libver_bounds(access, H5F_LIBVER_LATEST, H5F_LIBVER_LATEST);
  if (recipe.below(8) == 1) H5Pset_userblock(created, 512);
  const hid_t file = H5Fcreate("recipe.h5", H5F_ACC_TRUNC, created, access);
  for (int i = 0; i < 4 && !recipe.is_over(); ++i) add_dataset(file, recipe);
  H5Fflush(file, H5F_SCOPE_LOCAL);
  const ssize_t size = H5Fget_file_image(file, nullptr, 0);
  std::string image(size > 0 ? static_cast<size_t>(size) : 0, '\0');
  if (size > 0) H5Fget_file_image(file, image.data(), image.size());
  H5Fclose(file);
  H5Pclose(created);
  H5Pclose(access);
  return image;
}

}  // namespace renkei::data
