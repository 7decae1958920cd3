# SPDX-License-Identifier: BSD-3-Clause
# A step of an installation (a script of install()): compile the tools' Python modules, which never write bytecode
# themselves. Other versions of Python, and files that were changed since, are compiled at each start as before.
# _modules: their folder.
set(_root "$ENV{DESTDIR}${_modules}")
# The first python3 on PATH starts the tools; it may be another one later.
foreach(_python IN ITEMS python3 /usr/bin/python3)
  # By content, not by time: a copied installation keeps its bytecode. Until Python 3.7 is the oldest, without.
  foreach(_mode IN ITEMS "--invalidation-mode;checked-hash" "")
    # From the folder itself, whose name would be in each file.
    execute_process(COMMAND ${_python} -m compileall -q ${_mode} . WORKING_DIRECTORY "${_root}"
                    RESULT_VARIABLE _status OUTPUT_QUIET ERROR_QUIET)
    if(_status EQUAL 0)
      break()
    endif()
  endforeach()
endforeach()
file(GLOB _compiled RELATIVE "${_root}" "${_root}/*/__pycache__/*.pyc")
foreach(_file IN LISTS _compiled)
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${_modules}/${_file}") # for manifest.cmake
endforeach()
