#pragma once

#include "linnet/v1/text_service.pb.h"
#include "server/text/stage.h"

namespace linnet::server {

// Lets the stages of a translation read fragments of HTML or XML: the first gets their plain texts,
// and the answer of the last gets their codes. The models read the same text as without the tags.
// Segments with codes are aligned by their pieces.
Stages WithMarkup(Stages stages, linnet::v1::TranslateResponse& response);

}  // namespace linnet::server
