use proptest::prelude::*;

use super::{problem, summary};

/// The messages of `json.Unmarshal` in Go 1.24.
#[test]
fn syntax_errors_have_the_messages_of_go() {
    for (text, words) in [
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        ("{\"a\"", "unexpected end of JSON input"),
        ("tru", "unexpected end of JSON input"),
        ("-", "unexpected end of JSON input"),
        ("x", "invalid character 'x' looking for beginning of value"),
        (
            "{\"a\":}",
            "invalid character '}' looking for beginning of value",
        ),
        (
            "{a",
            "invalid character 'a' looking for beginning of object key string",
        ),
        (
            "{\"a\":1,}",
            "invalid character '}' looking for beginning of object key string",
        ),
        ("{\"a\" 1", "invalid character '1' after object key"),
        (
            "{\"a\":1 \"",
            "invalid character '\"' after object key:value pair",
        ),
        ("[1 2", "invalid character '2' after array element"),
        ("{} x", "invalid character 'x' after top-level value"),
        ("\"\n", "invalid character '\\n' in string literal"),
        ("\"\\q", "invalid character 'q' in string escape code"),
        (
            "\"\\u00g",
            "invalid character 'g' in \\u hexadecimal character escape",
        ),
        ("-a", "invalid character 'a' in numeric literal"),
        (
            "1.a",
            "invalid character 'a' after decimal point in numeric literal",
        ),
        (
            "1ea",
            "invalid character 'a' in exponent of numeric literal",
        ),
        ("01", "invalid character '1' after top-level value"),
        (
            "nulk",
            "invalid character 'k' in literal null (expecting 'l')",
        ),
        (
            "'",
            "invalid character '\\'' looking for beginning of value",
        ),
    ] {
        assert_eq!(problem(text.as_bytes()).as_deref(), Some(words), "{text}");
    }
    let byte = problem(&[0x9e]);
    assert_eq!(
        byte.as_deref(),
        Some("invalid character '\\u009e' looking for beginning of value")
    );
}

#[test]
fn documents_that_look_like_json_are_printed_as_text_and_others_in_hexadecimal() {
    assert_eq!(summary(b""), "<empty>");
    assert_eq!(summary(b"{\"a\":}"), "{\"a\":}");
    assert_eq!(summary(b"[]"), "5b5d");
    assert_eq!(summary(&[b'{'; 31]), format!("{} ...", "{".repeat(30)));
}

proptest! {
    #[test]
    fn exactly_the_documents_that_are_not_json_have_errors(text in "[\\[\\]{}:,\"\\\\ a-f0-9eE+.tru-]{0,12}") {
        let valid = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
        // Go accepts a lone surrogate.
        prop_assume!(!text.contains("\\u"));
        prop_assert_eq!(problem(text.as_bytes()).is_none(), valid, "{}", text);
    }
}
