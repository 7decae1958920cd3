# SPDX-License-Identifier: BSD-3-Clause
# xccl-doctor: a Python package beside the library, and a script in bin/ that finds it from there.
configure_file(doctor/xccl-doctor ${XCCL_STAGE}/bin/xccl-doctor @ONLY ${_executable})
install(PROGRAMS ${XCCL_STAGE}/bin/xccl-doctor DESTINATION ${CMAKE_INSTALL_BINDIR})
# The page of findings, which the documentation holds; libxccl alone, without docs/, has --explain.
set(_page ${PROJECT_SOURCE_DIR}/../docs/use/doctor.md)
if(EXISTS ${_page})
  configure_file(${_page} ${XCCL_STAGE}/share/doc/xccl/doctor.md COPYONLY)
  install(FILES ${_page} DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/xccl)
endif()
file(GLOB XCCL_DOCTOR_MODULES CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}
     doctor/xccl_doctor/*.py)
foreach(module IN LISTS XCCL_DOCTOR_MODULES)
  configure_file(${module} ${XCCL_STAGE}/lib/xccl/${module} COPYONLY)
  install(FILES ${module} DESTINATION ${XCCL_PRIVATE_DIR}/doctor/xccl_doctor)
endforeach()
