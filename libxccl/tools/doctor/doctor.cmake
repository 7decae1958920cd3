# SPDX-License-Identifier: BSD-3-Clause
xccl_python_package(doctor)
xccl_python_tool(xccl-doctor)
# The page of findings, which the documentation holds; libxccl alone, without docs/, has --explain.
set(_page ${PROJECT_SOURCE_DIR}/../docs/use/doctor.md)
if(EXISTS ${_page})
  configure_file(${_page} ${XCCL_STAGE}/share/doc/xccl/doctor.md COPYONLY)
  install(FILES ${_page} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/xccl)
endif()
