# Flags of every target: warnings, and the sanitizers when asked for.
add_library(xccl_flags INTERFACE)
target_compile_definitions(xccl_flags INTERFACE _GNU_SOURCE)
target_compile_options(xccl_flags INTERFACE -Wall -Wextra -Wstrict-prototypes -Wmissing-prototypes
                                            -Wshadow -Wvla -Wundef)
# Nothing that is installed names the folder it was built in.
target_compile_options(xccl_flags INTERFACE -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
target_include_directories(xccl_flags INTERFACE ${PROJECT_SOURCE_DIR}/include
                                                ${PROJECT_SOURCE_DIR}/src)
if(XCCL_SANITIZE)
  target_compile_options(xccl_flags INTERFACE -fsanitize=address,undefined
                                              -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  target_link_options(xccl_flags INTERFACE -fsanitize=address,undefined)
endif()
