# SPDX-License-Identifier: BSD-3-Clause
# Which MPI families can be built for, one entry a family.
#
# In:   XCCL_MPICC                 compiler wrappers; empty: mpicc, mpicc.openmpi, mpicc.mpich, mpicc_abi on PATH
# Out:  XCCL_MPI_FAMILIES          subset of openmpi;mpich;mpiabi, in the order found
#       XCCL_MPI_VERSION_<family>  "4.1.4"; of mpiabi, MPI's standard ABI, its own: "1.0"
#       XCCL_MPICC_<family>        the wrapper
#       XCCL_MPIEXEC_<family>      the launcher beside the wrapper, or empty
#       xccl_mpi_hdr_<family>      target: how to find mpi.h, nothing to link
#       xccl_mpi_link_<family>     target: the same and the MPI library
#       XCCL_MPI_GPU_LINK          options for a program of MPICH's family: Cray MPICH's GPU transport layer, or empty
#
# The wrappers are asked for their flags (-show, which all families know) rather than used as the
# compiler, so that one CMake run builds for all families. FindMPI finds one MPI only.

# Flags of a wrapper as two lists, or an error text.
function(_xccl_mpi_flags wrapper compile_var link_var error_var)
  execute_process(COMMAND ${wrapper} -show
    OUTPUT_VARIABLE shown ERROR_VARIABLE complaint RESULT_VARIABLE status
    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    set(${error_var} "'${wrapper} -show' failed: ${complaint}" PARENT_SCOPE)
    return()
  endif()
  separate_arguments(words UNIX_COMMAND "${shown}")
  list(POP_FRONT words)
  set(compile "")
  set(link "")
  set(pending "")
  foreach(word IN LISTS words)
    string(REPLACE "-Xlinker" "-Wl," option "${last}")
    set(last "${word}")
    if(pending)
      list(APPEND ${pending} "${option}${word}") # "-L folder" as one word
      set(pending "")
    elseif(word MATCHES "^-(I|D|U|isystem|idirafter)$")
      set(pending compile)
    elseif(word MATCHES "^-(L|l|Xlinker)$")
      set(pending link)
    elseif(word MATCHES "^-(I|D|U|isystem|idirafter)")
      list(APPEND compile "${word}")
    elseif(word STREQUAL "-pthread")
      list(APPEND compile "${word}")
      list(APPEND link "${word}")
    elseif(word MATCHES "^-(L|l|Wl,)" OR word MATCHES "\\.(so|a)([.0-9]*)$")
      list(APPEND link "${word}")
    endif() # anything else tunes the wrapper's own compiler and is not ours to copy
  endforeach()
  # A warning inside somebody's mpi.h is not ours to mend: its folders are system folders.
  list(TRANSFORM compile REPLACE "^-I(.+)$" "-isystem\\1")
  set(${compile_var} "${compile}" PARENT_SCOPE)
  set(${link_var} "${link}" PARENT_SCOPE)
  set(${error_var} "" PARENT_SCOPE)
endfunction()

# Family and version from the macros of its mpi.h, and proof that a program links. The standard ABI is
# told by its handle first: the header may come with macros of the MPI that has it.
function(_xccl_mpi_probe wrapper compile link family_var version_var error_var)
  string(MD5 key "${wrapper} ${compile} ${link}")
  set(folder "${CMAKE_BINARY_DIR}/CMakeFiles/xccl_mpi/${key}")
  file(WRITE "${folder}/family.c" "#include <mpi.h>
#if defined(OMPI_MAJOR_VERSION)
xccl_family openmpi OMPI_MAJOR_VERSION OMPI_MINOR_VERSION OMPI_RELEASE_VERSION
#elif defined(I_MPI_VERSION)
xccl_family mpich I_MPI_VERSION
#elif defined(MPICH_VERSION)
xccl_family mpich MPICH_VERSION
#else
xccl_family other
#endif
#ifdef MPI_ABI_VERSION
xccl_abi MPI_ABI_VERSION MPI_ABI_SUBVERSION MPI_COMM_WORLD
#endif
")
  execute_process(COMMAND ${CMAKE_C_COMPILER} -E -P ${compile} "${folder}/family.c"
    OUTPUT_VARIABLE text ERROR_VARIABLE complaint RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT text MATCHES "xccl_family ([a-z]+) ?\"?([^\n\"]*)")
    set(${error_var} "mpi.h cannot be read: ${complaint}" PARENT_SCOPE)
    return()
  endif()
  set(family "${CMAKE_MATCH_1}")
  string(REPLACE " " "." version "${CMAKE_MATCH_2}")
  if(text MATCHES "xccl_abi ([0-9]+) ([0-9]+) [^\n]*0x0*101[^0-9a-fA-F]")
    set(family "mpiabi")
    set(version "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}")
  endif()
  if(family STREQUAL "other")
    set(${error_var} "its mpi.h is neither Open MPI's nor MPICH's, nor that of MPI's standard ABI" PARENT_SCOPE)
    return()
  endif()
  file(WRITE "${folder}/link.c"
    "#include <mpi.h>\nint main(int argc, char **argv) { return MPI_Init(&argc, &argv); }\n")
  # The key is in the name of the result, so that another wrapper or an upgraded one is tried anew.
  try_compile(XCCL_MPI_LINKS_${key} "${folder}" SOURCES "${folder}/link.c"
    COMPILE_DEFINITIONS ${compile} LINK_LIBRARIES ${link} OUTPUT_VARIABLE complaint)
  if(NOT XCCL_MPI_LINKS_${key})
    set(${error_var} "a program does not link: ${complaint}" PARENT_SCOPE)
    return()
  endif()
  set(${family_var} "${family}" PARENT_SCOPE)
  set(${version_var} "${version}" PARENT_SCOPE)
  set(${error_var} "" PARENT_SCOPE)
endfunction()

# The launcher that belongs to a wrapper: same folder, same suffix, but for the ABI's.
function(_xccl_mpi_launcher wrapper result_var)
  get_filename_component(folder "${wrapper}" DIRECTORY)
  get_filename_component(name "${wrapper}" NAME)
  set(${result_var} "" PARENT_SCOPE)
  foreach(launcher IN ITEMS mpirun mpiexec)
    string(REGEX REPLACE "^mpi[a-z]*(_abi)?" "${launcher}" candidate "${name}")
    if(EXISTS "${folder}/${candidate}")
      set(${result_var} "${folder}/${candidate}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()

function(_xccl_mpi_targets family compile link)
  add_library(xccl_mpi_hdr_${family} INTERFACE IMPORTED GLOBAL)
  target_compile_options(xccl_mpi_hdr_${family} INTERFACE ${compile})
  if(family STREQUAL "mpiabi")
    target_compile_definitions(xccl_mpi_hdr_${family} INTERFACE XCCL_MPI_STANDARD_ABI)
  endif()
  set(libraries ${link})
  list(FILTER libraries INCLUDE REGEX "^-l|[.](so|a)([.0-9]*)$")
  list(REMOVE_ITEM link ${libraries})
  # SHELL: keeps pairs such as "-Wl,-rpath -Wl,/folder" together, which CMake would de-duplicate.
  list(JOIN link " " options)
  add_library(xccl_mpi_link_${family} INTERFACE IMPORTED GLOBAL)
  target_link_options(xccl_mpi_link_${family} INTERFACE "SHELL:${options}")
  target_link_libraries(xccl_mpi_link_${family} INTERFACE xccl_mpi_hdr_${family} ${libraries})
endfunction()

# Cray MPICH asks the program for its GPU transport layer, and ends it in MPI_Init where the site asks for GPU support and
# the layer is not linked. Cray's cc links it by these variables of the modules; no wrapper that has -show does.
function(_xccl_mpi_gpu_link result_var)
  set(${result_var} "" PARENT_SCOPE)
  set(target "$ENV{CRAY_ACCEL_TARGET}") # of craype-accel-*: nvidia80, amd_gfx90a
  set(libraries "$ENV{PE_MPICH_GTL_LIBS_${target}}")
  if(NOT target OR NOT libraries)
    return()
  endif()
  set(folder "$ENV{PE_MPICH_GTL_DIR_${target}}")
  string(REGEX REPLACE "(^| )-L ?([^ ]+)" " -L\\2 -Wl,-rpath,\\2" folder "${folder}")
  # The tools call nothing in it: a linker that leaves out such libraries must not.
  set(link "-Wl,--push-state,--no-as-needed ${folder} ${libraries} -Wl,--pop-state")
  string(REGEX REPLACE " +" " " link "${link}")
  message(STATUS "xccl: MPI: the tools have Cray MPICH's GPU transport layer for ${target} (${libraries})")
  set(${result_var} "SHELL:${link}" PARENT_SCOPE)
endfunction()

_xccl_mpi_gpu_link(XCCL_MPI_GPU_LINK)
set(XCCL_MPI_FAMILIES "")
set(_xccl_mpi_asked "${XCCL_MPICC}")
if(NOT _xccl_mpi_asked)
  # mpicc first: with a module loaded it is the MPI that the user chose.
  set(_xccl_mpi_asked mpicc mpicc.openmpi mpicc.mpich mpicc_abi)
endif()
foreach(_name IN LISTS _xccl_mpi_asked)
  find_program(_xccl_wrapper NAMES "${_name}")
  set(_wrapper "${_xccl_wrapper}")
  unset(_xccl_wrapper CACHE) # NO_CACHE would need CMake 3.21
  # Where the build tool configures again: ci/build has a PATH of its own for this one.
  if(NOT _wrapper AND _name STREQUAL "mpicc_abi" AND EXISTS "${XCCL_MPICC_mpiabi}")
    set(_wrapper "${XCCL_MPICC_mpiabi}")
  endif()
  set(_error "")
  if(NOT _wrapper)
    set(_error "no such program")
  endif()
  if(NOT _error)
    _xccl_mpi_flags("${_wrapper}" _compile _link _error)
  endif()
  if(NOT _error)
    _xccl_mpi_probe("${_wrapper}" "${_compile}" "${_link}" _family _version _error)
  endif()
  if(_error AND XCCL_MPICC)
    message(FATAL_ERROR "XCCL_MPICC: '${_name}' is of no use: ${_error}")
  elseif(_error)
    if(_wrapper)
      message(STATUS "xccl: MPI: ${_wrapper} skipped: ${_error}")
    endif()
  elseif(NOT _family IN_LIST XCCL_MPI_FAMILIES)
    list(APPEND XCCL_MPI_FAMILIES ${_family})
    set(XCCL_MPI_VERSION_${_family} "${_version}")
    # In the cache, where scripts that run what was built find them (ci/demo, ci/bench, the tests).
    set(XCCL_MPICC_${_family} "${_wrapper}" CACHE INTERNAL "Compiler wrapper of ${_family}")
    _xccl_mpi_launcher("${_wrapper}" _launcher)
    set(XCCL_MPIEXEC_${_family} "${_launcher}" CACHE INTERNAL "Launcher of ${_family}")
    _xccl_mpi_targets(${_family} "${_compile}" "${_link}")
    message(STATUS "xccl: MPI: ${_family} ${_version} (${_wrapper})")
  endif()
endforeach()
if(NOT XCCL_MPI_FAMILIES)
  message(STATUS "xccl: MPI: none found, so neither the interposer nor xccl-perf is built; "
                 "install one, or name its compiler wrapper with -DXCCL_MPICC=/path/to/mpicc")
endif()
