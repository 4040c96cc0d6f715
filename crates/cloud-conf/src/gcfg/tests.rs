use proptest::prelude::*;

use super::{parse, quoted};

/// The values of a file by `section/key`, or its syntax error.
fn read(text: &str) -> Result<Vec<(String, Option<String>)>, String> {
    let document = parse(text).map_err(|error| error.to_string())?;
    let entry = |entry: &super::Entry| {
        let section = match &entry.subsection {
            Some(name) => format!("{} {name}", entry.section),
            None => entry.section.clone(),
        };
        let value = entry.value.as_ref().map(|value| value.to_string());
        (format!("{section}/{}", entry.key), value)
    };
    Ok(document.entries.iter().map(entry).collect())
}

#[test]
fn values_are_read_as_gcfg_reads_them() {
    let cases: &[(&str, &str)] = &[
        ("k = v", "v"),
        ("k=v", "v"),
        ("k =  a b  ", "a b"),
        ("k = a ; comment", "a"),
        ("k = a # comment", "a"),
        ("k = a;b", "a"),
        ("k = \"a ; b # c\"", "a ; b # c"),
        ("k = \"  kept  \"", "  kept  "),
        ("k = \"kept \" ", "kept "),
        ("k = x\"y z\"w", "xy zw"),
        ("k = \"a \\\"quoted\\\" b\"", "a \"quoted\" b"),
        ("k = back\\\\slash", "back\\slash"),
        ("k = \"tab\\tline\\n\"", "tab\tline\n"),
        ("k = one \\\n    two", "one     two"),
        ("k = one\\\r\ntwo", "onetwo"),
        ("k = v\r", "v"),
        ("k =", ""),
        ("k = \"\"", ""),
        ("k = äöü ✓", "äöü ✓"),
        ("k = ]", "]"),
        ("k = a=b", "a=b"),
    ];
    for (line, value) in cases {
        let text = format!("[s]\n{line}\n");
        assert_eq!(
            read(&text),
            Ok(vec![("s/k".to_owned(), Some((*value).to_owned()))]),
            "{line}"
        );
    }
}

#[test]
fn sections_keys_and_comments_are_told_apart() {
    let text = "\u{feff}; first\n# second\n[Global] ; third\nUserName = a\nflag\n\n[LoadBalancerClass \"In\\\"side\"]\n  Subnet-ID=b\n[global]\nx=1";
    let entry = |key: &str, value: Option<&str>| (key.to_owned(), value.map(str::to_owned));
    assert_eq!(
        read(text),
        Ok(vec![
            entry("global/username", Some("a")),
            entry("global/flag", None),
            entry("loadbalancerclass In\"side/subnet-id", Some("b")),
            entry("global/x", Some("1")),
        ])
    );
    let document = parse(text).unwrap();
    let lines: Vec<_> = document.entries.iter().map(|entry| entry.line).collect();
    assert_eq!(lines, [4, 5, 8, 10]);
}

#[test]
fn broken_syntax_is_rejected_with_its_line_and_without_values() {
    let cases = [
        ("k = v", "line 1: a key stands before the first section"),
        ("[", "line 1: the name of a section is missing"),
        ("[]", "line 1: the name of a section is missing"),
        ("[s", "line 1: the header of section `s` does not end"),
        ("[s sub]", "line 1: the header of section `s` does not end"),
        ("[s \"x]", "line 1: the name of a subsection does not end"),
        ("[s \"\\x\"]", "line 1: in the name of a subsection"),
        ("[s] k = v", "line 1: the header of section `s` is followed"),
        ("[s]\n\nk : SECRET", "line 3: `:` cannot follow the key `k`"),
        ("[s]\nk = \"SECRET", "line 2: the quotes of `k` do not end"),
        (
            "[s]\nk = \"SECRET\nx",
            "line 2: the quotes of `k` do not end on their line",
        ),
        ("[s]\nk = SECRET\\q", "line 2: in the value of `k`"),
        ("[s]\nk = SECRET\\", "line 2: in the value of `k`"),
        ("[s]\n= v", "line 2: `=` is neither"),
        ("[s]\n_k = v", "line 2: `_` is neither"),
    ];
    for (text, error) in cases {
        let found = read(text).unwrap_err();
        assert!(found.starts_with(error), "{text:?}: {found}");
        assert!(!found.contains("SECRET"), "{found}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "\\PC*|[\\[\\]\"\\\\;#= \\na-c\\r\\t]*") {
        let _ = parse(&text);
    }

    #[test]
    fn a_quoted_value_is_read_back(value in any::<String>().prop_filter("a line", |v| !v.contains('\r'))) {
        let text = format!("[s]\nk = {}\n", *quoted(&value));
        prop_assert_eq!(read(&text), Ok(vec![("s/k".to_owned(), Some(value))]));
    }
}
