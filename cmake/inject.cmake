# Upstream includes this right after its project(): CMAKE_PROJECT_MySQL_INCLUDE. Its targets do not exist yet, so what is
# ours is included at the end of its top folder. (EVAL CODE: DEFER by itself would expand the variables too late.)
macro(spw_include_last file)
  cmake_language(EVAL CODE "cmake_language(DEFER DIRECTORY [[${CMAKE_SOURCE_DIR}]] CALL include [[${file}]])")
endmacro()

# The include guard of the header that Bison writes holds the header's path; without its first part it is the same in
# every tree, and so are the objects. Upstream gives this variable to its BISON_TARGETs.
set(BISON_NO_LINE_OPT "--file-prefix-map=${CMAKE_BINARY_DIR}/= --file-prefix-map=${CMAKE_SOURCE_DIR}/=")

spw_include_last("${CMAKE_CURRENT_LIST_DIR}/precompile.cmake")
if(SPILLWAY_REPOSITORY)
  spw_include_last("${CMAKE_CURRENT_LIST_DIR}/sources.cmake")
endif()
spw_include_last("${CMAKE_CURRENT_LIST_DIR}/bench.cmake")
