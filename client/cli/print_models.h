#pragma once

#include <ostream>

#include "client/cli/text/print.h"
#include "linnet/v1/admin_service.pb.h"
#include "linnet/v1/text_service.pb.h"

namespace linnet::client {

// Writes a table with a line for each model, or a JSON object for each.
void PrintModels(const v1::ListModelsResponse& response, Form form, std::ostream& out);

// Writes a line for each folder: the result, the model and its version, or why it failed.
void PrintReload(const v1::ReloadResponse& response, Form form, std::ostream& out);

// Writes one model with its limits, its defaults and its origin, a line each.
void PrintModel(const v1::GetModelResponse& response, Form form, std::ostream& out);

}  // namespace linnet::client
