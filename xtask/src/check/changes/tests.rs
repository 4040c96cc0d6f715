use std::fs;

use tempfile::TempDir;

use super::*;

#[test]
fn changes_are_those_since_the_branches_parted_and_what_is_not_committed() {
    let repository = repository();
    let root = repository.path();
    let here = |arguments: &[&str]| git(root, arguments).unwrap();
    here(&["checkout", "-q", "-b", "work"]);
    fs::rename(root.join("old"), root.join("new")).unwrap();
    here(&["add", "-A"]);
    here(&["commit", "-qm", "renamed"]);
    // Later commits of the main branch are no changes of ours.
    here(&["checkout", "-q", "main"]);
    fs::write(root.join("theirs"), "").unwrap();
    here(&["add", "-A"]);
    here(&["commit", "-qm", "theirs"]);
    here(&["checkout", "-q", "work"]);
    fs::write(root.join("kept"), "changed").unwrap();
    fs::write(root.join("unknown"), "").unwrap();
    fs::write(root.join("ignored"), "").unwrap();
    fs::write(root.join("staged"), "").unwrap();
    here(&["add", "staged"]);

    let base = base(root, None).unwrap();
    let changed = since(root, &base).unwrap();
    assert_eq!(changed, ["kept", "new", "old", "staged", "unknown"]);
    let changed = since(root, "HEAD").unwrap();
    assert_eq!(changed, ["kept", "staged", "unknown"]);
}

#[test]
fn a_reference_that_is_none_is_named() {
    let repository = repository();
    let error = base(repository.path(), Some("nowhere")).unwrap_err();
    assert!(error.to_string().contains("--since nowhere"), "{error:#}");
    git(repository.path(), &["branch", "-qm", "other"]).unwrap();
    let error = base(repository.path(), None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no origin/main and no main: say --since REF"
    );
}

/// A repository with the files `old` and `kept` on its branch `main`.
fn repository() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    git(root, &["init", "-q", "-b", "main"]).unwrap();
    git(root, &["config", "user.name", "x"]).unwrap();
    git(root, &["config", "user.email", "x@example.com"]).unwrap();
    for (name, content) in [
        ("old", "old"),
        ("kept", "kept"),
        (".gitignore", "ignored\n"),
    ] {
        fs::write(root.join(name), content).unwrap();
    }
    git(root, &["add", "-A"]).unwrap();
    git(root, &["commit", "-qm", "first"]).unwrap();
    folder
}
