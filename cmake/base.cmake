# What this fork takes for granted of its base, and a compiler or a patch's context does not check. The pinned base meets
# all of it. A tree of the user's, as that of Percona Server, can differ: what is looked for here is left out, or the
# build says what does not work.
#
# What a compiler checks is where it is used: static_assert, and fil_io() in dblwr/dblwr0recv.cc.
set(spw_base_innobase "${CMAKE_SOURCE_DIR}/storage/innobase")

# spw_base_has(<variable> <file> <regular expression>): whether a line of the base's file matches.
function(spw_base_has variable file regex)
  file(STRINGS "${spw_base_innobase}/${file}" lines REGEX "${regex}")
  list(LENGTH lines count)
  set(${variable} ${count} PARENT_SCOPE)
endfunction()

# A status variable that the base has, too, is the base's.
set(spw_status "${SPILLWAY_REPOSITORY}/storage/innobase/report/report0status.inc")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${spw_status}")
file(STRINGS "${spw_status}" spw_lines REGEX "^SPW_(STATUS|TEXT)\\(\"")
file(STRINGS "${spw_base_innobase}/handler/ha_innodb.cc" spw_base_status REGEX "^ *{\"[A-Za-z0-9_]+\", *")
set(spw_base_names "")
foreach(line IN LISTS spw_lines)
  string(REGEX REPLACE "^[A-Z_]+\\(\"([^\"]+)\".*" "\\1" name "${line}")
  if(spw_base_status MATCHES "{\"${name}\",")
    string(APPEND spw_base_names "\"${name}\",")
    message(STATUS "spillway: the base has a status variable Innodb_${name} of its own")
  endif()
endforeach()
set_property(SOURCE "${SPILLWAY_REPOSITORY}/storage/innobase/report/report0status.cc" TARGET_DIRECTORY innobase
  APPEND PROPERTY COMPILE_DEFINITIONS "SPW_BASE_STATUS_NAMES=${spw_base_names}")

# All asynchronous requests go through one io_submit(), where the depth of the AIO arrays is kept and counted.
# Besides that there are a repetition of what was written in part, and the check whether there is native AIO.
spw_base_has(spw_submits os/os0file.cc "= *io_submit\\(")
if(spw_submits GREATER 3)
  message(WARNING "spillway: the base calls io_submit() in more places than the pinned one. Requests that go through"
    " these are not counted in Innodb_aio_*.")
endif()

# The page cleaners flush the LRU lists.
spw_base_has(spw_lru_threads buf/buf0flu.cc "lru_manager|srv_lru_threads")
if(spw_lru_threads)
  message(WARNING "spillway: the base has LRU manager threads. Pages that they flush are not in"
    " Innodb_buffer_pool_flush_lru_pages, and ahead flushing does not know of them.")
endif()

# A thread that finds no free page waits in one loop.
spw_base_has(spw_backoff buf/buf0lru.cc "empty_free_list_algorithm")
if(spw_backoff)
  message(WARNING "spillway: the base has innodb_empty_free_list_algorithm. Waits with 'backoff' are not counted as"
    " free_page.")
endif()
