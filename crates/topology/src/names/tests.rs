use serde_json::json;

use super::{of_template, suffix};

#[test]
fn names_depend_on_the_cluster_and_the_content_alone() {
    let template = |size: i32| json!({ "metadata": { "name": "x" }, "spec": { "template": { "spec": { "size": size } } } });
    let name = of_template("demo-md-0", "uid-1", &template(1));
    assert_eq!(name, of_template("demo-md-0", "uid-1", &template(1)));
    assert!(
        name.starts_with("demo-md-0-") && name.len() == "demo-md-0-".len() + 5,
        "{name}"
    );
    for other in [
        of_template("demo-md-0", "uid-1", &template(2)),
        of_template("demo-md-0", "uid-2", &template(1)),
        of_template("demo-md-1", "uid-1", &template(1)),
    ] {
        assert_ne!(name, other);
    }
    let long = of_template(&"a".repeat(80), "uid-1", &template(1));
    assert_eq!(long.len(), 63);
    assert_ne!(suffix(&["a", "b"]), suffix(&["ab", ""]));
}
