use super::*;

/// As cargo 1.95 writes them, without what is not read.
const MESSAGES: &str = r#"
{"reason":"compiler-artifact","package_id":"registry+https://github.com/rust-lang/crates.io-index#a@1.0.0","manifest_path":"/registry/a/Cargo.toml","target":{"kind":["lib"],"crate_types":["lib"],"name":"a"},"profile":{"test":false},"filenames":["/t/liba.rlib"],"executable":null,"fresh":true}
{"reason":"build-script-executed","package_id":"registry+https://github.com/rust-lang/crates.io-index#a@1.0.0","linked_libs":[]}
{"reason":"compiler-artifact","manifest_path":"/root/crates/api/Cargo.toml","target":{"kind":["lib"],"name":"api"},"profile":{"test":false},"executable":null}
{"reason":"compiler-artifact","manifest_path":"/root/crates/api/Cargo.toml","target":{"kind":["lib"],"name":"api"},"profile":{"test":true},"executable":"/t/api-1"}
{"reason":"compiler-artifact","manifest_path":"/root/crates/ferrostack/Cargo.toml","target":{"kind":["test"],"name":"suite"},"profile":{"test":true},"executable":"/t/suite-2"}
{"reason":"compiler-artifact","manifest_path":"/root/xtask/Cargo.toml","target":{"kind":["bin"],"name":"xtask"},"profile":{"test":true},"executable":"/t/xtask-3"}
{"reason":"compiler-artifact","manifest_path":"/root/xtask/Cargo.toml","target":{"kind":["bin"],"name":"xtask"},"profile":{"test":false},"executable":"/t/xtask"}
not a message
{"reason":"build-finished","success":true}
"#;

#[test]
fn test_programs_are_found_in_the_messages_of_cargo() {
    let found = parse(Path::new("/root"), MESSAGES).unwrap();
    let executable = |folder: &str, target, path: &str| Executable {
        folder: folder.to_owned(),
        target,
        path: path.into(),
    };
    let expected = [
        executable("crates/api", Target::Units("api".to_owned()), "/t/api-1"),
        executable(
            "crates/ferrostack",
            Target::Tests("suite".to_owned()),
            "/t/suite-2",
        ),
        executable("xtask", Target::Units("xtask".to_owned()), "/t/xtask-3"),
    ];
    assert_eq!(found, expected);
    assert_eq!(xtask(MESSAGES).unwrap(), "/t/xtask");
}
