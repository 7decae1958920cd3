# SPDX-License-Identifier: BSD-3-Clause
# The last step of an installation (a script of install()): what an older one left is removed. See manifest.sh.
if(NOT CMAKE_INSTALL_COMPONENT)
  set(_files "")
  foreach(_file IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
    file(RELATIVE_PATH _file "${CMAKE_INSTALL_PREFIX}" "${_file}")
    if(NOT _file MATCHES "^[.][.]/") # a CMAKE_INSTALL_LIBDIR elsewhere
      list(APPEND _files "${_file}")
    endif()
  endforeach()
  execute_process(COMMAND printf "%s\\n" ${_files}
                  COMMAND sh "${CMAKE_CURRENT_LIST_DIR}/manifest.sh" "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}" library
                  COMMAND_ERROR_IS_FATAL ANY)
endif()
