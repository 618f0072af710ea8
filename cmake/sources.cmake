# Adds our sources to upstream's targets. They are compiled from this repository: an edit of one recompiles only that one.
#
# Only our sources and the patched files get our include folders, not the whole target. All other files are compiled with
# the same command as in stock, and so have the same hash.
set(spw_innobase "${SPILLWAY_REPOSITORY}/storage/innobase")
set(spw_innobase_sources
  "${spw_innobase}/aio/aio0array.cc"
  "${spw_innobase}/aio/aio0page.cc"
  "${spw_innobase}/atomic/atomic0file.cc"
  "${spw_innobase}/atomic/atomic0probe.cc"
  "${spw_innobase}/dblwr/dblwr0file.cc"
  "${spw_innobase}/dblwr/dblwr0recv.cc"
  "${spw_innobase}/dblwr/dblwr0ddl.cc"
  "${spw_innobase}/extend/extend0count.cc"
  "${spw_innobase}/extend/extend0space.cc"
  "${spw_innobase}/extend/extend0thread.cc"
  "${spw_innobase}/flush/flush0cause.cc"
  "${spw_innobase}/flush/flush0disk.cc"
  "${spw_innobase}/flush/flush0round.cc"
  "${spw_innobase}/flush/flush0sync.cc"
  "${spw_innobase}/flush/policy/flush0controller.cc"
  "${spw_innobase}/redo/redo0ahead.cc"
  "${spw_innobase}/redo/redo0direct.cc"
  "${spw_innobase}/redo/redo0held.cc"
  "${spw_innobase}/redo/redo0resize.cc"
  "${spw_innobase}/redo/redo0state.cc"
  "${spw_innobase}/report/report0print.cc"
  "${spw_innobase}/report/report0status.cc"
  "${spw_innobase}/report/report0table.cc"
  "${spw_innobase}/stall/stall0stall.cc"
  "${spw_innobase}/throttle/throttle0session.cc")
target_sources(innobase PRIVATE ${spw_innobase_sources})

set(spw_sql "${SPILLWAY_REPOSITORY}/sql")
set(spw_sql_sources
  "${spw_sql}/sql_extent_lock.cc"
  "${spw_sql}/sql_extent_size.cc")
target_sources(sql_main PRIVATE ${spw_sql_sources})

file(GLOB spw_patches CONFIGURE_DEPENDS "${SPILLWAY_REPOSITORY}/patches/*.patch")
set(spw_innobase_patched)
foreach(patch IN LISTS spw_patches)
  file(STRINGS "${patch}" diffs REGEX "^diff --git a/storage/innobase/[^ ]+[.]cc ")
  foreach(diff IN LISTS diffs)
    string(REGEX REPLACE "^diff --git a/([^ ]+) .*" "\\1" patched "${diff}")
    list(APPEND spw_innobase_patched "${CMAKE_SOURCE_DIR}/${patched}")
  endforeach()
endforeach()

set_property(SOURCE ${spw_innobase_sources} ${spw_innobase_patched} TARGET_DIRECTORY innobase
  PROPERTY INCLUDE_DIRECTORIES "${SPILLWAY_REPOSITORY}" "${spw_innobase}")

# The SQL layer includes only those of our headers that do not need InnoDB's.
set_property(SOURCE ${spw_sql_sources} "${CMAKE_BINARY_DIR}/sql/sql_yacc.cc" TARGET_DIRECTORY sql_main
  PROPERTY INCLUDE_DIRECTORIES "${SPILLWAY_REPOSITORY}" "${spw_innobase}")
set_property(SOURCE "${CMAKE_SOURCE_DIR}/sql/binlog.cc" "${CMAKE_SOURCE_DIR}/sql/rpl_commit_stage_manager.cc"
  TARGET_DIRECTORY binlog PROPERTY INCLUDE_DIRECTORIES "${SPILLWAY_REPOSITORY}" "${spw_innobase}")
