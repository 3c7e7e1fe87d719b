#include "server/identity/token_file.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/read_file.h"
#include "proto/status_macros.h"
#include "server/base/log.h"

namespace linnet::server {
absl::StatusOr<std::shared_ptr<TokenFile>> TokenFile::Open(const std::string& path,
                                                           Metrics& metrics) {
  std::shared_ptr<TokenFile> file(new TokenFile(path, metrics));
  RETURN_IF_ERROR(file->Read());
  return file;
}

absl::Status TokenFile::Read() {
  ASSIGN_OR_RETURN(std::string text, ReadFile(path_, kMaxOperatorFileBytes));
  {
    MutexLock lock(mu_);
    if (table_ != nullptr && text == text_) return absl::OkStatus();
  }
  absl::StatusOr<TokenTable> table = TokenTable::Parse(text);
  if (!table.ok()) {
    MutexLock lock(mu_);
    wrong_text_ = std::move(text);
    return absl::InvalidArgumentError(absl::StrCat(path_, ": ", table.status().message()));
  }
  auto shared = std::make_shared<const TokenTable>(*std::move(table));
  const size_t tokens = shared->size();
  bool again = false;
  {
    MutexLock lock(mu_);
    again = table_ != nullptr;
    table_ = std::move(shared);
    text_ = std::move(text);
  }
  if (again) metrics_.TokensReloaded(true);
  Log(LogLevel::kInfo, "tokens_read", {{"path", path_}, {"tokens", tokens}});
  return absl::OkStatus();
}

void TokenFile::Refresh() {
  std::string wrong_before;
  {
    MutexLock lock(mu_);
    wrong_before = std::exchange(wrong_text_, "");
  }
  const absl::Status status = Read();
  const std::string failure(status.message());
  bool changed = false;
  {
    MutexLock lock(mu_);
    changed = std::exchange(failure_, failure) != failure || wrong_text_ != wrong_before;
  }
  if (!status.ok()) metrics_.TokensReloaded(false);
  if (!changed) return;
  if (status.ok()) {
    Log(LogLevel::kInfo, "tokens_readable_again", {{"path", path_}});
  } else {
    Log(LogLevel::kError, "tokens_not_read",
        {{"why", failure}, {"effect", "the previous tokens stay in force"}});
  }
}

std::shared_ptr<const TokenTable> TokenFile::table() const {
  MutexLock lock(mu_);
  return table_;
}

}  // namespace linnet::server
