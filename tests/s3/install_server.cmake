# Installs what package-lock.json names into the working directory, unless it is there.
set(here ${CMAKE_CURRENT_SOURCE_DIR})
set(installed ${here}/node_modules/.package-lock.json)
if(NOT EXISTS ${installed} OR ${here}/package-lock.json IS_NEWER_THAN ${installed})
  execute_process(COMMAND ${NPM} ci --no-audit --no-fund --ignore-scripts COMMAND_ERROR_IS_FATAL ANY)
endif()
