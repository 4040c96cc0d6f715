use super::*;

/// A workspace like this one: a chain of crates, one that tests alone use, and the programs.
const METADATA: &str = r#"{"packages": [
{"manifest_path": "/root/crates/api/Cargo.toml", "dependencies": []},
{"manifest_path": "/root/crates/apiserver/Cargo.toml", "dependencies": [{"name": "x", "kind": null}]},
{"manifest_path": "/root/crates/openstack/Cargo.toml", "dependencies": [{"kind": "dev", "path": "/root/crates/skipped"}]},
{"manifest_path": "/root/crates/skipped/Cargo.toml", "dependencies": []},
{"manifest_path": "/root/crates/testbed/Cargo.toml", "dependencies": [{"kind": null, "path": "/root/crates/apiserver"}]},
{"manifest_path": "/root/crates/provider/Cargo.toml", "dependencies": [
    {"kind": null, "path": "/root/crates/api"}, {"kind": null, "path": "/root/crates/openstack"}, {"kind": "dev", "path": "/root/crates/testbed"}]},
{"manifest_path": "/root/crates/simulator/Cargo.toml", "dependencies": [{"kind": null, "path": "/root/crates/apiserver"}]},
{"manifest_path": "/root/crates/ferrostack/Cargo.toml", "dependencies": [
    {"kind": null, "path": "/root/crates/provider"}, {"kind": null, "path": "/root/crates/simulator"}]},
{"manifest_path": "/root/xtask/Cargo.toml", "dependencies": [{"kind": null, "path": "/root/crates/api"}]}
]}"#;

#[test]
fn tests_are_those_of_what_changed_and_of_its_users() {
    let packages = parse(Path::new("/root"), METADATA).unwrap();
    for (changed, expected) in [
        (&[] as &[&str], &[] as &[&str]),
        (
            &["crates/openstack/src/lib.rs"],
            &[
                "unit tests of crates/ferrostack: uses crates/provider",
                "all tests of crates/openstack: crates/openstack/src/lib.rs changed",
                "unit tests of crates/provider: uses crates/openstack",
            ],
        ),
        // The tests of provider use testbed, and what uses provider does not contain it.
        (
            &["crates/testbed/src/lib.rs"],
            &[
                "unit tests of crates/provider: uses crates/testbed in tests",
                "all tests of crates/testbed: crates/testbed/src/lib.rs changed",
            ],
        ),
        (
            &["crates/simulator/src/cloud.rs"],
            &[
                "unit tests of crates/ferrostack: uses crates/simulator",
                "all tests of crates/simulator: crates/simulator/src/cloud.rs changed",
                "openstack_differential of crates/ferrostack: crates/simulator/src/cloud.rs changed",
            ],
        ),
        (
            &["crates/ferrostack/src/main.rs"],
            &[
                "unit tests of crates/ferrostack: crates/ferrostack/src/main.rs changed",
                "suite main_job:: of crates/ferrostack: crates/ferrostack changed",
            ],
        ),
        (
            &[
                "tests/suite/kill.rs",
                "tests/suite/process.rs",
                "docs/guides/move.md",
            ],
            &["suite kill:: main_job:: pages:: of crates/ferrostack: tests/suite/kill.rs changed"],
        ),
        (
            &["docs/project/simulator.md"],
            &[
                "openstack_differential of crates/ferrostack: docs/project/simulator.md changed",
                "suite pages:: of crates/ferrostack: docs/project/simulator.md changed",
            ],
        ),
        (
            &["README.md"],
            &["suite pages:: of crates/ferrostack: README.md changed"],
        ),
        (
            &["tests/openstack/up", "tests/openstack/scenario/a.yaml"],
            &[
                "openstack_differential of crates/ferrostack: tests/openstack/scenario/a.yaml changed",
                "suite pages:: of crates/ferrostack: tests/openstack/up changed",
            ],
        ),
        (
            &["config/templates/a.yaml"],
            &[
                "all tests of crates/api: config/templates/a.yaml changed",
                "unit tests of crates/ferrostack: uses crates/provider",
                "unit tests of crates/provider: uses crates/api",
                "unit tests of xtask: uses crates/api",
            ],
        ),
        (&[".ci/run"], &["all tests of xtask: .ci/run changed"]),
        (
            &["fuzz/seeds/a"],
            &[
                "corpora of crates/apimachinery: fuzz/seeds/a changed",
                "corpora of crates/apiserver: fuzz/seeds/a changed",
                "corpora of crates/cloud-conf: fuzz/seeds/a changed",
                "corpora of crates/csi-node: fuzz/seeds/a changed",
                "corpora of crates/keystone-auth: fuzz/seeds/a changed",
                "corpora of crates/openstack: fuzz/seeds/a changed",
                "corpora of crates/simulator: fuzz/seeds/a changed",
            ],
        ),
        (
            &["CHANGELOG.md", "docs/adr/0001.md"],
            &["no tests: CHANGELOG.md", "no tests: docs/adr/0001.md"],
        ),
    ] {
        let names: Vec<String> = changed.iter().map(|&name| name.to_owned()).collect();
        let text = select(&packages, &names, false).to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines, expected, "{changed:?}");
    }
}

