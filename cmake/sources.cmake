# Our sources in upstream's targets. They are compiled from this repository: to edit one recompiles one.
set(spw_innobase "${SPILLWAY_REPOSITORY}/storage/innobase")
target_sources(innobase PRIVATE
  "${spw_innobase}/aio/aio0array.cc"
  "${spw_innobase}/status/status0vars.cc")
target_include_directories(innobase PRIVATE "${spw_innobase}" "${spw_innobase}/include")
