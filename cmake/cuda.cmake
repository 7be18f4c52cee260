# CUDA kernels: one static library for each architecture folder of src/kernels, and the GPU check
# program. Only the CUDA toolkit is needed.
if(NOT DEFINED CMAKE_CUDA_COMPILER)
  find_program(CMAKE_CUDA_COMPILER nvcc HINTS /usr/local/cuda/bin REQUIRED)
endif()
set(CMAKE_CUDA_ARCHITECTURES "90a-real")
enable_language(CUDA)
# CMake 3.25 does not know CUDA C++20 and would compile C++17 without a word.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
# Registers and spills of every kernel are kept beside its object: tools/kernel_budget.py.
set(CMAKE_CUDA_COMPILER_LAUNCHER ${PROJECT_SOURCE_DIR}/tools/keep_ptxas_report)
if(CCACHE_PROGRAM)
  list(APPEND CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE_PROGRAM})
endif()
find_package(CUDAToolkit REQUIRED)
add_compile_options($<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
                    $<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>
                    # 177: constants that one instantiation of a template does not need.
                    "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings -diag-suppress 177>")

# The .cu files of src/kernels/<folder>, compiled for the given architectures only: one folder, one
# target, no architecture guards inside kernels.
function(winnow_kernels folder architectures)
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/kernels/${folder}/*.cu)
  if(NOT sources)
    return()
  endif()
  add_library(winnow_kernels_${folder} STATIC ${sources})
  target_include_directories(winnow_kernels_${folder} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  set_target_properties(winnow_kernels_${folder} PROPERTIES CUDA_ARCHITECTURES "${architectures}"
                        POSITION_INDEPENDENT_CODE ON)  # for libwinnow_kernels.so
  target_compile_options(winnow_kernels_${folder} PRIVATE -Xptxas=-v)
  target_link_libraries(winnow_kernels_${folder} PUBLIC CUDA::cudart_static)
  set_property(GLOBAL APPEND PROPERTY WINNOW_KERNEL_LIBRARIES winnow_kernels_${folder})
endfunction()
