#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace renkei::data {

// Which half of a data set: some files and folders hold both.
enum class Part { train, held_out };

// Files of named arrays (npz, HDF5, folders of npy) hold the fields of samples under names that
// people chose.
struct ArrayNames {
  std::string input;  // the array that is the field "input"; empty: there is none
  std::string label;  // likewise "target"
  struct Other {
    std::string field;  // "ids" for ids_train and, held out, ids_test
    std::string array;
  };
  std::vector<Other> others = {};
};

// From the names in a file: the ones asked for ("auto": by the usual names, input and target,
// x_train and y_train, x and y, images and labels, data and target, arr_0 and arr_1; x_test and
// y_test when held out). All others of the same part may be fields of their own. Nothing when a
// held-out part was asked for and there is none; a data Error that lists the names when one that
// was asked for is not there.
std::optional<ArrayNames> choose_arrays(const std::vector<std::string>& names,
                                        const std::string& file, Part part,
                                        const std::string& input, const std::string& label);

// For arrays without a usual name that are no table, because they are of different lengths.
Error no_usual_name(const std::string& file, const std::vector<std::string>& names);

}  // namespace renkei::data
