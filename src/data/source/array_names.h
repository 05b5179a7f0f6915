#pragma once

#include <string>
#include <vector>

namespace renkei::data {

// Which half of a data set: some files and folders hold both.
enum class Part { train, held_out };

// Files of named arrays (npz, HDF5) hold inputs and labels under names that people chose.
struct ArrayNames {
  std::string input;
  std::string label;  // empty: there are none
};

// From the names in a file: the ones asked for ("auto": by the usual names, x_train and y_train, x
// and y, images and labels, data and target, arr_0 and arr_1; x_test and y_test when held out).
// Empty `input` when a held-out part was asked for and there is none; a data Error that lists the
// names when nothing fits otherwise.
ArrayNames choose_arrays(const std::vector<std::string>& names, const std::string& file, Part part,
                         const std::string& input, const std::string& label);

}  // namespace renkei::data
