use std::path::Path;

use super::*;

/// Candidates for the last word of a line, in a home directory with a clouds.yaml and a kubeconfig.
fn of(home: &Path, line: &[&str]) -> Vec<String> {
    let clouds = home.join("clouds.yaml").display().to_string();
    let variables = [
        ("HOME", home.to_str().unwrap()),
        ("OS_CLIENT_CONFIG_FILE", &clouds),
    ];
    let mut environment = Environment::with(&variables);
    environment.working_dir = home.to_owned();
    let words: Vec<OsString> = [NAME].iter().chain(line).map(OsString::from).collect();
    candidates(&words, &environment)
}

fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let clouds = "clouds: {mycloud: {}, other: {}, \"$(reboot)\": {}, \"a b\": {}, \"-x\": {}, \"e\\u001b[1m\": {}}\n";
    std::fs::write(home.path().join("clouds.yaml"), clouds).unwrap();
    let kubeconfig = "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
        clusters:\n- {name: c, cluster: {server: 'https://127.0.0.1:1'}}\n\
        users:\n- {name: u, user: {token: t}}\n\
        contexts:\n- {name: admin@kubernetes, context: {cluster: c, user: u}}\n\
        - {name: 'two words', context: {cluster: c, user: u}}\n";
    std::fs::write(home.path().join("kubeconfig"), kubeconfig).unwrap();
    home
}

#[test]
fn commands_flags_and_values_are_those_of_the_command_line() {
    let home = home();
    let commands = of(home.path(), &["desc"]);
    assert_eq!(commands, ["describe"]);
    let flags = of(home.path(), &["up", "--worker-machine-c"]);
    assert_eq!(flags, ["--worker-machine-count"]);
    let values = of(home.path(), &["get", "clusters", "-o", ""]);
    assert_eq!(values, ["text", "wide", "json", "yaml"]);
    let files = of(home.path(), &["convert", "clo"]);
    assert_eq!(files, ["clouds.yaml"]);
}

#[test]
fn names_of_files_and_of_the_program_are_completed() {
    let home = home();
    let home = home.path();
    // Entries that a shell or a terminal would obey, or that are flags, are left out.
    for line in [
        &["up", "--cloud", ""][..],
        &["audit", "--cloud", ""],
        &["client-keystone-auth", "--os-cloud", ""],
    ] {
        assert_eq!(of(home, line), ["mycloud", "other"], "{line:?}");
    }
    assert_eq!(of(home, &["up", "--cloud=my"]), ["--cloud=mycloud"]);
    let contexts = ["why", "--kubeconfig", "kubeconfig", "--context", ""];
    assert_eq!(of(home, &contexts), ["admin@kubernetes"]);
    let target = [
        "move",
        "--to-kubeconfig=kubeconfig",
        "--to-kubeconfig-context",
        "ad",
    ];
    assert_eq!(of(home, &target), ["admin@kubernetes"]);
    let flavors = of(home, &["generate", "cluster", "x", "-F", "without"]);
    assert_eq!(flavors, ["without-lb"]);
    assert_eq!(of(home, &["docs", "drain"]), ["drain", "drain-rules"]);
    let states = of(home, &["wait", "demo", "--for", "condition=Avail"]);
    assert_eq!(states, ["condition=Available"]);
    assert_eq!(of(home, &["wait", "demo", "--for=del"]), ["--for=delete"]);
    let options = [
        "openstack",
        "config",
        "nova",
        "--explain",
        "DEFAULT.compute_d",
    ];
    assert_eq!(of(home, &options), ["DEFAULT.compute_driver"]);
    // The bound.
    let options = ["openstack", "config", "nova", "--explain", ""];
    assert_eq!(of(home, &options).len(), 500);
}

#[test]
fn nothing_is_said_where_no_names_can_be_had() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    for line in [
        &["get", "kubeconfig", "d"][..],
        &["up", "--cloud", ""],
        &["why", "--context", ""],
        &["rollout", "restart", "m"],
        &["get", "clusters", "-n", ""],
        &["nothing", "of", "this"],
    ] {
        assert_eq!(of(home, line), [""; 0], "{line:?}");
    }
    let objects = of(home, &["why", "machine"]);
    let kinds = ["machine/", "machinedeployment/", "machineset/"];
    assert_eq!(objects, kinds);
}

#[test]
fn a_server_that_never_answers_is_not_waited_for() {
    let home = home();
    let home = home.path();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("https://{}", silent.local_addr().unwrap());
    let file = home.join("kubeconfig");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("https://127.0.0.1:1", &server)).unwrap();
    let _ = rustls::crypto::ring::default_provider().install_default();
    let context = [
        "--kubeconfig",
        "kubeconfig",
        "--context",
        "admin@kubernetes",
    ];
    let line = [&["get", "kubeconfig"][..], &context, &[""]].concat();
    assert!(of(home, &line).iter().all(|word| word.starts_with('-')));
}

/// Names of all arguments, with their commands.
fn arguments(command: &Command, path: &str, found: &mut Vec<(String, String)>) {
    let of_command = command.get_arguments();
    found.extend(of_command.map(|arg| (path.to_owned(), arg.get_id().to_string())));
    for below in command.get_subcommands() {
        let path = format!("{path} {}", below.get_name())
            .trim_start()
            .to_owned();
        arguments(below, &path, found);
    }
}

#[test]
fn every_source_of_names_has_an_argument() {
    let mut all = Vec::new();
    arguments(&cli::command(), "", &mut all);
    for (index, (command, name, _)) in SOURCES.iter().enumerate() {
        let is_used = all.iter().any(|(path, argument)| {
            let mut rows = SOURCES.iter();
            let first = rows.position(|(command, name, _)| {
                let below = path.strip_prefix(command);
                name == argument
                    && (*command == "*"
                        || below.is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
            });
            first == Some(index)
        });
        assert!(is_used, "{command} {name}");
    }
}

#[test]
fn each_shell_has_a_script_that_asks_the_program() {
    for shell in [
        Shell::Bash,
        Shell::Zsh,
        Shell::Fish,
        Shell::Elvish,
        Shell::PowerShell,
    ] {
        let script = script(shell).unwrap();
        assert!(script.contains(VARIABLE), "{shell}: {script}");
        assert!(!script.contains("target/"), "{shell}: {script}");
    }
}
