//! Tokens that are kept between two calls, and files that cannot be used.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};

use super::{Keystone, granted, variables};
use crate::process::texts;

#[tokio::test(flavor = "multi_thread")]
async fn a_token_is_kept_for_its_owner_until_it_ends_or_is_refused() {
    let keystone = Keystone::start().await;
    let demo = keystone.demo();
    keystone.cloud.reset_requests();
    let all = (0..8).map(|_| keystone.of_another_kubectl(&demo));
    let all = futures::future::join_all(all).await;
    let tokens: Vec<Value> = all
        .iter()
        .map(|output| granted(output)["token"].clone())
        .collect();
    assert!(tokens.iter().all(|token| *token == tokens[0]));
    assert_eq!(keystone.logins(), 1, "eight at once log in once");
    let file = keystone.cache().unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    assert!(!file.display().to_string().contains("secret"));

    // Another user's login has another token.
    let mut admin = demo.clone();
    admin.extend(variables(&[
        ("OS_USERNAME", "admin"),
        ("OS_PROJECT_NAME", "admin"),
    ]));
    let other = granted(&keystone.of_another_kubectl(&admin).await);
    assert_ne!(other["token"], tokens[0]);
    std::fs::remove_dir_all(keystone.home.path().join(".cache")).unwrap();

    // One process that comes twice was refused with the token.
    keystone.cloud.reset_requests();
    let first = keystone.granted(&["--cache"], &demo).await;
    let second = keystone.granted(&["--cache"], &demo).await;
    assert_ne!(first["token"], second["token"]);
    let third = granted(&keystone.of_another_kubectl(&demo).await);
    assert_eq!(third["token"], second["token"]);
    assert_eq!(keystone.logins(), 2);

    // It ends, or the clock was wrong when it came.
    let file = keystone.cache().unwrap();
    let now = jiff::Timestamp::now();
    let in_an_hour = now
        .saturating_add(jiff::SignedDuration::from_hours(1))
        .unwrap();
    for (key, time) in [("renew_at", now), ("got_at", in_an_hour)] {
        let mut entry: Value =
            serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        entry[key] = json!(time.to_string());
        std::fs::write(&file, entry.to_string()).unwrap();
        let before = keystone.logins();
        let again = granted(&keystone.of_another_kubectl(&demo).await);
        assert_ne!(again["token"], entry["token"], "{key}");
        assert_eq!(keystone.logins(), before + 1, "{key}");
    }

    // A token costs nothing, and is not kept.
    let token = third["token"].as_str().unwrap();
    let by_token = variables(&[("OS_AUTH_URL", &keystone.url()), ("OS_TOKEN", token)]);
    std::fs::remove_file(&file).unwrap();
    granted(&keystone.of_another_kubectl(&by_token).await);
    assert_eq!(keystone.cache(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cache_that_cannot_be_used_is_said_and_costs_a_login() {
    let keystone = Keystone::start().await;
    let demo = keystone.demo();
    granted(&keystone.of_another_kubectl(&demo).await);
    let file = keystone.cache().unwrap();
    let kept = std::fs::read_to_string(&file).unwrap();
    let token = |output: &Output| {
        let (out, errors) = texts(output);
        assert_eq!(output.status.code(), Some(0), "{errors}");
        let answer: Value = serde_json::from_str(&out).unwrap();
        (answer["status"]["token"].clone(), errors)
    };
    // What is broken is replaced without a word.
    for broken in ["", "{", "[]", "{\"token\": 1}", "\u{0}"] {
        std::fs::write(&file, broken).unwrap();
        let (_, errors) = token(&keystone.of_another_kubectl(&demo).await);
        assert_eq!(errors, "", "{broken}");
        let entry: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
        assert!(entry["token"].is_string(), "{broken}");
    }
    let set_mode = |mode: u32| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let warned = async |expected: &str| {
        let (_, errors) = token(&keystone.of_another_kubectl(&demo).await);
        assert!(
            errors.starts_with("warning: the token is not kept: "),
            "{errors}"
        );
        assert!(errors.contains(expected), "{errors}");
    };
    set_mode(0o644);
    warned("can be read by other users").await;
    set_mode(0o600);
    if rustix::process::geteuid().is_root() {
        std::fs::write(&file, &kept).unwrap();
        std::os::unix::fs::chown(&file, Some(1), None).unwrap();
        warned("belongs to another user").await;
        assert_eq!(
            std::fs::read_to_string(&file).unwrap(),
            kept,
            "it is left alone"
        );
    }
    std::fs::remove_file(&file).unwrap();
    symlink("/etc/hostname", &file).unwrap();
    warned("is no file").await;
    let directory = file.parent().unwrap().to_owned();
    std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(0o777)).unwrap();
    warned("is not a directory that belongs to this user alone").await;
    let mut nowhere = demo.clone();
    nowhere.insert("XDG_CACHE_HOME", "/proc/nowhere".to_owned());
    let (_, errors) = token(&keystone.of_another_kubectl(&nowhere).await);
    assert!(
        errors.contains("cannot create /proc/nowhere/ferrostack/keystone"),
        "{errors}"
    );
}
