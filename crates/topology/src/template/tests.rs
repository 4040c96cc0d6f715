use proptest::prelude::*;
use serde::Deserialize;
use serde_json::json;

use super::{Template, Value};

/// Output of Go 1.25's text/template with the functions of sprig 3.3 (`HermeticTxtFuncMap`), recorded.
#[derive(Deserialize)]
struct Recorded {
    data: serde_json::Value,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    template: String,
    prints: Option<String>,
}

fn render(template: &str, data: &serde_json::Value) -> Result<String, String> {
    let template = Template::parse(template).map_err(|error| error.to_string())?;
    let rendered = template.render(&Value::from(data));
    rendered.map_err(|error| error.to_string())
}

#[test]
fn templates_print_what_go_prints_and_fail_where_go_fails() {
    let Recorded { data, rows } = serde_json::from_str(include_str!("testdata/go.json")).unwrap();
    assert!(rows.len() > 100);
    let mut wrong = Vec::new();
    for Row { template, prints } in rows {
        let ours = render(&template, &data);
        if ours.as_ref().ok() != prints.as_ref() {
            wrong.push(format!("{template}\n  ours {ours:?}\n  Go's {prints:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn errors_name_the_line_and_what_is_wrong() {
    let cases = [
        (
            "a\n{{ nosuch 1 }}",
            "line 2: function \"nosuch\" is not defined here",
        ),
        ("{{ .a", "line 1: an action has no }}"),
        ("\n\n{{ if .a }}", "line 3: a block has no end"),
        (
            "{{ template \"x\" }}",
            "line 1: template is not one of the actions that are known here",
        ),
        (
            "{{ eq .n 1 }}",
            "line 1: eq: incompatible types for comparison: float64 and int (numbers of variables are float64: convert with int)",
        ),
        ("x\n{{ fail \"set a\" }}", "line 2: fail: set a"),
        (
            "{{ b64dec \"!\" }}",
            "line 1: b64dec: Invalid symbol 33, offset 0.",
        ),
        (
            "{{ regexMatch \"(\" \"a\" }}",
            "line 1: regexMatch: `(` is not a regular expression",
        ),
    ];
    for (template, error) in cases {
        assert_eq!(
            render(template, &json!({"n": 1})).unwrap_err(),
            error,
            "{template}"
        );
    }
}

/// No template takes long or produces much, whatever its content.
#[test]
fn templates_are_bounded() {
    let doubling = "{{ $x := \"aaaaaaaaaaaaaaaa\" }}{{ range until 60 }}{{ $x = print $x $x }}{{ end }}{{ $x }}";
    let nesting = "{{ $x := list 1 }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}{{ $x }}";
    let looping = "{{ range until 60000 }}{{ range until 60000 }}{{ add 1 1 }}{{ end }}{{ end }}";
    let printing = "{{ $x := repeat 60000 \"0123456789\" }}{{ range until 1000 }}{{ $x }}{{ end }}";
    let wide = "{{ printf \"%1000000000d\" 1 }}";
    let long = "{{ until 1000000000 }}{{ repeat 1000000000 \"abc\" }}";
    let deep = format!(
        "{}.a{}",
        "{{ ".to_owned() + &"(".repeat(10_000),
        ")".repeat(10_000) + " }}"
    );
    let blocks = "{{ if .a }}".repeat(10_000);
    for template in [
        doubling, nesting, looping, printing, wide, long, &deep, &blocks,
    ] {
        assert!(render(template, &json!({})).is_err(), "{:.60}", template);
    }
}

fn piece() -> impl Strategy<Value = String> {
    let words = [
        "{{", "}}", "{{-", "-}}", " ", "\n", ".", ".a", ".l", "$", "$x", ":=", "=", "|", "(", ")",
        ",", "\"", "`", "'", "if ", "else", "end", "range ", "with ", "break", "printf ",
        "\"%5v\" ", "index ", "1", "2.5", "-3", "nil", "list ", "dict ", "eq ", "and ", "/*", "*/",
        "text", "ä", "semver ", "\"v1.2\"", "default ", "quote ", "%",
    ];
    prop_oneof![
        8 => proptest::sample::select(words.to_vec()).prop_map(str::to_owned),
        1 => "[ -~]{0,5}",
    ]
}

proptest! {
    #[test]
    fn no_text_makes_the_interpreter_panic(pieces in prop::collection::vec(piece(), 0..40)) {
        let text = pieces.concat();
        let _ = render(&text, &json!({"a": {"b": 1}, "l": [1, "x", null]}));
    }

    #[test]
    fn text_without_actions_is_printed_as_it_is(text in "[^{]{0,80}") {
        prop_assert_eq!(render(&text, &json!({})), Ok(text));
    }

    #[test]
    fn quoted_text_is_what_it_was(text in any::<String>()) {
        let literal = serde_json::to_string(&text).unwrap();
        // serde_json writes only escapes that Go has, except for control characters.
        prop_assume!(!literal.contains("\\u00"));
        let template = format!("{{{{ {literal} }}}}");
        prop_assert_eq!(render(&template, &json!({})), Ok(text));
    }
}