#[test]
fn a_change_of_the_manifests_or_of_the_toolchain_is_one_of_every_crate() {
    let packages = parse(Path::new("/root"), METADATA).unwrap();
    for name in [
        "Cargo.toml",
        "Cargo.lock",
        "rust-toolchain.toml",
        ".cargo/config.toml",
    ] {
        let selection = select(&packages, &[name.to_owned()], false);
        assert_eq!(selection.packages.len(), packages.len(), "{name}");
        let all = selection
            .packages
            .values()
            .all(|(part, _)| *part == Part::All);
        assert!(all, "{name}");
    }
}

#[test]
fn programs_are_those_of_the_selection_and_those_of_what_changed_come_first() {
    let packages = parse(Path::new("/root"), METADATA).unwrap();
    let units = |folder: &str| Executable {
        folder: format!("crates/{folder}"),
        target: Target::Units(folder.to_owned()),
        path: format!("/t/{folder}").into(),
    };
    let tests = |folder: &str, name: &str| Executable {
        folder: format!("crates/{folder}"),
        target: Target::Tests(name.to_owned()),
        path: format!("/t/{name}").into(),
    };
    let executables = [
        units("ferrostack"),
        units("openstack"),
        units("provider"),
        units("simulator"),
        tests("ferrostack", "apiserver_differential"),
        tests("ferrostack", "openstack_differential"),
        tests("ferrostack", "suite"),
        tests("openstack", "limits"),
        tests("provider", "provider"),
    ];
    let run = |changed: &[&str], full| {
        let changed: Vec<String> = changed.iter().map(|&name| name.to_owned()).collect();
        let selection = select(&packages, &changed, full);
        let programs = selection.programs(&executables).into_iter();
        let line = |(program, filters): (&Executable, Vec<String>)| {
            let words = [vec![program.path.display().to_string()], filters].concat();
            words.join(" ")
        };
        programs.map(line).collect::<Vec<_>>().join(", ")
    };
    let openstack = "crates/openstack/src/lib.rs";
    assert_eq!(
        run(&[openstack], false),
        "/t/openstack, /t/limits, /t/ferrostack, /t/provider"
    );
    assert_eq!(
        run(&[openstack, "tests/suite/kill.rs"], false),
        "/t/openstack, /t/limits, /t/suite kill::, /t/ferrostack, /t/provider"
    );
    assert_eq!(
        run(&["crates/ferrostack/src/main.rs"], false),
        "/t/ferrostack, /t/suite main_job::"
    );
    assert_eq!(
        run(&[openstack], true),
        "/t/ferrostack, /t/openstack, /t/provider, /t/apiserver_differential, /t/limits, \
         /t/openstack_differential, /t/provider, /t/suite"
    );
}

/// A path of the tables that is no more would hide what it stands for.
#[test]
fn the_tables_are_of_this_workspace() {
    let root = crate::root();
    let folders = FILES.iter().filter_map(|(_, tested)| match tested {
        Tested::Crate(folder) => Some(*folder),
        _ => None,
    });
    let paths = FILES.iter().map(|(path, _)| *path);
    let compared = COMPARED.iter().map(|(path, _)| *path);
    for path in folders
        .chain(paths)
        .chain(compared)
        .chain(EVERYTHING)
        .chain([PROGRAM])
    {
        assert!(root.join(path).exists(), "{path}");
    }
    let mut with_tests = Vec::new();
    for entry in std::fs::read_dir(root.join("tests/suite")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            let file = format!("tests/suite/{name}/x.rs");
            assert_eq!(
                scenario(&file),
                name,
                "a directory is a part of its scenario"
            );
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        let has_tests = text.contains("#[test]") || text.contains("#[tokio::test");
        assert_eq!(SHARED.contains(&&*name), !has_tests, "{name}");
        with_tests.push(name);
    }
    for scenario in ["main_job.rs", "pages.rs"] {
        assert!(with_tests.iter().any(|name| name == scenario), "{scenario}");
    }
    let manifest = std::fs::read_to_string(root.join(PROGRAM).join("Cargo.toml")).unwrap();
    for test in [SUITE, API_SERVER, CLOUD] {
        assert!(manifest.contains(&format!("name = \"{test}\"")), "{test}");
    }
    packages(&root).unwrap();
}
