# Torch and oneDNN come as Python packages. RENKEI_PYTHON names the Python whose torch is used: that of
# the project's .venv, or the user's own (make PYTHON=...).

if(SKBUILD)  # pip builds for the Python that it installs into
  set(RENKEI_PYTHON ${Python_EXECUTABLE} CACHE FILEPATH "")
endif()
set(RENKEI_PYTHON "${PROJECT_SOURCE_DIR}/.venv/bin/python" CACHE FILEPATH "The Python that has torch")

# oneDNN: a shared library and headers below the prefix of the .venv.
set(RENKEI_ONEDNN_ROOT "${PROJECT_SOURCE_DIR}/.venv" CACHE PATH "Where oneDNN's include and lib are")
find_path(ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp PATHS ${RENKEI_ONEDNN_ROOT}/include NO_DEFAULT_PATH REQUIRED)
find_library(ONEDNN_LIBRARY NAMES libdnnl.so.3 PATHS ${RENKEI_ONEDNN_ROOT}/lib NO_DEFAULT_PATH REQUIRED)
file(STRINGS ${ONEDNN_INCLUDE}/oneapi/dnnl/dnnl_version.h onednn_version REGEX "define DNNL_VERSION_(MAJOR|MINOR) ")
string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*" "\\1.\\2" onednn_version "${onednn_version}")
renkei_found("oneDNN" "${onednn_version} (${ONEDNN_LIBRARY})")

if(NOT RENKEI_TORCH)
  renkei_found("PyTorch" "left out (RENKEI_TORCH=OFF): no training")
  return()
endif()

# By path, not by Torch's own CMake files: those of a build with CUDA ask for CUDA.
execute_process(
  COMMAND ${RENKEI_PYTHON} -c "import importlib.util as u; print(u.find_spec('torch').submodule_search_locations[0])"
  OUTPUT_VARIABLE RENKEI_TORCH_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(failed)
  message(FATAL_ERROR "${RENKEI_PYTHON} has no torch: run 'make setup', or name a Python that has one with make PYTHON=...")
endif()
file(STRINGS ${RENKEI_TORCH_ROOT}/version.py torch_version REGEX "^__version__")
string(REGEX MATCH "[0-9]+[.][0-9]+[.][0-9]+[^']*" RENKEI_TORCH_VERSION "${torch_version}")
if(RENKEI_TORCH_VERSION VERSION_LESS 2.13)
  message(FATAL_ERROR "Renkei needs PyTorch 2.13 or newer, and ${RENKEI_PYTHON} has ${RENKEI_TORCH_VERSION}: "
                      "install a newer one there, or run 'make setup' for one in .venv")
endif()
renkei_found("PyTorch" "${RENKEI_TORCH_VERSION} (${RENKEI_TORCH_ROOT})")

# Its headers do not pass our warnings, and bring other versions of libraries that we use (fmt,
# pybind11): system headers, searched last. Binaries find its libraries, libgomp among them, by rpath.
add_library(renkei_torch INTERFACE)
target_compile_options(renkei_torch INTERFACE
  "SHELL:-idirafter ${RENKEI_TORCH_ROOT}/include" "SHELL:-idirafter ${RENKEI_TORCH_ROOT}/include/torch/csrc/api/include")
foreach(name torch_cpu c10)
  find_library(TORCH_${name} ${name} PATHS ${RENKEI_TORCH_ROOT}/lib NO_CACHE NO_DEFAULT_PATH REQUIRED)
  target_link_libraries(renkei_torch INTERFACE ${TORCH_${name}})
endforeach()
target_link_options(renkei_torch INTERFACE
  "LINKER:--disable-new-dtags,-rpath,${RENKEI_TORCH_ROOT}/lib" "LINKER:--no-as-needed")
