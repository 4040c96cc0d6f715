use super::refusal;

#[test]
fn failed_answers_have_the_messages_of_client_go() {
    for (code, body, words) in [
        (404, "", "the server could not find the requested resource"),
        (
            500,
            " broken\n",
            "an error on the server (\"broken\") has prevented the request from succeeding",
        ),
        (
            500,
            "",
            "an error on the server (\"unknown\") has prevented the request from succeeding",
        ),
        (403, "not you", "not you"),
        (
            418,
            "tea",
            "the server responded with the status code 418 but did not return more information",
        ),
        (400, r#"{"kind":"Status","message":"so"}"#, "so"),
    ] {
        assert_eq!(refusal(code, body.as_bytes()), words, "{code} {body}");
    }
}
