# SPDX-License-Identifier: BSD-3-Clause
# libxccl.so, its headers, and what lets pkg-config and find_package(Xccl) find them.
include(CMakePackageConfigHelpers)

install(
  TARGETS xccl
  EXPORT XcclTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/xccl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

# The prefix is relative to the file, so that the installed tree can be moved.
set(XCCL_PC_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH XCCL_PC_PREFIX /prefix/${XCCL_PC_DIR} /prefix)
configure_file(xccl.pc.in ${CMAKE_CURRENT_BINARY_DIR}/xccl.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/xccl.pc DESTINATION ${XCCL_PC_DIR})
if(TARGET xccl-mpi)
  configure_file(xccl-mpi.pc.in ${CMAKE_CURRENT_BINARY_DIR}/xccl-mpi.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/xccl-mpi.pc DESTINATION ${XCCL_PC_DIR})
endif()

set(XCCL_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/Xccl)
configure_package_config_file(XcclConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/XcclConfig.cmake
                              INSTALL_DESTINATION ${XCCL_CMAKE_DIR})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/XcclConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/XcclConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/XcclConfigVersion.cmake DESTINATION ${XCCL_CMAKE_DIR})
install(EXPORT XcclTargets NAMESPACE Xccl:: DESTINATION ${XCCL_CMAKE_DIR})

# Tuning tables: the stage has them too, so that tests run from there.
file(GLOB XCCL_TABLE_FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tables/*.table)
foreach(file IN LISTS XCCL_TABLE_FILES)
  get_filename_component(name ${file} NAME)
  configure_file(${file} ${PROJECT_BINARY_DIR}/stage/share/xccl/tables/${name} COPYONLY)
endforeach()
install(FILES ${XCCL_TABLE_FILES} DESTINATION ${CMAKE_INSTALL_DATADIR}/xccl/tables)
