# Upstream includes this right after its project(): CMAKE_PROJECT_MySQL_INCLUDE. Its targets do not exist yet; what is
# ours is added at the end of its top folder. (EVAL CODE: DEFER would expand the variables too late.)
cmake_language(EVAL CODE
  "cmake_language(DEFER DIRECTORY [[${CMAKE_SOURCE_DIR}]]
     CALL include [[${CMAKE_CURRENT_LIST_DIR}/precompile.cmake]])")
if(SPILLWAY_REPOSITORY)
  cmake_language(EVAL CODE
    "cmake_language(DEFER DIRECTORY [[${CMAKE_SOURCE_DIR}]]
       CALL include [[${CMAKE_CURRENT_LIST_DIR}/sources.cmake]])")
endif()
