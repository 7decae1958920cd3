# SPDX-License-Identifier: BSD-3-Clause
xccl_python_package(doctor)
xccl_python_tool(xccl-doctor)
# The pages of findings, which the documentation holds; libxccl alone, without docs/, has --explain.
set(_use ${PROJECT_SOURCE_DIR}/../docs/use)
file(GLOB _pages CONFIGURE_DEPENDS RELATIVE ${_use} ${_use}/doctor.md ${_use}/findings/*.md)
foreach(_page IN LISTS _pages)
  get_filename_component(_folder ${_page} DIRECTORY)
  configure_file(${_use}/${_page} ${XCCL_STAGE}/share/doc/xccl/${_page} COPYONLY)
  install(FILES ${_use}/${_page} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/xccl/${_folder})
endforeach()
