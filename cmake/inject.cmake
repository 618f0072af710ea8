# Upstream includes this file right after its project() (CMAKE_PROJECT_MySQL_INCLUDE). Its targets do not exist yet, so
# our files are included at the end of its top folder. EVAL CODE: DEFER alone would expand the variables too late.
macro(spw_include_last file)
  cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [[${CMAKE_SOURCE_DIR}]] CALL include [[${file}]])")
endmacro()

# Bison puts the header's path into the include guard. Without the prefix the guard, and so the objects, are the same in
# every tree. Upstream passes this variable to its BISON_TARGETs.
set(BISON_NO_LINE_OPT "--file-prefix-map=${CMAKE_BINARY_DIR}/= --file-prefix-map=${CMAKE_SOURCE_DIR}/=")

spw_include_last("${CMAKE_CURRENT_LIST_DIR}/precompile.cmake")
if(SPILLWAY_REPOSITORY)
  spw_include_last("${CMAKE_CURRENT_LIST_DIR}/sources.cmake")
  spw_include_last("${CMAKE_CURRENT_LIST_DIR}/base.cmake")
  spw_include_last("${CMAKE_CURRENT_LIST_DIR}/install.cmake")
  spw_include_last("${CMAKE_CURRENT_LIST_DIR}/version.cmake")
endif()
spw_include_last("${CMAKE_CURRENT_LIST_DIR}/bench.cmake")
