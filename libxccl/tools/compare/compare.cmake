# SPDX-License-Identifier: BSD-3-Clause
# xccl-compare: a Python package beside the library, and a script in bin/ that finds it from there.
# The commit goes into its results; a tarball has none.
set(XCCL_COMMIT "")
find_package(Git QUIET)
if(Git_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/../.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=12 --exclude=*
                  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                  OUTPUT_VARIABLE XCCL_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
configure_file(compare/xccl-compare ${XCCL_STAGE}/bin/xccl-compare @ONLY ${_executable})
install(PROGRAMS ${XCCL_STAGE}/bin/xccl-compare DESTINATION ${CMAKE_INSTALL_BINDIR})
file(GLOB XCCL_COMPARE_MODULES CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}
     compare/xccl_compare/*.py)
foreach(module IN LISTS XCCL_COMPARE_MODULES)
  configure_file(${module} ${XCCL_STAGE}/lib/xccl/${module} COPYONLY)
  install(FILES ${module} DESTINATION ${XCCL_PRIVATE_DIR}/compare/xccl_compare)
endforeach()
file(GLOB XCCL_PUBLISHED CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/compare/published/*.json)
foreach(data IN LISTS XCCL_PUBLISHED)
  get_filename_component(name ${data} NAME)
  configure_file(${data} ${XCCL_STAGE}/share/xccl/published/${name} COPYONLY)
  install(FILES ${data} DESTINATION ${CMAKE_INSTALL_DATADIR}/xccl/published)
endforeach()
