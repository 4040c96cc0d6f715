//! The tables in docs/cloud-controller-manager.md match the code.

use ccm::cloud_conf::{KEYS, Support};

const PAGE: &str = include_str!("../../../docs/cloud-controller-manager.md");

fn keys() -> String {
    let mut table =
        String::from("| section | key | default | meaning | |\n|---|---|---|---|---|\n");
    for key in KEYS {
        let built = match key.support {
            Support::Served => String::new(),
            Support::Rejected(reason) => format!("rejected: {reason}"),
            Support::NoEffect(reason) => format!("warning: {reason}"),
            Support::Elsewhere(component) => format!("for {component}"),
        };
        let default = if key.default.is_empty() {
            String::new()
        } else {
            format!("`{}`", key.default)
        };
        table.push_str(&format!(
            "| {} | `{}` | {default} | {} | {built} |\n",
            key.section.name(),
            key.name,
            key.meaning
        ));
    }
    table
}

fn annotations() -> String {
    let mut table = String::from("| annotation | meaning |\n|---|---|\n");
    for annotation in ccm::ANNOTATIONS {
        table.push_str(&format!(
            "| `{}` | {} |\n",
            annotation.name, annotation.meaning
        ));
    }
    table
}

#[test]
fn the_page_has_every_key_and_annotation_as_the_code_has_them() {
    for table in [keys(), annotations()] {
        assert!(
            PAGE.contains(&table),
            "docs/cloud-controller-manager.md lacks this table:\n{table}"
        );
    }
}
