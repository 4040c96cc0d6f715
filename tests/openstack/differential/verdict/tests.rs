use super::*;

#[test]
fn a_star_stands_for_any_text() {
    assert!(matches("GET network *", "GET network /v2.0/ports"));
    assert!(matches("*/tags", "/ports[]/tags"));
    assert!(matches("a*c*e", "abcde"));
    assert!(!matches("GET network *", "GET compute /v2.1/servers"));
    assert!(!matches("/a", "/a/b"));
}

#[test]
fn a_poll_may_miss_a_state_but_not_see_another_order() {
    let all = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    assert!(agree(&all("BUILD ACTIVE"), &all("BUILD BUILDING ACTIVE")));
    assert!(agree(&all("reserved in-use"), &all("attaching in-use")));
    assert!(!agree(&all("b a end"), &all("a b end")));
    assert!(!agree(&all("BUILD ACTIVE"), &all("BUILD ERROR")));
}

#[test]
fn accepted_differences_are_read_from_the_documents_table() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = "## Accepted differences\n\n| request | where | reason |\n|---|---|---|\n| `GET network *` | `/a/*` | so |\n| `PUT network *` | `/b` | by chance: a moment |\n\n## Next\n| `x` | `y` | z |\n";
    std::fs::write(file.path(), text).unwrap();
    let found = accepted(file.path(), "## Accepted differences");
    assert_eq!(found.len(), 2);
    assert!(!found[0].by_chance && found[1].by_chance);
    assert_eq!(
        (found[0].request.as_str(), found[0].at.as_str()),
        ("GET network *", "/a/*")
    );
}
