# How kvc's own targets are compiled: warnings, sanitizers and the headers that
# are worth precompiling.

# Flags every target of ours has.
function(kvc_target_options target)
  target_include_directories(${target} PUBLIC ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})
  target_compile_options(${target} PRIVATE -Wall -Wextra)
  if(KVC_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(KVC_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${KVC_SANITIZE} -fno-sanitize-recover=all
      -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${KVC_SANITIZE})
  endif()
endfunction()

# A static library or executable that uses MLIR. LLVM is built with RTTI and
# without exceptions, so MLIR users are too. libMLIR.so and libLLVM.so only: a
# static piece of either next to the shared library aborts at start-up.
function(kvc_mlir_options target)
  kvc_target_options(${target})
  target_include_directories(${target} SYSTEM PUBLIC ${MLIR_INCLUDE_DIRS} ${LLVM_INCLUDE_DIRS})
  target_compile_definitions(${target} PUBLIC ${LLVM_DEFINITIONS_LIST})
  # The packaged LLVM is built with NDEBUG, and its headers lay classes out by it
  # (llvm::Statistic): whoever includes them has to agree in every build type.
  target_compile_definitions(${target} PUBLIC $<$<NOT:$<CONFIG:Release>>:NDEBUG>)
  target_compile_options(${target} PRIVATE -fno-exceptions -Wno-unused-parameter)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # The precompiled header carries MLIR's templates: 1.4 s a file, not 15 s.
    target_compile_options(${target} PRIVATE -fpch-instantiate-templates
      "SHELL:-Xclang -fno-pch-timestamp")
    if(NOT target STREQUAL kvc_pch)
      target_precompile_headers(${target} REUSE_FROM kvc_pch)
      add_dependencies(${target} kvc_pch)
    endif()
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Clang needs the move from an Error to an Expected that g++ can do without.
    target_compile_options(${target} PRIVATE -Wno-redundant-move)
  endif()
  target_link_libraries(${target} PUBLIC MLIR LLVM)
  get_target_property(type ${target} TYPE)
  if(KVC_SANITIZE AND type STREQUAL EXECUTABLE)
    target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/cmake/SanitizerOptions.cpp)
  endif()
endfunction()

separate_arguments(LLVM_DEFINITIONS_LIST NATIVE_COMMAND "${LLVM_DEFINITIONS}")

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # The short form: clang finds the .pch beside the header, and ccache knows that
  # the option's argument is a path.
  set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -include <PCH_HEADER>)
  add_library(kvc_pch STATIC ${CMAKE_SOURCE_DIR}/cmake/Pch.cpp)
  kvc_mlir_options(kvc_pch)
  target_precompile_headers(kvc_pch PRIVATE ${CMAKE_SOURCE_DIR}/cmake/Pch.h)
  # What ccache takes for the precompiled header's bytes.
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/Pch.h)
  file(SHA256 ${CMAKE_SOURCE_DIR}/cmake/Pch.h KVC_PCH_SUM)
  file(WRITE ${CMAKE_BINARY_DIR}/CMakeFiles/kvc_pch.dir/cmake_pch.hxx.pch.sum
    "${KVC_PCH_SUM} ${LLVM_PACKAGE_VERSION} ${CMAKE_CXX_COMPILER_VERSION} ${CMAKE_BUILD_TYPE} ${KVC_SANITIZE}\n")
endif()
