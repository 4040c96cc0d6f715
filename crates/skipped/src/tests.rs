use super::*;

#[test]
fn a_skipped_test_leaves_a_line_with_its_binary_name_and_reason() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("debug/deps/suite-0a1b2c3d");
    for why in ["no kubectl", "no\nroot"] {
        let line = line(&program, Some("pods::logs"), &why);
        append(&file(&program), &line).unwrap();
    }
    let text = std::fs::read_to_string(directory.path().join(FILE)).unwrap();
    assert_eq!(
        text,
        "suite: pods::logs: no kubectl\nsuite: pods::logs: no root\n"
    );
}

#[test]
fn the_file_is_in_the_target_directory_of_the_running_binary() {
    let program = std::env::current_exe().unwrap();
    let target = file(&program);
    assert!(program.starts_with(target.parent().unwrap()));
    assert!(target.parent().unwrap().join("CACHEDIR.TAG").exists());
}
