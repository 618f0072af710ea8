# Micro-benchmarks of InnoDB's classes. They link the libraries that mysqld links, and are built only on request.
get_target_property(spw_server_libraries mysqld LINK_LIBRARIES)
get_directory_property(spw_innobase_definitions DIRECTORY "${CMAKE_SOURCE_DIR}/storage/innobase" COMPILE_DEFINITIONS)
get_target_property(spw_innobase_includes innobase INCLUDE_DIRECTORIES)
cmake_path(GET CMAKE_CURRENT_LIST_DIR PARENT_PATH spw_repository)

add_executable(aio_bench EXCLUDE_FROM_ALL "${spw_repository}/bench/micro/aio_bench.cc")
target_include_directories(aio_bench PRIVATE ${spw_innobase_includes})
target_compile_definitions(aio_bench PRIVATE ${spw_innobase_definitions})
target_compile_options(aio_bench PRIVATE -Wno-unused-parameter) # as for InnoDB
set_target_properties(aio_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/runtime_output_directory")
target_link_libraries(aio_bench PRIVATE ${spw_server_libraries})
if(SPILLWAY_REPOSITORY)
  target_include_directories(aio_bench PRIVATE "${spw_repository}/storage/innobase")
else()
  target_compile_definitions(aio_bench PRIVATE SPILLWAY_STOCK)
endif()
