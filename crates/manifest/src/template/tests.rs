use proptest::prelude::*;

use super::*;

fn values(name: &str) -> Option<String> {
    let value = match name {
        "V" => "Hello/World.tar.gz",
        "VERSION" => "v1.30.1",
        "EMPTY" => "",
        "B" => "bee",
        _ => return None,
    };
    Some(value.to_owned())
}

/// The values as the user gives them.
fn given(name: &str) -> Option<Found> {
    let text = values(name)?;
    Some(Found {
        text,
        is_foreign: false,
    })
}

fn render(text: &str) -> String {
    Template::parse(text).unwrap().render(&given).unwrap()
}

#[test]
fn every_form_of_the_template_language() {
    for (template, expected) in [
        ("${V}", "Hello/World.tar.gz"),
        ("${ V }${V }", "Hello/World.tar.gzHello/World.tar.gz"),
        ("a${UNSET:=d}b", "adb"),
        ("${UNSET:-d}${UNSET=d}${UNSET:?d}${UNSET:+d}", "dddd"),
        ("${EMPTY:=d}", "d"),
        ("${B:+d}", "bee"),
        ("${UNSET:=pre-${B}-post}", "pre-bee-post"),
        ("${UNSET:=${ALSO:=x}}y", "xy"),
        ("${#VERSION}", "7"),
        ("${B^}${B^^}", "BeeBEE"),
        ("${V,}${V,,}", "hello/World.tar.gzhello/world.tar.gz"),
        ("${VERSION:1}", "1.30.1"),
        ("${VERSION:1:4}", "1.30"),
        ("${VERSION:-9}", "v1.30.1"),
        ("${VERSION: -1}", "1"),
        ("${VERSION:99}", ""),
        ("${VERSION:x}", "v1.30.1"),
        ("${VERSION#v}", "1.30.1"),
        ("${VERSION%.*}", "v1.30"),
        ("${VERSION%%.*}", "v1"),
        ("${V#*/}", "World.tar.gz"),
        ("${V##*.}", "gz"),
        ("${V/l/L}", "HeLlo/World.tar.gz"),
        ("${V//l/L}", "HeLLo/WorLd.tar.gz"),
        ("${V/#Hello/Bye}", "Bye/World.tar.gz"),
        ("${V/%gz/xz}", "Hello/World.tar.xz"),
        ("${V/\\//-}", "Hello-World.tar.gz"),
        ("$${X} $$ $VAR \\${B}", "${X} $ $VAR \\bee"),
        ("{{ local_hostname }}", "{{ local_hostname }}"),
    ] {
        assert_eq!(render(template), expected, "{template}");
    }
}

#[test]
fn all_missing_variables_are_named_at_once_and_sorted() {
    let template = Template::parse("${Z} ${A} ${WITH:=default} ${B}").unwrap();
    assert_eq!(
        template.render(&given),
        Err(TemplateError::Missing(vec!["A".to_owned(), "Z".to_owned()]))
    );
}

#[test]
fn the_first_place_decides_whether_a_variable_is_required() {
    let template = Template::parse("${A} ${A:=x} ${C:=x} ${C} ${T%.*} ${D:=${INNER}}").unwrap();
    let variables = template.variables();
    assert_eq!(variables["A"], None);
    assert_eq!(variables["C"].as_deref(), Some("x"));
    assert_eq!(variables["T"].as_deref(), Some(".*"));
    assert!(!variables.contains_key("INNER"));
}

#[test]
fn bad_substitutions_are_refused_with_their_line() {
    for (text, problem) in [
        ("a\nb ${}", "the name of a variable must follow `${`"),
        ("a\n${A-x}", "the closing `}` is missing"),
        ("a\n${A+x}", "the closing `}` is missing"),
        ("a\n${A?x}", "the closing `}` is missing"),
        ("a\n${A", "the closing `}` is missing"),
        ("a\n${A:=x", "the closing `}` is missing"),
        ("a\n${A$B}", "the closing `}` is missing"),
    ] {
        match Template::parse(text) {
            Err(TemplateError::Syntax {
                line: 2,
                problem: found,
                ..
            }) => {
                assert_eq!(found, problem, "{text}");
            }
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn nesting_without_end_is_refused() {
    let deep = "${A:=".repeat(100_000);
    assert!(matches!(
        Template::parse(&deep),
        Err(TemplateError::Syntax { .. })
    ));
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused_without_a_panic(text in "[${}A-C:=#%/,^\\\\ é*0-9-]{0,60}") {
        if let Ok(template) = Template::parse(&text) {
            let _ = template.render(&given);
        }
    }

    #[test]
    fn text_without_dollars_is_left_alone(text in "[^$]{0,200}") {
        prop_assert_eq!(render(&text), text);
    }
}

#[test]
fn what_comes_from_a_cloud_is_one_scalar_and_what_the_user_gives_is_text() {
    let rendered = |text: &str, is_foreign: bool| {
        let value = "key\nevil: true".to_owned();
        let found = |_: &str| {
            Some(Found {
                text: value.clone(),
                is_foreign,
            })
        };
        Template::parse(text).unwrap().render(&found)
    };
    let template = "name: ${KEY}\nnames: [\"${KEY:=x}\"]\nz: 1\n";
    assert_eq!(
        rendered(template, true).unwrap(),
        "name: \"key\\nevil: true\"\nnames: [\"key\\nevil: true\"]\nz: 1\n"
    );
    assert_eq!(
        rendered("name: ${KEY}\n", false).unwrap(),
        "name: key\nevil: true\n"
    );
    // The value of a variable inside of a default comes from the cloud, too.
    assert!(rendered("a: 1\nname: x-${KEY}\n", true).is_err());
    let error = rendered("a: 1\nname: x-${KEY}\n", true).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("line 2: the value of KEY from the cloud"),
        "{error}"
    );
}
