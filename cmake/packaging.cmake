# Installation layout of `cmake --install` and `cpack`: Debian packages and a tarball (docs/DEPLOYMENT.md).
#
# The server includes LibTorch: both are in lib/linnet, and bin has links to the server. The tarball, which may be
# unpacked anywhere, has the same layout below one folder. Version and name come from project().
set(private "lib/linnet")
set(stage "${CMAKE_BINARY_DIR}/stage")

# ---- linnet-server: the files that deploy/stage.sh collects, strips and makes relocatable
install(CODE "file(REMOVE_RECURSE \"${stage}\")
execute_process(COMMAND \"${CMAKE_SOURCE_DIR}/deploy/stage.sh\" \"${stage}\" OUTPUT_QUIET COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND \"${CMAKE_SOURCE_DIR}/deploy/notices.sh\" OUTPUT_FILE \"${stage}/THIRD_PARTY_NOTICES\" COMMAND_ERROR_IS_FATAL ANY)"
  COMPONENT server)
install(PROGRAMS "${stage}/bin/linnet-server" "${stage}/bin/linnet-decode" DESTINATION ${private}/bin COMPONENT server)
install(DIRECTORY "${stage}/lib/" DESTINATION ${private}/lib COMPONENT server PATTERN "liblinnet_ops_cuda*" EXCLUDE)
install(FILES "${stage}/THIRD_PARTY_NOTICES" DESTINATION share/doc/linnet-server COMPONENT server)
install(DIRECTORY model/bundles/ DESTINATION share/linnet/models COMPONENT server)
foreach(program linnet-server linnet-decode)
  file(MAKE_DIRECTORY "${CMAKE_BINARY_DIR}/links")
  file(CREATE_LINK "../${private}/bin/${program}" "${CMAKE_BINARY_DIR}/links/${program}" SYMBOLIC)
  install(FILES "${CMAKE_BINARY_DIR}/links/${program}" DESTINATION bin COMPONENT server)
endforeach()
install(FILES deploy/systemd/linnet-server.service DESTINATION lib/systemd/system COMPONENT server)
# In /etc if the prefix is /usr, as in the packages; otherwise below the prefix.
foreach(service server http)
  install(CODE "string(REGEX REPLACE \"/usr/?$\" \"\" root \"\${CMAKE_INSTALL_PREFIX}\")
file(INSTALL DESTINATION \"\${root}/etc/default\" TYPE FILE RENAME linnet-${service}
     FILES \"${CMAKE_SOURCE_DIR}/deploy/systemd/linnet-${service}.default\")"
    COMPONENT etc_${service})
endforeach()
install(FILES README.md CHANGELOG.md SECURITY.md DESTINATION share/doc/linnet-server COMPONENT server)
install(DIRECTORY docs DESTINATION share/doc/linnet-server COMPONENT server FILES_MATCHING PATTERN "*.md")

# ---- linnet-model: the Python packages and the command, beside the server, whose LibTorch and linnet-decode it uses
install(CODE "file(REMOVE_RECURSE \"${stage}-model\")
execute_process(COMMAND \"${CMAKE_SOURCE_DIR}/deploy/stage_model.py\" \"${stage}-model\" COMMAND_ERROR_IS_FATAL ANY)"
  COMPONENT model)
install(DIRECTORY "${stage}-model/python" DESTINATION ${private} COMPONENT model USE_SOURCE_PERMISSIONS)
install(PROGRAMS "${stage}-model/bin/linnet-model" DESTINATION ${private}/bin COMPONENT model)
file(CREATE_LINK "../${private}/bin/linnet-model" "${CMAKE_BINARY_DIR}/links/linnet-model" SYMBOLIC)
install(FILES "${CMAKE_BINARY_DIR}/links/linnet-model" DESTINATION bin COMPONENT model)
install(FILES CHANGELOG.md DESTINATION share/doc/linnet-model COMPONENT model)

# ---- linnet-http: the program with its Python packages, in a folder of its own
install(CODE "file(REMOVE_RECURSE \"${stage}-http\")
execute_process(COMMAND \"${CMAKE_SOURCE_DIR}/deploy/stage_http.py\" \"${stage}-http\" COMMAND_ERROR_IS_FATAL ANY)"
  COMPONENT http)
install(DIRECTORY "${stage}-http/" DESTINATION lib/linnet-http COMPONENT http USE_SOURCE_PERMISSIONS)
file(CREATE_LINK "../lib/linnet-http/bin/linnet-http" "${CMAKE_BINARY_DIR}/links/linnet-http" SYMBOLIC)
install(FILES "${CMAKE_BINARY_DIR}/links/linnet-http" DESTINATION bin COMPONENT http)
install(FILES deploy/systemd/linnet-http.service DESTINATION lib/systemd/system COMPONENT http)
install(FILES CHANGELOG.md docs/HTTP.md DESTINATION share/doc/linnet-http COMPONENT http)

# ---- linnet-client
set_target_properties(linnet linnet-load PROPERTIES INSTALL_RPATH "\$ORIGIN/../lib/linnet-client")
install(TARGETS linnet linnet-load DESTINATION bin COMPONENT client)
install(DIRECTORY "${CMAKE_SOURCE_DIR}/.deps/grpc/lib/" DESTINATION lib/linnet-client COMPONENT client USE_SOURCE_PERMISSIONS)
install(CODE "execute_process(COMMAND \"${CMAKE_SOURCE_DIR}/deploy/notices.sh\" OUTPUT_FILE \"${CMAKE_BINARY_DIR}/THIRD_PARTY_NOTICES\" COMMAND_ERROR_IS_FATAL ANY)"
  COMPONENT client)
install(FILES "${CMAKE_BINARY_DIR}/THIRD_PARTY_NOTICES" DESTINATION share/doc/linnet-client COMPONENT client)
install(FILES "${CMAKE_BINARY_DIR}/share/linnet.1" DESTINATION share/man/man1 COMPONENT client)
install(FILES "${CMAKE_BINARY_DIR}/share/linnet.bash" DESTINATION share/bash-completion/completions RENAME linnet COMPONENT client)
install(FILES "${CMAKE_BINARY_DIR}/share/linnet.fish" DESTINATION share/fish/vendor_completions.d COMPONENT client)
install(FILES CHANGELOG.md DESTINATION share/doc/linnet-client COMPONENT client)

# ---- linnet-dev: the C++ client, its files for CMake and pkg-config, and the .proto files for other languages.
# Headers are included as "linnet/client.h" and "linnet/v1/text_service.pb.h", from a separate folder: other packages
# may install google/rpc.
set_target_properties(linnet_client PROPERTIES EXPORT_NAME client)
set_target_properties(linnet_proto PROPERTIES EXPORT_NAME proto)
set_target_properties(linnet_proto_grpc PROPERTIES EXPORT_NAME proto_grpc)
install(TARGETS linnet_client linnet_proto linnet_proto_grpc EXPORT linnet_client DESTINATION lib COMPONENT dev
        INCLUDES DESTINATION include/linnet)
install(FILES client/library/client.h DESTINATION include/linnet/linnet COMPONENT dev)
install(DIRECTORY "${CMAKE_BINARY_DIR}/proto/generated/" DESTINATION include/linnet COMPONENT dev
        FILES_MATCHING PATTERN "*.h")
install(DIRECTORY proto/ DESTINATION share/linnet/proto COMPONENT dev FILES_MATCHING PATTERN "*.proto")
install(DIRECTORY client/example DESTINATION share/doc/linnet-dev COMPONENT dev)
set(config "lib/cmake/linnet_client")
install(EXPORT linnet_client NAMESPACE linnet:: FILE linnet_client-targets.cmake DESTINATION ${config} COMPONENT dev)
include(CMakePackageConfigHelpers)
write_basic_package_version_file("${CMAKE_BINARY_DIR}/linnet_client-config-version.cmake" COMPATIBILITY SameMinorVersion)
configure_file(cmake/linnet_client-config.cmake.in "${CMAKE_BINARY_DIR}/linnet_client-config.cmake" COPYONLY)
install(FILES "${CMAKE_BINARY_DIR}/linnet_client-config.cmake" "${CMAKE_BINARY_DIR}/linnet_client-config-version.cmake"
        DESTINATION ${config} COMPONENT dev)
configure_file(cmake/linnet_client.pc.in "${CMAKE_BINARY_DIR}/linnet_client.pc" @ONLY)
install(FILES "${CMAKE_BINARY_DIR}/linnet_client.pc" DESTINATION lib/pkgconfig COMPONENT dev)

# ---- in each package: documentation in Debian's folders
foreach(component server model http client dev)
  install(FILES LICENSE DESTINATION share/doc/linnet-${component} RENAME copyright COMPONENT ${component})
endforeach()

# ---- cpack
file(STRINGS deps/versions.txt lines)
set(inside FALSE)
foreach(line ${lines})  # the section [debian-runtime], which deploy/Dockerfile also installs
  if(line MATCHES "^\\[(.*)\\]$")
    string(COMPARE EQUAL "${CMAKE_MATCH_1}" debian-runtime inside)
  elseif(inside AND NOT line MATCHES "^#")
    list(APPEND runtime "${line}")
  endif()
endforeach()
list(JOIN runtime ", " runtime)

set(CPACK_PACKAGE_NAME linnet)
set(CPACK_PACKAGE_CONTACT "The Linnet developers <linnet@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Translates and summarises over gRPC with convolutional sequence models")
set(CPACK_GENERATOR DEB TZST)
set(CPACK_COMPONENTS_ALL server model http client dev etc_server etc_http)
set(CPACK_COMPONENTS_GROUPING ONE_PER_GROUP)
set(CPACK_COMPONENT_SERVER_GROUP server)
set(CPACK_COMPONENT_ETC_SERVER_GROUP server)
set(CPACK_COMPONENT_HTTP_GROUP http)
set(CPACK_COMPONENT_ETC_HTTP_GROUP http)
set(CPACK_COMPONENT_MODEL_GROUP model)
set(CPACK_COMPONENT_CLIENT_GROUP client)
set(CPACK_COMPONENT_DEV_GROUP dev)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
set(CPACK_DEBIAN_PACKAGE_SECTION net)
foreach(group server model http client dev)
  string(TOUPPER ${group} GROUP)
  set(CPACK_DEBIAN_${GROUP}_PACKAGE_NAME linnet-${group})
endforeach()
set(CPACK_DEBIAN_SERVER_PACKAGE_DEPENDS "libc6 (>= 2.36), ${runtime}")
# The extension modules are built for Python 3.11, and LibTorch is the server's.
set(CPACK_DEBIAN_MODEL_PACKAGE_DEPENDS "linnet-server (= ${PROJECT_VERSION}), python3 (>= 3.11), python3 (<< 3.12)")
set(CPACK_DEBIAN_CLIENT_PACKAGE_DEPENDS "libc6 (>= 2.36), libabsl20220623, libc-ares2, libprotobuf32, libre2-9, libssl3, libstdc++6, zlib1g")
set(CPACK_DEBIAN_HTTP_PACKAGE_DEPENDS "libc6 (>= 2.36), python3 (>= 3.11), python3 (<< 3.12)")
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "libabsl-dev, libgrpc++-dev, libprotobuf-dev")
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_SERVER_PACKAGE_CONTROL_EXTRA "${CMAKE_SOURCE_DIR}/deploy/systemd/conffiles" "${CMAKE_SOURCE_DIR}/deploy/systemd/prerm")
set(CPACK_DEBIAN_HTTP_PACKAGE_CONTROL_EXTRA "${CMAKE_SOURCE_DIR}/deploy/systemd/http/conffiles")
include(CPack)
foreach(group server model http client dev)
  cpack_add_component_group(${group})
endforeach()
