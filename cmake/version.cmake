# Gives the upstream files that print the server's identity that of Spillway. The macro of mysql_version.h has another value
# in these files alone: if it changed everywhere, each new version would recompile all of the server.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${SPILLWAY_REPOSITORY}/VERSION")
file(STRINGS "${SPILLWAY_REPOSITORY}/VERSION" SPILLWAY_VERSION LIMIT_COUNT 1)
# A base with a comment of its own, as that of Percona, keeps it.
if(COMPILATION_COMMENT_SERVER STREQUAL "Source distribution")
  set(spw_base "MySQL Community Server ${MYSQL_NO_DASH_VERSION}")
else()
  set(spw_base "${COMPILATION_COMMENT_SERVER}")
endif()
set(spw_version_header "${CMAKE_BINARY_DIR}/spillway_version.h")
configure_file("${SPILLWAY_REPOSITORY}/sql/spillway_version.h.in" "${spw_version_header}" @ONLY)

# spw_has_identity(<target> <source>...): these sources of a target include the header, first and so without a precompiled one.
function(spw_has_identity target)
  list(TRANSFORM ARGN PREPEND "${CMAKE_SOURCE_DIR}/" OUTPUT_VARIABLE sources)
  set_property(SOURCE ${sources} TARGET_DIRECTORY ${target} APPEND PROPERTY COMPILE_OPTIONS "-include;${spw_version_header}")
  set_property(SOURCE ${sources} TARGET_DIRECTORY ${target} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
  set_property(SOURCE ${sources} TARGET_DIRECTORY ${target} APPEND PROPERTY OBJECT_DEPENDS "${spw_version_header}")
endfunction()

spw_has_identity(mysys_objlib mysys/print_version.cc)
spw_has_identity(sql_main
  sql/log.cc
  sql/mysqld.cc
  sql/signal_handler.cc
  sql/sql_parse.cc
  sql/sys_vars.cc)
spw_has_identity(mysql_server_component_services sql/server_component/host_application_signal_imp.cc)
spw_has_identity(innobase storage/innobase/ut/ut0dbg.cc)
