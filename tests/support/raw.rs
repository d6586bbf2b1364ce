//! Calls any method of the contract by its path with raw bytes, so that a test can walk over all of them
//! without naming each; and the list of methods, read from the descriptor set.

use maka_proto::DESCRIPTOR_SET;
use prost::Message as _;
use prost_types::FileDescriptorSet;
use tonic::{
    Request, Status,
    client::Grpc,
    codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::http::uri::PathAndQuery,
    transport::Channel,
};

/// `/package.Service/Method` of every method of `maka.gateway.v1`.
#[must_use]
pub fn methods() -> Vec<String> {
    let set = FileDescriptorSet::decode(DESCRIPTOR_SET).expect("built by the contract's crate");
    let mut methods = Vec::new();
    for file in &set.file {
        for service in &file.service {
            for method in &service.method {
                methods.push(format!(
                    "/{}.{}/{}",
                    file.package(),
                    service.name(),
                    method.name()
                ));
            }
        }
    }
    methods
}

/// Sends `body` to `method` and reads the first answer; every method can be read as a stream.
///
/// # Errors
/// The gateway's status.
pub async fn call(
    channel: &Channel,
    method: &str,
    token: Option<&str>,
    body: Vec<u8>,
) -> Result<Vec<u8>, Status> {
    let mut client = Grpc::new(channel.clone());
    client
        .ready()
        .await
        .map_err(|error| Status::from_error(error.into()))?;
    let mut request = Request::new(body);
    if let Some(token) = token {
        let value = format!("Bearer {token}").parse().expect("visible ASCII");
        request.metadata_mut().insert("authorization", value);
    }
    let path = PathAndQuery::try_from(method).expect("a method path");
    let mut answers = client
        .server_streaming(request, path, RawCodec)
        .await?
        .into_inner();
    answers.message().await.map(Option::unwrap_or_default)
}

#[derive(Clone, Copy, Debug)]
struct RawCodec;

impl Codec for RawCodec {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for RawCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        bytes::BufMut::put_slice(buffer, &item);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::default()
    }
}

impl Decoder for RawCodec {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let length = bytes::Buf::remaining(buffer);
        Ok(Some(bytes::Buf::copy_to_bytes(buffer, length).to_vec()))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::default()
    }
}
