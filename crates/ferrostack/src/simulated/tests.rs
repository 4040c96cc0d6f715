use super::*;
use crate::cli::ProgramArgs;

fn args(program: &str) -> RunnerArgs {
    let program = ProgramArgs {
        guest_runner: Some(PathBuf::from(program)),
        ..ProgramArgs::default()
    };
    RunnerArgs {
        program,
        ..RunnerArgs::default()
    }
}

fn fails(args: &RunnerArgs, directory: impl FnOnce() -> anyhow::Result<PathBuf>) -> String {
    match Bodies::new(args, directory, Bodies::Nothing) {
        Ok(_) => panic!("{args:?} is accepted"),
        Err(error) => format!("{error:#}"),
    }
}

#[test]
fn a_runner_that_cannot_be_executed_is_refused_before_the_cloud_starts() {
    let here = || Ok(PathBuf::from("machines"));
    let missing = fails(&args("/nowhere/runner"), here);
    assert!(
        missing.starts_with("--guest-runner /nowhere/runner: there is no such program"),
        "{missing}"
    );
    let text = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let plain = fails(&args(text), here);
    assert!(plain.ends_with("is it executable (chmod +x)?"), "{plain}");
    let directory = fails(&args("/"), here);
    assert!(directory.contains("not a program"), "{directory}");
    let homeless = fails(&args("/bin/sh"), || anyhow::bail!("it needs --state-dir"));
    assert_eq!(homeless, "it needs --state-dir");
}

#[test]
fn floating_ips_are_of_the_runners_range_if_it_has_one() {
    let setup = |bodies| Setup {
        store: None,
        guest_state: None,
        latency: LatencyArg::None,
        seed: 1,
        volume_zones: Vec::new(),
        floating: 77,
        bodies,
        passwords: Passwords::default(),
    };
    let with_runner = RunnerArgs {
        external_network: Some("203.0.113.0/24".parse().unwrap()),
        ..args("/bin/sh")
    };
    let range = |bodies| setup(bodies).external_network().unwrap().to_string();
    assert_eq!(range(Bodies::Guests(None)), "127.77.0.0/16");
    assert_eq!(
        range(Bodies::Machines(args("/bin/sh"), PathBuf::new())),
        "127.77.0.0/16"
    );
    assert_eq!(
        range(Bodies::Machines(with_runner, PathBuf::new())),
        "203.0.113.0/24"
    );
}

#[test]
fn a_data_directory_keeps_its_passwords_and_an_older_one_those_that_it_has() {
    use std::os::unix::fs::PermissionsExt as _;

    let directory = tempfile::tempdir().unwrap();
    let data = DataDir::open(&directory.path().join("new")).unwrap();
    let first = passwords(&data).unwrap();
    assert_ne!(first, Passwords::default());
    data.write("cloud.db", "").unwrap();
    assert_eq!(passwords(&data).unwrap(), first);
    let mode = std::fs::metadata(data.file(PASSWORDS)).unwrap();
    assert_eq!(mode.permissions().mode() & 0o777, 0o600);
    data.write(PASSWORDS, "{").unwrap();
    let why = passwords(&data).unwrap_err().to_string();
    assert!(why.ends_with("cloud-passwords.json is damaged"), "{why}");

    let older = DataDir::open(&directory.path().join("older")).unwrap();
    older.write("cloud.db", "").unwrap();
    assert_eq!(passwords(&older).unwrap(), Passwords::default());
}
