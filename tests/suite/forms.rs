//! What no text for users contains: debug forms of Rust, error numbers of the operating system, layers of the HTTP client,
//! and escape sequences where there is no terminal.
//!
//! Whatever a command prints that a test of the suite runs is checked (`process`, `pages`, `terminal`, `generate`).

use api::printable::is_hidden;
use serde_json::Value;

const FORMS: [&str; 16] = [
    "Some(",
    "None,",
    "Ok(",
    "Err(",
    "Error {",
    "Error(",
    "Custom {",
    "(os error",
    "os error 2",
    "client error (",
    "error sending request",
    "ServiceError",
    "HyperError",
    "Elapsed(",
    "\\\"",
    ESCAPE,
];

/// The beginning of an escape sequence.
const ESCAPE: &str = "\u{1b}[";

/// Forms that commands with these words print, each with the reason.
const ALLOWED: [(&str, &str, &str); 2] = [
    (
        "--color always",
        ESCAPE,
        "colors are asked for, though there is no terminal",
    ),
    (
        "-o yaml",
        "\\\"",
        "quotes in the names of managedFields are escaped by the notation",
    ),
];

/// The debug forms in a text.
pub(crate) fn forms(text: &str) -> Vec<&'static str> {
    let found = FORMS.into_iter().filter(|form| text.contains(form));
    found.collect()
}

/// Every string in a JSON value.
pub(crate) fn strings(value: &Value, take: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => take(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, take)),
        Value::Object(fields) => fields.values().for_each(|field| strings(field, take)),
        _ => {}
    }
}

/// The debug forms in an output: of JSON in its strings, since the notation itself escapes quotes.
fn forms_of_output(output: &str) -> Vec<&'static str> {
    let in_strings = |value: &Value| {
        let mut found = Vec::new();
        strings(value, &mut |text| found.extend(forms(text)));
        found
    };
    if let Ok(value) = serde_json::from_str::<Value>(output) {
        return in_strings(&value);
    }
    let lines = output
        .lines()
        .flat_map(|line| match serde_json::from_str::<Value>(line) {
            Ok(value) if line.starts_with('{') => in_strings(&value),
            _ => forms(line),
        });
    lines.collect()
}

/// What a terminal obeys, or displays in another order. Escape sequences are forms.
fn raw(output: &str) -> Option<&'static str> {
    let is_raw = |letter: char| !matches!(letter, '\n' | '\t' | '\u{1b}') && is_hidden(letter);
    output.contains(is_raw).then_some("a raw character")
}

/// The problems of the output of `command`, one a line; nothing if there are none.
fn problems(command: &str, output: &str) -> String {
    let is_allowed = |form: &str| {
        let mut allowed = ALLOWED.iter();
        allowed.any(|(words, known, _)| command.contains(words) && *known == form)
    };
    let mut found = forms_of_output(output);
    found.retain(|form| !is_allowed(form));
    found.extend(raw(output));
    match found.is_empty() {
        true => String::new(),
        false => format!("`{command}` prints {found:?}:\n{output}"),
    }
}

/// Checks the output of `command`.
///
/// # Panics
/// When it has a form that is not allowed.
#[track_caller]
pub(crate) fn check(command: &str, output: &str) {
    let problems = problems(command, output);
    // A second panic would hide the first.
    if !std::thread::panicking() {
        assert!(problems.is_empty(), "{problems}");
    }
}

/// Checks the lines of a log that are not for developers only.
#[track_caller]
pub(crate) fn check_log(command: &str, log: &str) {
    for line in log.lines().filter(|line| !is_for_developers(line)) {
        check(&format!("{command}, log"), line);
    }
}

/// Whether a line of a log is written at a level that is off unless somebody looks for an error of the program.
pub(crate) fn is_for_developers(line: &str) -> bool {
    [" DEBUG ", " TRACE "]
        .iter()
        .any(|level| line.contains(level))
}

