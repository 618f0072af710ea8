# Installs our files beside upstream's: the check before going back to stock, the report of what the server does, the
# presets, the dashboard and the alerting rules, and the pages that name the version, its changes and where to report a
# bug. Without a folder for documents, as in the layout RPM, the packager takes the pages from the repository.
install(PROGRAMS
  "${SPILLWAY_REPOSITORY}/scripts/spillway-downgrade-check"
  "${SPILLWAY_REPOSITORY}/scripts/spillway-status"
  DESTINATION "${INSTALL_BINDIR}" COMPONENT Server)

file(GLOB spw_shared CONFIGURE_DEPENDS
  "${SPILLWAY_REPOSITORY}/share/spillway/*.cnf"
  "${SPILLWAY_REPOSITORY}/share/spillway/*.json"
  "${SPILLWAY_REPOSITORY}/share/spillway/*.yml")
install(FILES ${spw_shared} DESTINATION "${INSTALL_MYSQLSHAREDIR}/spillway" COMPONENT Server)

if(INSTALL_DOCDIR)
  install(FILES
    "${SPILLWAY_REPOSITORY}/BUGS.md"
    "${SPILLWAY_REPOSITORY}/CHANGELOG.md"
    "${SPILLWAY_REPOSITORY}/LICENSE"
    "${SPILLWAY_REPOSITORY}/VERSION"
    DESTINATION "${INSTALL_DOCDIR}" COMPONENT Server)
endif()
