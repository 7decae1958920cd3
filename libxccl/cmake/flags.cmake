# Flags of every target: warnings, and the sanitizers when asked for.
add_library(xccl_flags INTERFACE)
target_compile_definitions(xccl_flags INTERFACE _GNU_SOURCE)
target_compile_options(xccl_flags INTERFACE -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes
                                            -Wshadow -Wvla -Wundef)
# Nothing that is installed names the folder it was built in.
target_compile_options(xccl_flags INTERFACE -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
target_include_directories(xccl_flags INTERFACE ${PROJECT_SOURCE_DIR}/include
                                                ${PROJECT_SOURCE_DIR}/src)
# The compiler's file of a library, to be preloaded. What it names may be a link, or a linker script
# that names the library.
function(xccl_shared_library name result_var)
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=${name}
                  OUTPUT_VARIABLE file OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(IS_ABSOLUTE "${file}")
    get_filename_component(file "${file}" REALPATH)
    file(READ "${file}" magic LIMIT 4 HEX)
    if(NOT magic STREQUAL "7f454c46")
      file(STRINGS "${file}" lines REGEX "\\.so")
      if("${lines}" MATCHES "([^ ()/]+\\.so[.0-9]+)")
        xccl_shared_library(${CMAKE_MATCH_1} file)
      endif()
    endif()
  endif()
  set(${result_var} "${file}" PARENT_SCOPE)
endfunction()

# XCCL_SANITIZERS: what XCCL_SANITIZE stands for, and XCCL_SANITIZER_RUNTIME: the library of theirs
# that a program which was built without them must load first.
set(XCCL_SANITIZERS "")
set(XCCL_SANITIZER_RUNTIME "")
if(XCCL_SANITIZE STREQUAL "thread")
  set(XCCL_SANITIZERS -fsanitize=thread)
  set(_runtime libtsan.so)
elseif(XCCL_SANITIZE)
  set(XCCL_SANITIZERS -fsanitize=address,undefined)
  set(_runtime libasan.so)
  target_compile_options(xccl_flags INTERFACE -fno-sanitize-recover=undefined)
endif()
if(XCCL_SANITIZERS)
  target_compile_options(xccl_flags INTERFACE ${XCCL_SANITIZERS} -fno-omit-frame-pointer)
  target_link_options(xccl_flags INTERFACE ${XCCL_SANITIZERS})
  xccl_shared_library(${_runtime} XCCL_SANITIZER_RUNTIME)
endif()
