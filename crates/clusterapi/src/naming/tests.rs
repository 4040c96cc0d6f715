use super::*;

#[test]
fn generated_names_fit_into_a_label_value() {
    assert_eq!(with_suffix("demo-md-0", "x2b4c"), "demo-md-0-x2b4c");
    let long = with_suffix(&"a".repeat(80), "x2b4c");
    assert_eq!(long.len(), 63);
    assert!(long.ends_with("a-x2b4c"));
    assert_eq!(
        with_suffix(&format!("{}-", "a".repeat(56)), "x2b4c"),
        format!("{}-x2b4c", "a".repeat(56))
    );
}

#[test]
fn suffixes_have_five_characters_of_the_safe_alphabet() {
    for _ in 0..100 {
        let suffix = suffix();
        assert_eq!(suffix.len(), 5);
        assert!(suffix.bytes().all(|byte| ALPHABET.contains(&byte)));
    }
}

#[test]
fn derived_suffixes_follow_from_each_of_their_parts() {
    let suffix = derived(&["a", "bc"]);
    assert_eq!(suffix, derived(&["a", "bc"]));
    assert_eq!(suffix.len(), 8);
    assert!(suffix.bytes().all(|byte| ALPHABET.contains(&byte)));
    for other in [["ab", "c"], ["", "abc"], ["a", "bd"]] {
        assert_ne!(suffix, derived(&other));
    }
}

#[test]
fn naming_templates_know_three_values_and_need_the_random_one() {
    let values = [
        (".cluster.name", "demo"),
        (".machineSet.name", "md"),
        (".random", "x2b4c"),
    ];
    let cases = [
        ("{{ .machineSet.name }}-{{ .random }}", Some("md-x2b4c")),
        ("{{.cluster.name}}-w-{{ .random }}", Some("demo-w-x2b4c")),
        ("{{ .machineSet.name }}", None),
        ("{{ .machineSet.name | trunc 3 }}-{{ .random }}", None),
        ("{{ .random", None),
    ];
    for (template, expected) in cases {
        assert_eq!(render(template, &values).as_deref(), expected, "{template}");
    }
}
