# SPDX-License-Identifier: BSD-3-Clause
# xccl-bind: without hwloc it binds by site maps only. It links nothing of xccl: thousands start at once.
find_package(PkgConfig QUIET)
if(PKG_CONFIG_FOUND)
  pkg_check_modules(XCCL_HWLOC QUIET IMPORTED_TARGET hwloc>=2.0)
endif()
set(XCCL_BIND_SOURCES act assign cpus devices launcher main nics notes plan program report sitemap slurm visible)
list(TRANSFORM XCCL_BIND_SOURCES PREPEND bind/)
list(TRANSFORM XCCL_BIND_SOURCES APPEND .c)
if(XCCL_HWLOC_FOUND)
  list(APPEND XCCL_BIND_SOURCES bind/topology_hwloc.c)
else()
  message(STATUS "hwloc (>= 2.0, by pkg-config) not found: xccl-bind will bind by site maps only")
  list(APPEND XCCL_BIND_SOURCES bind/topology_none.c)
endif()
add_executable(xccl-bind ${XCCL_BIND_SOURCES} common/json_text.c common/options.c common/output.c
                         ${PROJECT_SOURCE_DIR}/src/base/nearest.c)
target_include_directories(xccl-bind PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/bind
                                             ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(xccl-bind PRIVATE XCCL_BIND_VERSION="${PROJECT_VERSION}")
target_link_libraries(xccl-bind PRIVATE xccl_flags $<$<BOOL:${XCCL_HWLOC_FOUND}>:PkgConfig::XCCL_HWLOC>)
set_target_properties(xccl-bind PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${XCCL_STAGE}/bin)
install(TARGETS xccl-bind RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# The part of xccl-run that is only needed behind a launcher.
configure_file(run/launch.sh ${XCCL_STAGE}/lib/xccl/launch.sh COPYONLY)
install(FILES run/launch.sh DESTINATION ${XCCL_PRIVATE_DIR})

# What ci/install-tree puts beside an installation: the stage has it too, so that tests run from there.
set(XCCL_SITE_CONFIGS ${PROJECT_SOURCE_DIR}/../site-configs)
file(GLOB XCCL_SITE_FILES CONFIGURE_DEPENDS ${XCCL_SITE_CONFIGS}/*/ranks.map
     ${XCCL_SITE_CONFIGS}/*/launch.env ${XCCL_SITE_CONFIGS}/*/site.json ${XCCL_SITE_CONFIGS}/*/tables/*.table)
foreach(file IN LISTS XCCL_SITE_FILES)
  file(RELATIVE_PATH name ${XCCL_SITE_CONFIGS} ${file})
  configure_file(${file} ${XCCL_STAGE}/share/xccl/sites/${name} COPYONLY)
endforeach()
if(EXISTS ${PROJECT_SOURCE_DIR}/../env/sites/detect.sh)
  configure_file(${PROJECT_SOURCE_DIR}/../env/sites/detect.sh
                 ${XCCL_STAGE}/share/xccl/env/sites/detect.sh COPYONLY)
endif()
