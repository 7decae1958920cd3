# SPDX-License-Identifier: BSD-3-Clause
xccl_python_package(compare)
xccl_python_tool(xccl-compare)
file(GLOB XCCL_PUBLISHED CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/compare/published/*.json)
foreach(data IN LISTS XCCL_PUBLISHED)
  get_filename_component(name ${data} NAME)
  configure_file(${data} ${XCCL_STAGE}/share/xccl/published/${name} COPYONLY)
  install(FILES ${data} DESTINATION ${CMAKE_INSTALL_DATADIR}/xccl/published)
endforeach()
