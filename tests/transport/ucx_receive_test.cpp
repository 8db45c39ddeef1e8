// What a UCX connection accepts, message by message, as if a peer had sent it.

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "capstan/transport/ucx/address.h"
#include "capstan/transport/ucx/ucx_core.h"
#include "fabric.h"

namespace capstan::transport::ucx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::pattern;

class Receiving : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto address = resolve(*parse(listener_->address()));
    ucp_ep_params_t params{};
    params.field_mask = UCP_EP_PARAM_FIELD_FLAGS | UCP_EP_PARAM_FIELD_SOCK_ADDR;
    params.flags = UCP_EP_PARAMS_FLAGS_CLIENT_SERVER;
    params.sockaddr.addr = reinterpret_cast<const sockaddr*>(&address->storage);
    params.sockaddr.addrlen = address->size;
    ucs_status_t status = UCS_OK;
    Endpoint* endpoint = context_.open_endpoint(params, status);
    ASSERT_NE(endpoint, nullptr);
    core_ = std::make_shared<UcxCore>(context_, *endpoint, "peer");
    connection_ = Core::make_connection(core_);
    connection_->set_handler(&handler_);
  }

  void arrive(Kind kind, std::string_view frame, Bytes data = {}, std::uint64_t place = 0) {
    const Prefix prefix{kMagic, kind, sequence_++, place};
    std::vector<std::byte> header(sizeof(prefix));
    std::memcpy(header.data(), &prefix, sizeof(prefix));
    const auto bytes = testing::bytes_of(frame);
    header.insert(header.end(), bytes.begin(), bytes.end());
    std::vector<std::byte> copy(data.begin(), data.end());
    core_->on_arrival(header, copy.data(), copy.size(), false);
    testing::drain(loop_);
  }

  EventLoop loop_;
  std::vector<std::unique_ptr<Connection>> accepted_;
  const std::unique_ptr<Context> server_ = Context::open(loop_);
  const std::unique_ptr<Listener> listener_ = server_->listen(
      "127.0.0.1:0", [this](std::unique_ptr<Connection> c) { accepted_.push_back(std::move(c)); });
  ContextImpl context_{loop_};
  testing::Recorder handler_;
  std::shared_ptr<UcxCore> core_;
  std::unique_ptr<Connection> connection_;
  std::uint64_t sequence_ = 0;

  void TearDown() override {
    connection_.reset();
    core_.reset();
    accepted_.clear();
  }
};

TEST_F(Receiving, APayloadInPieces) {
  const auto payload = pattern(10, 1);
  arrive(Kind::kPieces, "frame", {}, payload.size());
  arrive(Kind::kPiece, "", Bytes(payload).first(6), 0);
  EXPECT_THAT(handler_.frames, IsEmpty());
  arrive(Kind::kPiece, "", Bytes(payload).subspan(6), 6);
  arrive(Kind::kMessage, "next");
  EXPECT_THAT(handler_.frames, ElementsAre("frame", "next"));
  EXPECT_EQ(handler_.payloads.at(0), payload);
  EXPECT_THAT(handler_.ends, IsEmpty());
}

// The handler may free the destination of the pieces when it takes another message.
TEST_F(Receiving, AnythingButAPieceWhilePiecesAreMissingIsMalformed) {
  const auto payload = pattern(10, 2);
  for (const auto kind :
       {Kind::kMessage, Kind::kLongFrame, Kind::kFrameAhead, Kind::kPayload, Kind::kPieces, Kind::kGoodbye}) {
    SCOPED_TRACE(static_cast<int>(kind));
    arrive(Kind::kPieces, "frame", {}, payload.size());
    arrive(Kind::kPiece, "", Bytes(payload).first(6), 0);
    const bool has_data = kind != Kind::kPieces && kind != Kind::kGoodbye;
    arrive(kind, "other", has_data ? Bytes(payload) : Bytes(), kind == Kind::kPieces ? 10 : 0);
    EXPECT_THAT(handler_.frames, IsEmpty());
    EXPECT_EQ(handler_.places, 1) << "no other payload gets a place";
    ASSERT_EQ(handler_.ends.size(), 1u);
    EXPECT_EQ(handler_.ends[0].code(), StatusCode::kMalformed);
    EXPECT_THAT(handler_.ends[0].message(), HasSubstr("peer"));
    TearDown();
    handler_ = {};
    sequence_ = 0;
    SetUp();
  }
}

}  // namespace
}  // namespace capstan::transport::ucx
