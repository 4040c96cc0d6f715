use super::*;

#[test]
fn a_second_process_is_told_who_holds_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let first = DataDir::open(dir.path()).unwrap();
    let error = DataDir::open(dir.path()).unwrap_err().to_string();
    assert!(
        error.contains(&format!("process {}", std::process::id())),
        "{error}"
    );
    let pid = i32::try_from(std::process::id()).unwrap();
    assert_eq!(holder(dir.path()).unwrap(), Some(pid));
    drop(first);
    assert_eq!(holder(dir.path()).unwrap(), None);
    DataDir::open(dir.path()).unwrap();
}

#[test]
fn a_directory_of_a_newer_program_is_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("version"), "2\n").unwrap();
    assert!(matches!(
        DataDir::open(dir.path()),
        Err(DataDirError::Newer { found: 2, .. })
    ));
    assert_eq!(
        fs::read_to_string(dir.path().join("version")).unwrap(),
        "2\n"
    );
    fs::write(dir.path().join("version"), "two\n").unwrap();
    assert!(matches!(
        DataDir::open(dir.path()),
        Err(DataDirError::Damaged { .. })
    ));
}

#[test]
fn files_are_private_and_replaced_whole() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(&dir.path().join("deep/er")).unwrap();
    assert_eq!(data.read("kubeconfig").unwrap(), None);
    data.write("kubeconfig", "one").unwrap();
    data.write("kubeconfig", "two").unwrap();
    assert_eq!(data.read("kubeconfig").unwrap().as_deref(), Some("two"));
    let mode = fs::metadata(data.file("kubeconfig"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    let mode = fs::metadata(dir.path().join("deep/er"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn files_and_directories_of_others_are_refused_and_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "text").unwrap();
    assert!(matches!(
        DataDir::open(&file),
        Err(DataDirError::File { .. })
    ));
    assert!(matches!(
        DataDir::open(dir.path()),
        Err(DataDirError::Foreign { .. })
    ));
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn a_file_that_others_fill_is_private_before_it_is_filled() {
    let dir = tempfile::tempdir().unwrap();
    let data = DataDir::open(&dir.path().join("data")).unwrap();
    fs::write(data.file("old"), "text").unwrap();
    for name in ["new", "old"] {
        data.make_private(name).unwrap();
        let mode = fs::metadata(data.file(name)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    assert_eq!(data.read("old").unwrap().as_deref(), Some("text"));
}

#[test]
fn a_lock_that_is_a_link_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let target = other.path().join("file");
    fs::write(&target, "precious").unwrap();
    std::os::unix::fs::symlink(&target, dir.path().join("lock")).unwrap();
    for error in [
        DataDir::open(dir.path()).map(|_| ()).unwrap_err(),
        holder(dir.path()).map(|_| ()).unwrap_err(),
    ] {
        assert!(matches!(error, DataDirError::Link { .. }), "{error}");
    }
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
}

#[test]
fn a_directory_of_another_user_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    if !rustix::process::geteuid().is_root() {
        skipped::because("not root, who alone gives directories away");
        return;
    }
    std::os::unix::fs::chown(dir.path(), Some(65534), None).unwrap();
    let error = DataDir::open(dir.path()).unwrap_err();
    assert!(
        matches!(error, DataDirError::Stranger { owner: 65534, .. }),
        "{error}"
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}
