use std::fs::Permissions;
use std::os::unix::fs::symlink;

use tempfile::TempDir;

use super::*;

#[test]
fn a_hash_depends_on_names_contents_modes_links_and_the_command() {
    let repository = Repository::new();
    let first = repository.hash("run");
    assert_eq!(first.len(), 2 * LENGTH);
    assert_eq!(repository.hash("run"), first, "nothing has changed");
    assert_ne!(repository.hash("run more"), first, "another command");

    let at = |name: &str| repository.0.path().join(name);
    let changes: [(&str, Act<'_>, Act<'_>); 6] = [
        ("content", &|| repository.write("a/one", "two"), &|| {
            repository.write("a/one", "one")
        }),
        (
            "a new file, not committed",
            &|| repository.write("a/new", ""),
            &|| fs::remove_file(at("a/new")).unwrap(),
        ),
        (
            "another name",
            &|| fs::rename(at("a/one"), at("a/other")).unwrap(),
            &|| fs::rename(at("a/other"), at("a/one")).unwrap(),
        ),
        (
            "permission to execute",
            &|| fs::set_permissions(at("a/one"), Permissions::from_mode(0o755)).unwrap(),
            &|| fs::set_permissions(at("a/one"), Permissions::from_mode(0o644)).unwrap(),
        ),
        (
            "where a link leads",
            &|| {
                fs::remove_file(at("a/link")).unwrap();
                symlink("elsewhere", at("a/link")).unwrap();
            },
            &|| {
                fs::remove_file(at("a/link")).unwrap();
                symlink("one", at("a/link")).unwrap();
            },
        ),
        (
            "a file that is named itself",
            &|| repository.write("single", "2"),
            &|| repository.write("single", "1"),
        ),
    ];
    for (what, change, undo) in changes {
        change();
        assert_ne!(repository.hash("run"), first, "{what}");
        undo();
        assert_eq!(repository.hash("run"), first, "{what}, undone");
    }
    repository.write("b", "not named");
    repository.write("ab", "begins alike");
    repository.write("a/ignored", "by git");
    assert_eq!(repository.hash("run"), first, "nothing named has changed");
}

#[test]
fn another_clone_of_the_same_content_has_the_same_hash() {
    let clones = [Repository::new(), Repository::new()];
    let [one, other] = clones.each_ref().map(|clone| {
        let mut digests = Digests::from_root(clone.0.path()).unwrap();
        let here = clone.0.path().display().to_string();
        // Value of such a variable in each of the clones.
        digests.settings = vec![("FERROSTACK_X".to_owned(), here.replace(&here, "."))];
        digests.inputs(&["a"].into(), "run").unwrap()
    });
    assert_eq!(one, other);
}

#[test]
fn a_setting_of_the_tests_is_an_input() {
    let repository = Repository::new();
    let mut digests = Digests::from_root(repository.0.path()).unwrap();
    digests.settings = Vec::new();
    let without = digests.inputs(&["a"].into(), "run").unwrap();
    digests.settings = vec![("FERROSTACK_PATIENCE".to_owned(), "3".to_owned())];
    assert_ne!(digests.inputs(&["a"].into(), "run").unwrap(), without);
}

#[test]
fn a_path_without_a_file_is_an_error() {
    let repository = Repository::new();
    let mut digests = Digests::from_root(repository.0.path()).unwrap();
    let error = digests.inputs(&["a", "gone"].into(), "run").unwrap_err();
    assert_eq!(
        error.to_string(),
        "gone, on which a step depends, has no file"
    );
}

/// Something that is done to a repository.
type Act<'a> = &'a dyn Fn();

/// A repository with a directory `a`, a file `single`, and a file that git ignores.
struct Repository(TempDir);

impl Repository {
    fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        fs::create_dir(repository.0.path().join("a")).unwrap();
        repository.write("a/one", "one");
        repository.write("single", "1");
        symlink("one", repository.0.path().join("a/link")).unwrap();
        repository.write(".gitignore", "ignored\n");
        for arguments in [&["init", "-q"] as &[&str], &["add", "-A"]] {
            let git = Command::new("git")
                .args(arguments)
                .current_dir(&repository.0)
                .status();
            assert!(git.unwrap().success());
        }
        repository
    }

    fn write(&self, name: &str, content: &str) {
        fs::write(self.0.path().join(name), content).unwrap();
    }

    fn hash(&self, command: &str) -> String {
        let mut digests = Digests::from_root(self.0.path()).unwrap();
        digests.inputs(&["a", "single"].into(), command).unwrap()
    }
}
