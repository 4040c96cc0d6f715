//! Names that a user completes with the tabulator, in the shells of this machine: bash, and zsh and fish where they are
//! installed.

use std::path::Path;
use std::process::Stdio;

use tokio::io::AsyncWriteExt;
use tokio::process::{Child, ChildStdin, Command};

use crate::forms;
use crate::process::{PROGRAM, eventually, ferrostack, texts};

/// Lines with a tabulator, and the words that the shell passes on.
const LINES: [(&str, &str); 9] = [
    ("desc\t", "describe"),
    ("get kubeconfig al\t", "get kubeconfig alpha"),
    (
        "rollout restart machined\t",
        "rollout restart machinedeployment/alpha-md-0",
    ),
    (
        "why kubeadmcontrolplane al\t",
        "why kubeadmcontrolplane alpha-control-plane",
    ),
    ("get clusters -n defau\t", "get clusters -n default"),
    ("up --cloud my\t", "up --cloud mycloud"),
    ("up --cloud=my\t", "up --cloud=mycloud"),
    (
        "why --kubeconfig other --context admin@ku\t",
        "why --kubeconfig other --context admin@kubernetes",
    ),
    ("docs drain-\t", "docs drain-rules"),
];

/// Home directory with a cluster `alpha` that an `up` in the background has, a clouds.yaml and a kubeconfig.
async fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let bin = home.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(PROGRAM, bin.join("ferrostack")).unwrap();
    let clouds = "clouds: {mycloud: {}, \"my$(touch obeyed)\": {}}\n";
    std::fs::write(home.path().join("clouds.yaml"), clouds).unwrap();
    let kubeconfig = "apiVersion: v1\nkind: Config\nclusters: []\nusers: []\n\
        contexts:\n- {name: admin@kubernetes, context: {cluster: c, user: u}}\n";
    std::fs::write(home.path().join("other"), kubeconfig).unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = ferrostack(home.path())
            .args(["completion", shell])
            .output()
            .await;
        assert!(script.status.success(), "{script:?}");
        std::fs::write(home.path().join(shell), script.stdout).unwrap();
    }
    let up = ferrostack(home.path())
        .args(["up", "--detach", "--cluster-name", "alpha"])
        .args([
            "--control-plane-machine-count",
            "1",
            "--worker-machine-count",
            "1",
        ])
        .output()
        .await;
    assert!(up.status.success(), "{:?}", texts(&up));
    home
}

/// A command in the home directory, which finds the program by its name.
fn command(home: &Path, program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("HOME", home)
        .env(
            "PATH",
            format!("{}:/usr/bin:/bin", home.join("bin").display()),
        )
        .env("TERM", "dumb")
        .current_dir(home)
        .kill_on_drop(true);
    command
}

/// A shell in a pseudo-terminal of util-linux.
struct Typing {
    _child: Child,
    keys: ChildStdin,
}

impl Typing {
    fn start(home: &Path, shell: &str) -> Self {
        let mut child = command(home, "/usr/bin/script")
            .args([
                "--quiet",
                "--flush",
                "--return",
                "--command",
                shell,
                "screen",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let keys = child.stdin.take().unwrap();
        Self {
            _child: child,
            keys,
        }
    }

    async fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).await.unwrap();
        self.keys.flush().await.unwrap();
    }
}

/// Types the lines into a shell, in which `show` is completed as the program is.
async fn types(home: &Path, shell: &str, setup: &str) {
    let (passed, ready) = (home.join("passed"), home.join("ready"));
    let _ = std::fs::remove_file(&passed);
    let _ = std::fs::remove_file(&ready);
    let mut typing = Typing::start(home, shell);
    typing.press(&format!("{setup}; echo ok >ready\n")).await;
    eventually("the shell is ready", || async {
        ready.exists().then_some(())
    })
    .await;
    for (count, (line, expected)) in LINES.into_iter().enumerate() {
        typing.press(&format!("show {line}\n")).await;
        let words = eventually(line, || async {
            let text = std::fs::read_to_string(&passed).unwrap_or_default();
            text.lines().nth(count).map(str::to_owned)
        })
        .await;
        assert_eq!(words, expected, "{shell}: {line}");
    }
    typing.press("exit\n").await;
    let screen = std::fs::read_to_string(home.join("screen")).unwrap_or_default();
    // Zsh draws its line with sequences of its own.
    if shell.contains("bash") {
        forms::check(shell, &screen.replace(['\r', '\u{7}', '\u{8}'], ""));
    }
    assert!(!home.join("obeyed").exists(), "{shell}");
}

#[tokio::test(flavor = "multi_thread")]
async fn shells_complete_names_of_the_api_server_and_of_files() {
    if !Path::new("/usr/bin/script").exists() {
        skipped::because("no script; install bsdutils");
        return;
    }
    let home = home().await;
    let home = home.path();
    let show = "show() { echo \"$*\" >>passed; }";
    let bash = format!("{show}; . ./bash; complete -o bashdefault -o nosort -F _ferrostack show");
    types(home, "/bin/bash --norc --noprofile -i", &bash).await;
    match Path::new("/usr/bin/zsh").exists() {
        true => {
            let zsh = format!(
                "{show}; autoload -U compinit; compinit -u -D; . ./zsh; compdef _clap_dynamic_completer_ferrostack show"
            );
            types(home, "/usr/bin/zsh -f -i", &zsh).await;
        }
        false => skipped::because("no zsh; install zsh"),
    }
    match Path::new("/usr/bin/fish").exists() {
        true => fish(home).await,
        false => skipped::because("no fish; install fish"),
    }
    let down = ferrostack(home).arg("down").output().await;
    assert!(down.status.success(), "{:?}", texts(&down));

    // Nothing answers any more, and nothing is said.
    let words = ["--", "ferrostack", "get", "kubeconfig", "al"];
    let silent = ferrostack(home)
        .args(words)
        .env("FERROSTACK_COMPLETE", "bash")
        .env("FERROSTACK_COMPLETE_WORD", "al")
        .output()
        .await;
    assert!(silent.status.success());
    assert_eq!(texts(&silent), (String::new(), String::new()));
}

/// Asks fish itself for the candidates of each line.
async fn fish(home: &Path) {
    for (line, expected) in LINES {
        let line = line.trim_end_matches('\t');
        let script = format!("source fish; complete -C 'ferrostack {line}'");
        let output = command(home, "/usr/bin/fish")
            .args(["--no-config", "-c", &script])
            .output()
            .await
            .unwrap();
        let (out, err) = texts(&output);
        let last = expected.rsplit(' ').next().unwrap();
        let found = out
            .lines()
            .map(|it| it.split('\t').next().unwrap_or_default());
        assert_eq!(found.collect::<Vec<_>>(), [last], "{line}: {err}");
        forms::check("fish", &out);
    }
}
