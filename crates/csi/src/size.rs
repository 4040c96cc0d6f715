//! Sizes: bytes in CSI, GiB in Cinder.

use csi_spec::CapacityRange;
use grpc::{Code, Status};

/// Bytes in a GiB.
pub(crate) const GIB: i64 = 1 << 30;
/// Largest size in Cinder's database, in GiB.
const LARGEST: i64 = i32::MAX as i64;

/// Range of sizes, from a [`CapacityRange`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// Minimum in GiB, rounded up; `None` if open.
    pub least: Option<i64>,
    /// Maximum in bytes.
    pub most: Option<i64>,
}

impl Range {
    /// Parses the range of a request. Zero means no bound, by the specification.
    pub(crate) fn read(range: Option<&CapacityRange>) -> Result<Self, Status> {
        let (required, limit) = range.map_or((0, 0), |it| (it.required_bytes, it.limit_bytes));
        if required < 0 || limit < 0 {
            let message =
                format!("capacity_range: {required} and {limit} bytes: a size is not negative");
            return Err(Status::new(Code::InvalidArgument, message));
        }
        if limit > 0 && limit < required {
            let message = format!(
                "capacity_range: limit_bytes {limit} is less than required_bytes {required}"
            );
            return Err(Status::new(Code::OutOfRange, message));
        }
        let range = Self {
            least: (required > 0).then(|| gib(required)),
            most: (limit > 0).then_some(limit),
        };
        range.check(range.least.unwrap_or(1))?;
        Ok(range)
    }

    /// Size for a new volume, in GiB; at least the `source` GiB of its source.
    pub(crate) fn size(self, source: Option<i64>) -> Result<i64, Status> {
        let size = self.least.unwrap_or_else(|| source.unwrap_or(1));
        if let Some(source) = source.filter(|source| *source > size) {
            return Err(Status::new(
                Code::OutOfRange,
                format!(
                    "{size} GiB are less than the {source} GiB of the source: ask for {source} GiB or more"
                ),
            ));
        }
        self.check(size)?;
        Ok(size)
    }

    /// True if a volume of `size` GiB satisfies the request.
    pub(crate) fn accepts(self, size: i64) -> bool {
        self.least.is_none_or(|least| size >= least) && self.check(size).is_ok()
    }

    /// Refuses a size in GiB above the maximum of the request or of Cinder.
    pub(crate) fn check(self, size: i64) -> Result<(), Status> {
        if size > LARGEST {
            let message = format!("capacity_range: Cinder has at most {LARGEST} GiB, not {size}");
            return Err(Status::new(Code::OutOfRange, message));
        }
        match self.most {
            Some(most) if bytes(size) > most => Err(Status::new(
                Code::OutOfRange,
                format!(
                    "capacity_range: Cinder has whole GiB, and {size} GiB are more than limit_bytes {most}"
                ),
            )),
            _ => Ok(()),
        }
    }
}

/// GiB for a number of bytes, rounded up.
fn gib(bytes: i64) -> i64 {
    bytes / GIB + i64::from(bytes % GIB != 0)
}

/// Bytes in a number of GiB, saturating.
pub(crate) fn bytes(gib: i64) -> i64 {
    gib.saturating_mul(GIB)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn range(required_bytes: i64, limit_bytes: i64) -> Result<Range, Code> {
        let range = CapacityRange {
            required_bytes,
            limit_bytes,
        };
        Range::read(Some(&range)).map_err(|status| status.code)
    }

    #[test]
    fn a_size_is_rounded_up_and_kept_within_its_limit() {
        for (required, limit, source, expected) in [
            (0, 0, None, Ok(1)),
            (0, 0, Some(7), Ok(7)),
            (1, 0, None, Ok(1)),
            (GIB, GIB, None, Ok(1)),
            (GIB + 1, 0, None, Ok(2)),
            (0, GIB, None, Ok(1)),
            (0, 3 * GIB, Some(2), Ok(2)),
            (0, GIB, Some(2), Err(Code::OutOfRange)),
            (GIB, 0, Some(2), Err(Code::OutOfRange)),
            (3 * GIB, 0, Some(2), Ok(3)),
            (GIB + 1, GIB + 2, None, Err(Code::OutOfRange)),
            (0, 1, None, Err(Code::OutOfRange)),
            (2, 1, None, Err(Code::OutOfRange)),
            (-1, 0, None, Err(Code::InvalidArgument)),
            (0, -1, None, Err(Code::InvalidArgument)),
            (i64::MAX, 0, None, Err(Code::OutOfRange)),
            (LARGEST * GIB, 0, None, Ok(LARGEST)),
            (LARGEST * GIB + 1, 0, None, Err(Code::OutOfRange)),
            (i64::MIN, i64::MAX, None, Err(Code::InvalidArgument)),
        ] {
            let size =
                range(required, limit).and_then(|it| it.size(source).map_err(|status| status.code));
            assert_eq!(size, expected, "{required} {limit} {source:?}");
        }
        assert_eq!(Range::read(None).unwrap().size(None).unwrap(), 1);
    }

    proptest! {
        #[test]
        fn a_size_holds_what_was_required(required in 0..i64::MAX, limit in 0..i64::MAX, source in prop::option::of(1i64..1 << 20)) {
            if let Ok(size) = range(required, limit).and_then(|it| it.size(source).map_err(|it| it.code)) {
                prop_assert!(bytes(size) >= required && (limit == 0 || bytes(size) <= limit));
                prop_assert!(size >= source.unwrap_or(1));
                prop_assert!(range(required, limit).unwrap().accepts(size));
            }
        }
    }
}
