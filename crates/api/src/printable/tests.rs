use super::*;

#[test]
fn what_a_terminal_interprets_is_escaped_and_the_rest_is_as_it_was() {
    for (text, shown) in [
        (
            "no control characters: äöü 日本 ",
            "no control characters: äöü 日本 ",
        ),
        ("\u{1b}[2Jcleared", r"\u{1b}[2Jcleared"),
        ("one\r\ntwo", r"one\r\ntwo"),
        ("user\u{202e}nimda", r"user\u{202e}nimda"),
        ("a\tb\0\u{7f}\u{9b}", r"a\tb\u{0}\u{7f}\u{9b}"),
    ] {
        assert_eq!(line(text), shown, "{text:?}");
    }
    assert_eq!(lines("one\ntwo\r\u{1b}"), "one\ntwo\\r\\u{1b}");
}

#[test]
fn a_text_over_its_limit_ends_with_an_ellipsis_and_counts_characters() {
    assert_eq!(bounded("äöü", 3), "äöü");
    assert_eq!(bounded("äöüß", 3), "äö…");
    assert_eq!(bounded("abc", 0), "");
}

#[test]
fn a_message_of_escapes_alone_fits_into_every_schema() {
    let long = message(&"\u{1b}".repeat(60_000));
    assert_eq!(long.chars().count(), MESSAGE_LIMIT);
    assert!(long.ends_with('…'));
    assert!(!long.contains(is_hidden));
}