/// Checks what a terminal showed, without the escape sequences that it understood.
#[track_caller]
pub(crate) fn check_screen(command: &str, screen: &str) {
    let mut text = String::new();
    let mut rest = screen;
    while let Some((before, after)) = rest.split_once(ESCAPE) {
        text.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic());
        rest = end.and_then(|end| after.get(end + 1..)).unwrap_or_default();
    }
    text.push_str(rest);
    check(command, &text);
}

#[test]
fn a_debug_form_is_found() {
    assert_eq!(forms("the server `a` is ACTIVE (requested: 3)"), [""; 0]);
    for text in [
        "held by Some(\"a\")".to_owned(),
        format!("{:?}", std::io::Error::other("x")),
        std::io::Error::from_raw_os_error(2).to_string(),
        format!("the zone {:?}", "a \"b\""),
        "\u{1b}[31mred\u{1b}[0m".to_owned(),
    ] {
        assert!(!forms(&text).is_empty(), "{text}");
        assert!(!problems("up", &text).is_empty(), "{text}");
    }
}

#[test]
fn a_raw_character_is_found_in_json_too() {
    assert!(!problems("up", "txt\u{202e}exe").is_empty());
    assert!(!problems("up -o json", "{\"a\": \"\u{202e}\"}").is_empty());
    assert_eq!(problems("up -o json", "{\"a\": \"\\u202e\"}"), "");
}

#[test]
fn json_is_read_before_its_strings_are_searched() {
    let quoted = r#"{"message": "the zone \"mars\""}"#;
    assert_eq!(problems("up -o json", quoted), "");
    assert_eq!(problems("up -o json", &format!("{quoted}\n{quoted}")), "");
    let debug = r#"{"message": "zone Some(\"mars\")"}"#;
    assert!(!problems("up -o json", &format!("{quoted}\n{debug}")).is_empty());
}

#[test]
fn what_is_allowed_for_a_command_is_not_for_others() {
    let red = "\u{1b}[31mred\u{1b}[0m";
    assert_eq!(problems("describe cluster --color always", red), "");
    assert!(!problems("describe cluster", red).is_empty());
    check_screen("up", red);
}

/// Files that start programs by themselves, each with the call that checks what these print.
const CHECKED: [(&str, &str); 10] = [
    ("completion.rs", "forms::check("),
    ("generate.rs", "forms::check_screen("),
    ("keystone_login.rs", "Checked::of("),
    ("keystone_login/terminal.rs", "forms::check("),
    ("keystone_webhook.rs", "Checked::of("),
    ("pages.rs", "forms::check("),
    ("process.rs", "forms::check("),
    // A log of all levels, which no user reads as a text: only secrets are sought in it.
    ("proxies.rs", "is in the log"),
    // Manifests, which are applied afterwards.
    ("templates.rs", "let is_old = |line"),
    ("terminal.rs", "forms::check("),
];

#[test]
fn every_command_is_started_where_its_output_is_checked() {
    let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/suite");
    let below = |directory: &std::path::Path| {
        let entries = std::fs::read_dir(directory).unwrap();
        let paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths
    };
    let (directories, mut files): (Vec<_>, Vec<_>) = below(&directory)
        .into_iter()
        .partition(|path| path.is_dir());
    files.extend(directories.iter().flat_map(|directory| below(directory)));
    let mut seen = 0;
    for path in files {
        let name = path.strip_prefix(&directory).unwrap();
        let name = name.to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).unwrap();
        let starts = |line: &str| line.contains("Command::new(") && !line.contains("Checked::of(");
        if name == "forms.rs" || !text.lines().any(starts) {
            continue;
        }
        let check = CHECKED.iter().find(|(file, _)| *file == name);
        let (_, check) = check.unwrap_or_else(|| panic!("{name} starts a program"));
        assert!(text.contains(check), "{name}: {check}");
        seen += 1;
    }
    assert_eq!(seen, CHECKED.len());
}
