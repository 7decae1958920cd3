# Flags of every target: warnings, and the sanitizers when asked for.
add_library(xccl_flags INTERFACE)
target_compile_definitions(xccl_flags INTERFACE _GNU_SOURCE)
target_compile_options(xccl_flags INTERFACE -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes
                                            -Wshadow -Wvla -Wundef)
# Nothing that is installed names the folder it was built in.
target_compile_options(xccl_flags INTERFACE -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
target_include_directories(xccl_flags INTERFACE ${PROJECT_SOURCE_DIR}/include
                                                ${PROJECT_SOURCE_DIR}/src)
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
  execute_process(COMMAND ${CMAKE_C_COMPILER} -print-file-name=${_runtime}
                  OUTPUT_VARIABLE XCCL_SANITIZER_RUNTIME OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
