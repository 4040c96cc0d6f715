//! Times as Cinder writes them.

use prost_types::Timestamp;

/// Parses a time of Cinder: UTC, usually without a zone.
pub(crate) fn read(text: &str) -> Option<Timestamp> {
    let text = text.trim_end_matches('Z').trim_end_matches("+00:00");
    let time: jiff::civil::DateTime = text.parse().ok()?;
    let time = time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp();
    Some(Timestamp {
        seconds: time.as_second(),
        nanos: time.subsec_nanosecond(),
    })
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn times_of_cinder_are_utc() {
        for text in [
            "2026-11-28T12:00:00.500000",
            "2026-11-28T12:00:00.5Z",
            "2026-11-28T12:00:00.5+00:00",
        ] {
            let read = read(text).unwrap();
            assert_eq!(
                (read.seconds, read.nanos),
                (1_795_867_200, 500_000_000),
                "{text}"
            );
        }
        assert_eq!(read(""), None);
        assert_eq!(read("yesterday"), None);
    }
}
