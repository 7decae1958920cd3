# SPDX-License-Identifier: BSD-3-Clause
# Tools in Python: packages beside the library, and for each a script in bin/ that finds them from there.

function(xccl_python_package folder)
  file(GLOB modules CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}/${folder}
       ${folder}/*/*.py)
  foreach(module IN LISTS modules)
    get_filename_component(package ${module} DIRECTORY)
    configure_file(${folder}/${module} ${XCCL_STAGE}/lib/xccl/python/${module} COPYONLY)
    install(FILES ${folder}/${module} DESTINATION ${XCCL_PRIVATE_DIR}/python/${package})
  endforeach()
endfunction()

function(xccl_python_tool XCCL_TOOL)
  string(REPLACE "-" "_" XCCL_PACKAGE ${XCCL_TOOL})
  configure_file(python-tool ${XCCL_STAGE}/bin/${XCCL_TOOL} @ONLY ${_executable})
  install(PROGRAMS ${XCCL_STAGE}/bin/${XCCL_TOOL} DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# The commit goes into results; a tarball has none.
set(XCCL_COMMIT "")
find_package(Git QUIET)
if(Git_FOUND AND EXISTS ${PROJECT_SOURCE_DIR}/../.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} describe --always --dirty --abbrev=12 --exclude=*
                  WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                  OUTPUT_VARIABLE XCCL_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
xccl_python_package(common)
