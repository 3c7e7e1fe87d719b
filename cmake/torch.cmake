# LibTorch from the PyPI wheel. Its own TorchConfig fails without a CUDA toolkit, so the targets are declared here.
# A CPU process links only torch_cpu and c10.
set(LINNET_TORCH_DIR "${CMAKE_SOURCE_DIR}/.deps/python/torch" CACHE PATH "Folder torch/ of the unpacked PyPI wheel")
if(NOT EXISTS "${LINNET_TORCH_DIR}/lib/libtorch_cpu.so")
  message(FATAL_ERROR "no LibTorch in ${LINNET_TORCH_DIR}: run ./start.sh --build once, or set LINNET_TORCH_DIR "
                      "to the folder torch/ of an installed wheel")
endif()

function(linnet_import_torch name)
  add_library(linnet::${name} SHARED IMPORTED GLOBAL)
  set_target_properties(linnet::${name} PROPERTIES
    IMPORTED_LOCATION "${LINNET_TORCH_DIR}/lib/lib${name}.so"
    INTERFACE_INCLUDE_DIRECTORIES "${LINNET_TORCH_DIR}/include;${LINNET_TORCH_DIR}/include/torch/csrc/api/include")
endfunction()
linnet_import_torch(c10)
linnet_import_torch(torch_cpu)
linnet_import_torch(c10_cuda)
linnet_import_torch(torch_cuda)
set_property(TARGET linnet::torch_cpu PROPERTY INTERFACE_LINK_LIBRARIES linnet::c10)
set_property(TARGET linnet::torch_cuda PROPERTY INTERFACE_LINK_LIBRARIES linnet::torch_cpu linnet::c10_cuda)
# The wheel finds libcupti, libcudart and (on a GPU) the rest by its RPATH; the linker does not need them.
foreach(name torch_cpu torch_cuda c10_cuda)
  set_property(TARGET linnet::${name} APPEND PROPERTY
    INTERFACE_LINK_OPTIONS "-Wl,--unresolved-symbols=ignore-in-shared-libs" "-Wl,-rpath,${LINNET_TORCH_DIR}/lib")
endforeach()
