#pragma once

#include "linnet/v1/text_service.pb.h"
#include "server/text/stage.h"

namespace linnet::server {

// Lets the stages of a translation read fragments of HTML or XML: the first gets their plain texts,
// and the answer of the last gets their codes. The models read the same text as without the tags.
// The requests of the stages ask for alignments; the response has them only if `alignments` is set.
Stages WithMarkup(Stages stages, bool alignments, linnet::v1::TranslateResponse& response);

}  // namespace linnet::server
