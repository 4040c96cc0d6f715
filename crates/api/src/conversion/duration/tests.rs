use proptest::prelude::*;

use super::{seconds, text};

#[test]
fn go_durations_are_read() {
    for (given, expected) in [
        ("0", Some(0)),
        ("30s", Some(30)),
        ("4m0s", Some(240)),
        ("1h30m", Some(5400)),
        ("1.5h", Some(5400)),
        ("1500ms", Some(1)),
        ("-10s", Some(-10)),
        ("", None),
        ("10", None),
        ("ten minutes", None),
        ("10x", None),
        ("s", None),
        ("99999999h", Some(i32::MAX)),
        ("-99999999h", Some(i32::MIN)),
    ] {
        assert_eq!(seconds(given), expected, "{given:?}");
    }
}

#[test]
fn seconds_are_written_as_go_does() {
    for (given, expected) in [
        (0, "0s"),
        (59, "59s"),
        (60, "1m0s"),
        (3600, "1h0m0s"),
        (3661, "1h1m1s"),
        (-90, "-1m30s"),
    ] {
        assert_eq!(text(given), expected);
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(given in any::<i32>()) {
        prop_assert_eq!(seconds(&text(i64::from(given))), Some(given));
    }

    #[test]
    fn no_text_panics(given in ".{0,40}") {
        let _ = seconds(&given);
    }
}
