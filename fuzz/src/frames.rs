//! Target for bodies of gRPC calls to the CSI driver.

use bytes::Bytes;
use csi_spec::{CreateVolumeGroupSnapshotRequest, CreateVolumeRequest, NodeStageVolumeRequest};
use futures::FutureExt as _;
use grpc::{Code, Method};

/// Bytes of flag and length before a message.
const PREFIX: usize = 5;

/// Answers a frame with a message by a frame, and anything else by a gRPC code.
pub fn body(data: &[u8]) {
    ask::<CreateVolumeRequest>(data);
    ask::<NodeStageVolumeRequest>(data);
    ask::<CreateVolumeGroupSnapshotRequest>(data);
}

fn ask<M: Method>(data: &[u8])
where
    M::Response: 'static,
{
    let respond = |_: M| futures::future::ready(Ok(M::Response::default())).boxed();
    let answered = grpc::answer(Bytes::copy_from_slice(data), respond);
    match answered.now_or_never() {
        Some(Ok(framed)) => {
            assert!(is_frame(data), "an answer to what is no frame");
            assert!(is_frame(&framed), "an answer that is no frame");
        }
        Some(Err(status)) if data.len() >= PREFIX && data[0] != 0 => {
            assert_eq!(status.code, Code::Unimplemented, "{}", status.message);
        }
        Some(Err(status)) => assert_eq!(status.code, Code::Internal, "{}", status.message),
        None => panic!("the answer takes its time"),
    }
}

/// True if a body is exactly one frame without compression.
fn is_frame(body: &[u8]) -> bool {
    match body {
        [0, a, b, c, d, message @ ..] => {
            let length = u32::from_be_bytes([*a, *b, *c, *d]);
            usize::try_from(length) == Ok(message.len())
        }
        _ => false,
    }
}
