use std::cell::Cell;

use super::super::json;

thread_local! {
    pub(super) static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// The number of bytes that are copied or hashed while a body is decoded, and the duplicates.
fn decoded(body: &str) -> (usize, Vec<String>) {
    STEPS.set(0);
    let decoded = json(body.as_bytes()).expect("JSON");
    (STEPS.get(), decoded.duplicates)
}

/// Bodies of a given size that are expensive for a decoder which copies paths or compares each duplicate with all
/// others.
fn bodies(size: usize) -> Vec<(&'static str, String)> {
    let each = |count: usize, item: &dyn Fn(usize) -> String| {
        (0..count).map(item).collect::<Vec<_>>().join(",")
    };
    let long = "k".repeat(size / 2);
    let below = |inner: String| format!(r#"{{"{long}":{inner}}}"#);
    vec![
        (
            "items below a long key",
            below(format!("[{}]", each(size / 4, &|_| "1".to_owned()))),
        ),
        (
            "fields below a long key",
            below(format!(
                "{{{}}}",
                each(size / 20, &|n| format!(r#""{n}":1"#))
            )),
        ),
        (
            "duplicates below a long key",
            below(format!(
                "{{{}}}",
                each(size / 10, &|_| r#""a":1"#.to_owned())
            )),
        ),
        (
            "duplicates in duplicates below a long key",
            below(format!(
                "{{{}}}",
                each(size / 40, &|_| r#""a":{"b":1,"b":2}"#.to_owned())
            )),
        ),
        (
            "duplicates in items below a long key",
            below(format!(
                "[{}]",
                each(size / 40, &|_| r#"{"b":1,"b":2}"#.to_owned())
            )),
        ),
        (
            "many different duplicates",
            format!(
                "{{{}}}",
                each(size / 20, &|n| format!(r#""{n}":1,"{n}":2"#))
            ),
        ),
        (
            "deep long keys",
            (0..100).fold("{}".to_owned(), |inner, _| {
                format!(r#"{{"{0}":1,"{0}":{inner}}}"#, "k".repeat(size / 200))
            }),
        ),
    ]
}

#[test]
fn the_cost_of_decoding_is_linear_in_the_length_of_any_body() {
    let size = 1 << 17;
    for ((name, body), (_, twice)) in bodies(size).into_iter().zip(bodies(2 * size)) {
        let (steps, _) = decoded(&body);
        let (more, duplicates) = decoded(&twice);
        // Each of the hundred reports may be as long as the body.
        let most = 2 * twice.len() + super::MAX_REPORTED * twice.len();
        assert!(
            more <= most,
            "{name}: {more} steps for {} bytes",
            twice.len()
        );
        assert!(
            more <= 3 * steps.max(1024),
            "{name}: {steps}, then {more} steps"
        );
        assert!(duplicates.len() <= super::MAX_REPORTED, "{name}");
    }
}

#[test]
fn each_field_found_twice_is_reported_once_by_its_path() {
    let body = r#"{"a":1,"a":2,"a":3,"b":[{"c":{},"c":{}},{"c":1}],"d":{"e":1,"e":2},"d":{"e":1,"e":2},"f.g":1,"f":{"g":1}}"#;
    assert_eq!(decoded(body).1, ["a", "b[0].c", "d.e", "d"]);
}
