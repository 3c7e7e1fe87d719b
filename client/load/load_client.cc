#include "client/load/load_client.h"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <stop_token>
#include <utility>

#include "absl/memory/memory.h"
#include "client/library/connection.h"
#include "grpcpp/create_channel_posix.h"
#include "grpcpp/grpcpp.h"
#include "linnet/v1/text_service.grpc.pb.h"
#include "proto/status_macros.h"

namespace linnet::client {
namespace {

// Overloads for the two tasks.
absl::StatusOr<v1::TranslateResponse> Send(Client& client, const v1::TranslateRequest& request,
                                           const CallOptions& options) {
  return client.Translate(request, options);
}
absl::StatusOr<v1::SummarizeResponse> Send(Client& client, const v1::SummarizeRequest& request,
                                           const CallOptions& options) {
  return client.Summarize(request, options);
}
template <typename Request, typename Response>
absl::StatusOr<Response> Send(v1::TextService::Stub& stub,
                              grpc::Status (v1::TextService::Stub::*method)(grpc::ClientContext*,
                                                                            const Request&,
                                                                            Response*),
                              grpc::ClientContext& context, const Request& request) {
  Response response;
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (status.ok()) return response;
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}
auto Send(v1::TextService::Stub& stub, grpc::ClientContext& context,
          const v1::TranslateRequest& request) {
  return Send(stub, &v1::TextService::Stub::Translate, context, request);
}
auto Send(v1::TextService::Stub& stub, grpc::ClientContext& context,
          const v1::SummarizeRequest& request) {
  return Send(stub, &v1::TextService::Stub::Summarize, context, request);
}
const auto& Answers(const v1::TranslateResponse& response) { return response.translations(); }
const auto& Answers(const v1::SummarizeResponse& response) { return response.summaries(); }

// Makes a call on a connection of its own, which is cut after the delay, or closed after the answer
// if that arrives earlier. `cancellation` ends the call.
template <typename Request, typename MakeOutcome>
CallOutcome CallAndCut(const std::string& server, const Request& request, absl::Duration timeout,
                       const Cancellation& cancellation, DelayedActions& delayed,
                       const MakeOutcome& outcome_of) {
  CallOutcome outcome;
  const absl::StatusOr<std::shared_ptr<Socket>> connection = Socket::Connect(server, timeout);
  outcome.status = connection.status();
  if (!connection.ok()) return outcome;
  const absl::StatusOr<int> socket = (*connection)->Duplicate();
  outcome.status = socket.status();
  if (!socket.ok()) return outcome;
  fcntl(*socket, F_SETFL, fcntl(*socket, F_GETFL) | O_NONBLOCK);  // gRPC requires it
  const auto stub =
      v1::TextService::NewStub(grpc::CreateInsecureChannelFromFd("linnet-load", *socket));
  CancellableContext context(cancellation, {});
  if (!context.begun()) {
    outcome.status = absl::CancelledError("cancelled before the call");
    return outcome;
  }
  context.grpc().set_deadline(std::chrono::system_clock::now() +
                              absl::ToChronoMicroseconds(timeout));
  const auto cut = std::make_shared<std::atomic<bool>>(false);
  // Does not keep the descriptors of calls that have ended.
  delayed.Add([weak = std::weak_ptr(*connection), cut] {
    const std::shared_ptr<Socket> connection = weak.lock();
    if (connection == nullptr) return;
    *cut = true;
    connection->Cut();
  });
  outcome = outcome_of(Send(*stub, context.grpc(), request));
  if (*cut && !outcome.status.ok()) outcome.abandonment = Abandonment::kDisconnect;
  return outcome;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadClient>> LoadClient::Connect(
    const ClientOptions& options, int channels, std::vector<CallKind> kinds,
    const AbandonmentOptions& abandonment, uint64_t seed, const std::stop_token& stop) {
  std::vector<Client> clients;
  for (int channel = 0; channel < channels; ++channel) {
    ASSIGN_OR_RETURN(Client client, Client::Create(options));
    {
      // Ends before the client moves: a stop must not find an empty one.
      const std::stop_callback cancel(stop, [&client] { client.Cancel(); });
      RETURN_IF_ERROR(client.Health());
    }
    clients.push_back(std::move(client));
  }
  auto client = absl::WrapUnique(
      new LoadClient(options, std::move(clients), std::move(kinds), abandonment, seed));
  {
    const std::stop_callback cancel(stop, [&client] { client->Cancel(); });
    client->ListModels();
  }
  return client;
}

LoadClient::LoadClient(const ClientOptions& options, std::vector<Client> clients,
                       std::vector<CallKind> kinds, const AbandonmentOptions& abandonment,
                       uint64_t seed)
    : options_(options),
      clients_(std::move(clients)),
      kinds_(std::move(kinds)),
      abandonment_(abandonment),
      seed_(seed),
      delayed_(abandonment.after) {}

void LoadClient::ListModels() {
  const absl::StatusOr<v1::ListModelsResponse> listed = clients_[0].ListModels();
  if (!listed.ok()) return;
  for (const v1::Model& model : listed->models()) {
    served_[{model.name(), model.version()}] = {model.name(), model.version(), model.device(),
                                                model.compute_type()};
  }
}

std::vector<AnsweringModel> LoadClient::AnsweringModels() const {
  std::vector<AnsweringModel> models;
  absl::MutexLock lock(&mu_);
  for (const NameAndVersion& key : answering_) {
    const auto served = served_.find(key);
    models.push_back(served != served_.end() ? served->second
                                             : AnsweringModel{key.first, key.second, "", ""});
  }
  return models;
}

template <typename Response>
CallOutcome LoadClient::MakeOutcome(const absl::StatusOr<Response>& response) {
  CallOutcome outcome;
  outcome.status = response.status();
  if (!response.ok()) return outcome;
  {
    absl::MutexLock lock(&mu_);
    answering_.emplace(response->model(), response->model_version());
  }
  outcome.texts = Answers(*response).size();
  for (const auto& answer : Answers(*response)) {
    outcome.source_tokens += answer.usage().source_tokens();
    outcome.target_tokens += answer.usage().target_tokens();
  }
  return outcome;
}

Abandonment LoadClient::DrawAbandonment(int64_t index) const {
  double draw = UniformDraw(seed_, index, 1);
  if ((draw -= abandonment_.deadlines) < 0) return Abandonment::kDeadline;
  if ((draw -= abandonment_.cancels) < 0) return Abandonment::kCancel;
  if ((draw -= abandonment_.disconnects) < 0) return Abandonment::kDisconnect;
  return Abandonment::kNone;
}

CallOutcome LoadClient::Call(int64_t index, int channel) {
  const size_t number = PickKind(kinds_, seed_, index);
  const CallKind& kind = kinds_[number];
  const Abandonment abandonment = DrawAbandonment(index);
  const auto make = [&](auto request) {
    for (int64_t text = 0; text < kind.texts; ++text) {
      request.add_contents(kind.sentences[(index * kind.texts + text) % kind.sentences.size()]);
    }
    CallOptions options;
    options.timeout = kind.deadline;
    CallOutcome outcome;
    if (abandonment == Abandonment::kDisconnect)
      return CallAndCut(options_.server, request, kind.deadline, cancellation_, delayed_,
                        [this](const auto& response) { return MakeOutcome(response); });
    if (abandonment == Abandonment::kDeadline) {
      options.timeout = std::min(abandonment_.after, kind.deadline);
    }
    if (abandonment == Abandonment::kCancel) {
      const Cancellation cancellation;
      options.cancellation = cancellation;
      delayed_.Add([cancellation] { cancellation.Cancel(); });
    }
    outcome = MakeOutcome(Send(clients_[channel % clients_.size()], request, options));
    const absl::StatusCode wanted = abandonment == Abandonment::kDeadline
                                        ? absl::StatusCode::kDeadlineExceeded
                                        : absl::StatusCode::kCancelled;
    if (abandonment != Abandonment::kNone && outcome.status.code() == wanted)
      outcome.abandonment = abandonment;
    return outcome;
  };
  CallOutcome outcome = std::visit(make, kind.request);
  outcome.kind = number;
  return outcome;
}

void LoadClient::Cancel() {
  for (Client& client : clients_) client.Cancel();
  cancellation_.Cancel();
}

}  // namespace linnet::client
