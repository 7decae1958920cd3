# SPDX-License-Identifier: BSD-3-Clause
# libxccl-mpi.so, one for every MPI, and behind it one library per family (see entries/dispatch.c).

add_library(xccl-mpi SHARED entries/dispatch.c base/launch.c)
target_link_libraries(
  xccl-mpi
  PRIVATE xccl_flags ${CMAKE_DL_LIBS} Threads::Threads
  # A program that makes an xcclComm_t of an MPI_Comm calls libxccl with it.
  INTERFACE xccl)
# Entry points take and return what MPI's prototypes say, in registers: see dispatch.c.
target_compile_options(xccl-mpi PRIVATE -fno-builtin)
target_compile_definitions(xccl-mpi PRIVATE XC_SHARED=)
# MPI and threads hold functions of ours, also where a program closes a plugin that brought us along.
target_link_options(xccl-mpi PRIVATE -Wl,-z,nodelete)
set_target_properties(xccl-mpi PROPERTIES LIBRARY_OUTPUT_DIRECTORY
                                          ${PROJECT_BINARY_DIR}/stage/lib)
target_include_directories(
  xccl-mpi INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                     $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
install(
  TARGETS xccl-mpi
  EXPORT XcclTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})

file(GLOB XCCL_FAMILY_SOURCES CONFIGURE_DEPENDS entries/*.c calls/*.c ops/*.c transfers/*.c observe/*.c
     tables/*.c decide/*.c paths/*.c direct/*.c streams/*.c data/*.c comms/*.c mpi/*.c)
list(REMOVE_ITEM XCCL_FAMILY_SOURCES ${CMAKE_CURRENT_SOURCE_DIR}/entries/dispatch.c)
foreach(family IN LISTS XCCL_MPI_FAMILIES)
  set(target xccl-mpi-${family})
  add_library(${target} MODULE ${XCCL_FAMILY_SOURCES})
  # mpi.h only: the MPI library is the one that the process has.
  target_link_libraries(${target} PRIVATE xccl_flags xccl xccl_mpi_hdr_${family} ${CMAKE_DL_LIBS}
                                          Threads::Threads)
  set_target_properties(
    ${target}
    PROPERTIES PREFIX "lib"
               LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/stage/lib/xccl
               BUILD_RPATH "$ORIGIN/.."
               INSTALL_RPATH "$ORIGIN/..")
  install(TARGETS ${target} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/xccl)
endforeach()
install(FILES observe/xccl-profile.schema.json DESTINATION ${CMAKE_INSTALL_DOCDIR})
