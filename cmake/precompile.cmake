# Precompiled headers for upstream's large targets, in stock and in the fork. Headers take more than half of the compile
# time of a server file. ccache needs -fpch-preprocess, and hashes a precompiled header by its bytes.

# Files that do not compile with a precompiled header, and why.
set(spw_without_precompiled_header
  engine_combination_tracker.cc # its header has no include guard
  protocol_classic.cc           # mysql_com.h declares net_field_length() only if STDCALL is defined before it is included
)

# spw_needs_own_headers(<variable> <source>)
#
# A file is compiled without the precompiled header if it defines or undefines a macro before an #include, since the
# header may depend on the macro. The same holds for a generated file, which cannot be read yet.
function(spw_needs_own_headers variable source)
  set(${variable} TRUE PARENT_SCOPE)
  cmake_path(IS_PREFIX CMAKE_SOURCE_DIR "${source}" in_source_tree)
  cmake_path(GET source FILENAME name)
  if(NOT in_source_tree OR name IN_LIST spw_without_precompiled_header)
    return()
  endif()
  file(STRINGS "${source}" lines REGEX "^[ \t]*#[ \t]*(define|undef|include)")
  set(defined FALSE)
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "#[ \t]*include")
      set(defined TRUE)
    elseif(defined)
      return()
    endif()
  endforeach()
  set(${variable} FALSE PARENT_SCOPE)
endfunction()

# spw_precompile(<target> <header>...)
function(spw_precompile target)
  if(NOT TARGET ${target})
    message(FATAL_ERROR "spillway: upstream has no target ${target} any more: see cmake/precompile.cmake")
  endif()
  target_precompile_headers(${target} PRIVATE ${ARGN})
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)
  get_target_property(directory ${target} SOURCE_DIR)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.(cc|cpp)$")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY "${directory}")
    spw_needs_own_headers(own "${source}")
    if(own)
      set_source_files_properties("${source}" TARGET_DIRECTORY ${target} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()

set(spw_sql_headers
  <algorithm>
  <functional>
  <map>
  <memory>
  <sstream>
  <string>
  <unordered_map>
  <vector>
  <sql/auth/auth_acls.h>
  <sql/auth/auth_common.h>
  <sql/binlog.h>
  <sql/dd/cache/dictionary_client.h>
  <sql/dd/dd_table.h>
  <sql/dd/types/schema.h>
  <sql/dd/types/table.h>
  <sql/field.h>
  <sql/handler.h>
  <sql/item.h>
  <sql/item_cmpfunc.h>
  <sql/item_func.h>
  <sql/item_sum.h>
  <sql/log.h>
  <sql/log_event.h>
  <sql/mysqld.h>
  <sql/sql_base.h>
  <sql/sql_class.h>
  <sql/sql_executor.h>
  <sql/sql_lex.h>
  <sql/sql_optimizer.h>
  <sql/sql_select.h>
  <sql/sql_show.h>
  <sql/sql_table.h>
  <sql/table.h>
  <sql/transaction.h>)
spw_precompile(sql_main ${spw_sql_headers} <sql/parse_tree_nodes.h>)
spw_precompile(sql_dd ${spw_sql_headers})
spw_precompile(binlog ${spw_sql_headers})
spw_precompile(rpl_replica ${spw_sql_headers})
spw_precompile(mysql_server_component_services ${spw_sql_headers})

spw_precompile(sql_gis
  <memory>
  <boost/geometry.hpp>
  <sql/dd/types/spatial_reference_system.h>
  <sql/gis/geometries.h>
  <sql/gis/geometries_cs.h>
  <sql/gis/geometries_traits.h>
  <sql/sql_exception_handler.h>)

spw_precompile(perfschema
  <sql/sql_class.h>
  <sql/field.h>
  <sql/table.h>
  <sql/sql_plugin.h>)

spw_precompile(innobase
  <univ.i>
  <btr0btr.h>
  <buf0buf.h>
  <buf0flu.h>
  <dict0dd.h>
  <dict0dict.h>
  <fil0fil.h>
  <fsp0fsp.h>
  <ha_prototypes.h>
  <lob0lob.h>
  <lock0lock.h>
  <log0chkp.h>
  <mtr0mtr.h>
  <os0file.h>
  <row0mysql.h>
  <row0sel.h>
  <srv0srv.h>
  <srv0start.h>
  <trx0purge.h>
  <trx0trx.h>
  <sql_class.h>)
