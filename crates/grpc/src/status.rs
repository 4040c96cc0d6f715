//! Status codes, and the error of a call.

use http::HeaderMap;
use http::header::HeaderValue;
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};

/// Header or trailer with the status code.
const STATUS: &str = "grpc-status";
/// Header or trailer with the status message.
const MESSAGE: &str = "grpc-message";
/// ASCII characters that are percent-encoded in a status message. All other bytes are encoded, too.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');
/// Maximum size of a message in bytes, before the encoding: clients limit the size of all headers together.
const LONGEST: usize = 4096;

macro_rules! codes {
    ($($(#[$doc:meta])* $code:ident = $number:literal, $name:literal;)*) => {
        /// Status code.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])* $code,)*
            /// Number that gRPC does not define.
            Other(u32),
        }

        impl Code {
            /// All codes that gRPC defines.
            pub const ALL: &[Self] = &[$(Self::$code),*];

            /// Returns the number of the code on the wire.
            #[must_use]
            pub fn number(self) -> u32 {
                match self {
                    $(Self::$code => $number,)*
                    Self::Other(number) => number,
                }
            }

            /// Returns the name as in gRPC's documents, for example `NOT_FOUND`.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$code => $name,)*
                    Self::Other(_) => "UNKNOWN",
                }
            }
        }

        impl From<u32> for Code {
            fn from(number: u32) -> Self {
                match number {
                    $($number => Self::$code,)*
                    other => Self::Other(other),
                }
            }
        }
    };
}

codes! {
    /// Success.
    Ok = 0, "OK";
    /// The caller cancelled the call.
    Canceled = 1, "CANCELED";
    /// Error without a code of its own.
    Unknown = 2, "UNKNOWN";
    /// The request is wrong, whatever the state of the system.
    InvalidArgument = 3, "INVALID_ARGUMENT";
    /// The deadline of the call passed first.
    DeadlineExceeded = 4, "DEADLINE_EXCEEDED";
    /// An object does not exist.
    NotFound = 5, "NOT_FOUND";
    /// Another object of the same name exists.
    AlreadyExists = 6, "ALREADY_EXISTS";
    /// The caller lacks the permission.
    PermissionDenied = 7, "PERMISSION_DENIED";
    /// A quota or another limit is reached.
    ResourceExhausted = 8, "RESOURCE_EXHAUSTED";
    /// The system is not in the state that the call needs.
    FailedPrecondition = 9, "FAILED_PRECONDITION";
    /// The call conflicts with another one, or is not finished. The caller can repeat the call.
    Aborted = 10, "ABORTED";
    /// A number is outside of its range.
    OutOfRange = 11, "OUT_OF_RANGE";
    /// The server does not have the method.
    Unimplemented = 12, "UNIMPLEMENTED";
    /// The server is broken.
    Internal = 13, "INTERNAL";
    /// The server, or a dependency of the server, cannot be reached now.
    Unavailable = 14, "UNAVAILABLE";
    /// Data are lost.
    DataLoss = 15, "DATA_LOSS";
    /// The caller has no valid credentials.
    Unauthenticated = 16, "UNAUTHENTICATED";
}

/// Error status of a call.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Status {
    /// Code of the error.
    pub code: Code,
    /// Message, such as `etcdserver: unhealthy cluster`.
    pub message: String,
}

impl Status {
    /// Creates an error status.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// Returns the outcome in headers or trailers; `None` without a status.
    pub(crate) fn read(headers: &HeaderMap) -> Option<Result<(), Self>> {
        let text = |name: &str| headers.get(name)?.to_str().ok();
        let code = Code::from(text(STATUS)?.parse::<u32>().unwrap_or(2));
        if code == Code::Ok {
            return Some(Ok(()));
        }
        let words = percent_decode_str(text(MESSAGE).unwrap_or_default());
        let mut message = words.decode_utf8_lossy().into_owned();
        if message.is_empty() {
            message = format!("gRPC status {}", code.number());
        }
        Some(Err(Self { code, message }))
    }

    /// Returns the trailers of a call with this outcome.
    pub(crate) fn trailers(outcome: Result<(), &Self>) -> HeaderMap {
        let mut trailers = HeaderMap::new();
        let code = outcome.map_or_else(|status| status.code, |()| Code::Ok);
        trailers.insert(STATUS, code.number().into());
        if let Err(status) = outcome {
            let message = &status.message[..status.message.floor_char_boundary(LONGEST)];
            let words = utf8_percent_encode(message, ESCAPED).to_string();
            // Printable ASCII is a header.
            if let Ok(words) = HeaderValue::from_str(&words) {
                trailers.insert(MESSAGE, words);
            }
        }
        trailers
    }
}
