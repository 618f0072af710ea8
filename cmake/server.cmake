# One server, built from build/<tree>/source in build/<tree>/<flavor>.
#
# Stock and fork have the same relative path from build folder to source, and ccache sees relative paths. A file that no
# patch touches therefore has the same hash in both, and in another clone.
include(ExternalProject)
find_package(Python3 REQUIRED COMPONENTS Interpreter)

set(spw_build "${CMAKE_SOURCE_DIR}/build")
set(spw_source "${spw_build}/${SPILLWAY_TREE}/source")
set(spw_server "${spw_build}/${SPILLWAY_TREE}/${SPILLWAY_FLAVOR}")

# "system" libraries are Debian's. No build has NDB or the router (a separate program). Only the deploy build has the
# X plugin and authentication by devices; others build group replication when asked to.
set(spw_options
  -DCMAKE_BUILD_TYPE=${CMAKE_BUILD_TYPE}
  # Empty: CMake would otherwise take the flags that the environment had when the build folder was made.
  -DCMAKE_C_FLAGS=
  -DCMAKE_CXX_FLAGS=
  -DCMAKE_EXE_LINKER_FLAGS=
  -DWITH_SSL=system
  -DWITH_PROTOBUF=system
  -DWITH_ZLIB=system
  -DWITH_ZSTD=system
  -DWITH_LZ4=system
  -DWITH_CURL=system
  -DWITH_EDITLINE=system
  -DWITH_ICU=system
  -DWITH_NDBCLUSTER_STORAGE_ENGINE=OFF
  -DWITH_NDB=OFF
  -DWITH_GROUP_REPLICATION=ON
  -DWITHOUT_GROUP_REPLICATION=OFF
  -DWITH_ROUTER=OFF
  -DWITH_UNIT_TESTS=OFF)
if(NOT SPILLWAY_FLAVOR STREQUAL "deploy")
  list(APPEND spw_options
    -DWITH_MYSQLX=OFF
    -DWITH_FIDO=none
    -DWITH_AUTHENTICATION_CLIENT_PLUGINS=OFF)
  # The server, the clients, and the programs that mysql-test-run starts.
  set(spw_targets
    mysqld
    mysql mysqladmin mysqlbinlog mysqlcheck mysqldump mysqlimport mysqlshow mysqlslap
    mysql_config_editor mysql_secure_installation mysql_tzinfo_to_sql
    ibd2sdi innochecksum my_print_defaults myisam_ftdump myisamchk myisamlog myisampack perror
    mysql_client_test mysql_keyring_encryption_test mysql_migrate_keyring mysql_test_event_tracking
    mysqltest mysqltest_safe_process component_test_sys_var_service
    component_keyring_file # tests of encryption
    clone # tests of cloning a running server
    semisync_source semisync_replica # tests of replication
    component_reference_cache) # loaded by every server
else()
  # Do not install mysql-test: it has links into this repository. Tests run in a build folder.
  list(APPEND spw_options -DWITH_FIDO=bundled -DINSTALL_MYSQLTESTDIR=)
  set(spw_targets all)
endif()

if(SPILLWAY_TREE STREQUAL "fork")
  list(APPEND spw_options -DSPILLWAY_REPOSITORY=${CMAKE_SOURCE_DIR})
endif()

# Every build checks that the tree is what base and patches make it. If nothing is to do, that takes well below a second.
add_custom_target(source
  COMMAND "${Python3_EXECUTABLE}" "${CMAKE_SOURCE_DIR}/tools/upstream.py" tree ${SPILLWAY_TREE} --flavor ${SPILLWAY_FLAVOR}
  USES_TERMINAL
  VERBATIM)

ExternalProject_Add(server
  DEPENDS source
  PREFIX "${CMAKE_BINARY_DIR}/server"
  SOURCE_DIR "${spw_source}"
  BINARY_DIR "${spw_server}"
  DOWNLOAD_COMMAND ""
  UPDATE_COMMAND ""
  CMAKE_GENERATOR Ninja
  CMAKE_ARGS
    -Wno-dev
    ${spw_options}
    ${SPILLWAY_SERVER_OPTIONS}
    -DCMAKE_C_COMPILER_LAUNCHER=${CMAKE_SOURCE_DIR}/cmake/compile
    -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_SOURCE_DIR}/cmake/compile
    -DCMAKE_PROJECT_MySQL_INCLUDE=${CMAKE_SOURCE_DIR}/cmake/inject.cmake
  BUILD_COMMAND "${CMAKE_COMMAND}" --build "${spw_server}" --target ${spw_targets}
  BUILD_ALWAYS ON
  INSTALL_COMMAND ""
  USES_TERMINAL_CONFIGURE ON
  USES_TERMINAL_BUILD ON)

# Not built otherwise, except in deploy: four minutes.
add_custom_target(group_replication
  COMMAND "${CMAKE_COMMAND}" --build "${spw_server}" --target group_replication
  DEPENDS server
  USES_TERMINAL
  VERBATIM)
