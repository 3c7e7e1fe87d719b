"""The API as it is: text_service_pb2 has the messages, text_service_pb2_grpc the stub."""
