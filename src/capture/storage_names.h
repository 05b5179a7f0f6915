// What PyTorch calls the memory of tensors in files: torch.FloatStorage and so on.
#pragma once

#include <array>
#include <string_view>

#include "program/program.h"

namespace renkei::capture {

struct StorageName {
  std::string_view name;
  program::DType dtype;
};
inline constexpr std::array<StorageName, 12> kStorages{{{"Float", program::DType::f32},
                                                        {"Double", program::DType::f64},
                                                        {"Half", program::DType::f16},
                                                        {"BFloat16", program::DType::bf16},
                                                        {"Long", program::DType::i64},
                                                        {"Int", program::DType::i32},
                                                        {"Short", program::DType::i16},
                                                        {"Char", program::DType::i8},
                                                        {"Byte", program::DType::u8},
                                                        {"Bool", program::DType::boolean},
                                                        {"ComplexFloat", program::DType::c64},
                                                        {"ComplexDouble", program::DType::c128}}};

// Empty: there is none.
inline std::string_view storage_name(program::DType dtype) {
  for (const StorageName& storage : kStorages)
    if (storage.dtype == dtype) return storage.name;
  return {};
}

}  // namespace renkei::capture
