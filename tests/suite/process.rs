//! The binary under test, in a process of its own.

use std::ffi::OsStr;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::forms;

/// No test waits longer than this for one thing: a bound for broken programs, not a measurement.
pub(crate) const LIMIT: Duration = Duration::from_secs(600);

/// Group, version and kind of what users of the management API read: objects with conditions, and what is written about them.
pub(crate) const KINDS: [(&str, &str, &str); 12] = [
    ("", "v1", "ConfigMap"),
    ("", "v1", "Event"),
    ("", "v1", "Pod"),
    ("cluster.x-k8s.io", "v1beta2", "Cluster"),
    ("cluster.x-k8s.io", "v1beta2", "Machine"),
    ("cluster.x-k8s.io", "v1beta2", "MachineSet"),
    ("cluster.x-k8s.io", "v1beta2", "MachineDeployment"),
    ("bootstrap.cluster.x-k8s.io", "v1beta2", "KubeadmConfig"),
    (
        "controlplane.cluster.x-k8s.io",
        "v1beta2",
        "KubeadmControlPlane",
    ),
    (
        "infrastructure.cluster.x-k8s.io",
        "v1beta2",
        "OpenStackCluster",
    ),
    (
        "infrastructure.cluster.x-k8s.io",
        "v1beta2",
        "OpenStackMachine",
    ),
    ("events.k8s.io", "v1", "Event"),
];

/// The program under test. It is started by [`ferrostack`], which checks what it prints, or in a terminal or a shell,
/// whose output is checked.
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_ferrostack");

/// A command whose output is checked for what users cannot read.
pub(crate) struct Checked {
    command: Command,
    /// The words of the command.
    words: String,
}

/// The binary with an environment of its own: nothing of the machine's configuration is seen.
pub(crate) fn ferrostack(home: &Path) -> Checked {
    let mut command = Command::new(PROGRAM);
    command
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .kill_on_drop(true);
    command.stdin(Stdio::null());
    Checked::of(command)
}

/// Runs the binary to its end.
pub(crate) async fn run(home: &Path, args: &[&str]) -> Output {
    ferrostack(home).args(args).output().await
}

impl Checked {
    /// `command`, of which only the program is given yet.
    pub(crate) fn of(mut command: Command) -> Self {
        let program = Path::new(command.as_std().get_program()).file_name();
        let words = program.unwrap_or_default().to_string_lossy().into_owned();
        command.kill_on_drop(true);
        Self { command, words }
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.words.push(' ');
        self.words.push_str(&arg.as_ref().to_string_lossy());
        self.command.arg(arg);
        self
    }

    pub(crate) fn args(self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn envs<'a>(
        mut self,
        variables: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        self.command.envs(variables);
        self
    }

    /// Runs it to its end.
    pub(crate) async fn output(mut self) -> Output {
        let ended = tokio::time::timeout(LIMIT, self.command.output()).await;
        let output = ended.expect("the command ends");
        let output = output.expect("the command starts");
        let (out, errors) = texts(&output);
        forms::check(&self.words, &out);
        forms::check(&self.words, &errors);
        output
    }

    /// Starts it.
    pub(crate) fn start(mut self) -> Running {
        let mut child = self
            .command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = unbounded_channel();
        forward(child.stdout.take().unwrap(), sender.clone());
        forward(child.stderr.take().unwrap(), sender);
        Running {
            child,
            lines,
            seen: Vec::new(),
            words: self.words,
        }
    }
}

/// Reads lines all the time: a full pipe would hold the program up.
fn forward(output: impl AsyncRead + Send + Unpin + 'static, sender: UnboundedSender<String>) {
    let mut output = BufReader::new(output).lines();
    tokio::spawn(async move {
        while let Ok(Some(line)) = output.next_line().await {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
}

/// A command that goes on; it ends when this is dropped.
pub(crate) struct Running {
    pub(crate) child: Child,
    /// The lines of standard output and error.
    lines: UnboundedReceiver<String>,
    seen: Vec<String>,
    words: String,
}

impl Running {
    /// Waits for a line; those before it are skipped.
    pub(crate) async fn line(&mut self, what: &str, is_it: impl Fn(&str) -> bool) -> String {
        let found = async {
            while let Some(line) = self.lines.recv().await {
                self.seen.push(line.clone());
                if is_it(&line) {
                    return Some(line);
                }
            }
            None
        };
        match tokio::time::timeout(LIMIT, found).await {
            Ok(Some(line)) => line,
            _ => panic!("no line {what}:\n{}", self.seen.join("\n")),
        }
    }

    /// Asks the process to stop, as Ctrl-C does, and waits for its end.
    pub(crate) async fn stop(mut self) {
        let pid = i32::try_from(self.child.id().unwrap()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        let ended = tokio::time::timeout(LIMIT, self.child.wait()).await;
        ended.unwrap().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        while let Ok(line) = self.lines.try_recv() {
            self.seen.push(line);
        }
        forms::check(&self.words, &self.seen.join("\n"));
    }
}

/// Standard output and error of a command that ended.
pub(crate) fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// A running `ferrostack up -o json`.
pub(crate) struct Up {
    child: Child,
    lines: UnboundedReceiver<String>,
    data: PathBuf,
    pub(crate) log: PathBuf,
    /// The length of the log when the process was started.
    logged: u64,
    seen: Vec<String>,
    words: String,
}

impl Up {
    /// Starts `up` on the data directory `home/data`; the log is appended to `home/log`.
    pub(crate) fn start(home: &Path, args: &[&str], variables: &[(&str, &str)]) -> Self {
        let (data, log) = (home.join("data"), home.join("log"));
        let stderr = std::fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .unwrap();
        let logged = stderr.metadata().unwrap().len();
        let mut up = ferrostack(home)
            .args([
                "--log",
                "debug,hyper=info,h2=info",
                "up",
                "-o",
                "json",
                "--data-dir",
            ])
            .arg(&data)
            .args(args)
            .envs(variables.iter().copied());
        let command = up.command.stdout(Stdio::piped()).stderr(stderr);
        let mut child = command.spawn().unwrap();
        let (sender, lines) = unbounded_channel();
        forward(child.stdout.take().unwrap(), sender);
        Self {
            child,
            lines,
            data,
            log,
            logged,
            seen: Vec::new(),
            words: up.words,
        }
    }

    /// The process id, while it runs.
    pub(crate) fn pid(&self) -> i32 {
        i32::try_from(self.child.id().unwrap_or(0)).unwrap()
    }

    /// Reads progress until all is ready.
    pub(crate) async fn ready(&mut self) -> Value {
        match tokio::time::timeout(LIMIT, self.event("ready")).await {
            Ok(Some(event)) => event,
            Ok(None) => panic!("`up` ended before it was ready:\n{}", self.story()),
            Err(_) => panic!("`up` is not ready after {LIMIT:?}:\n{}", self.story()),
        }
    }

    /// Reads progress until all is ready (true), or until the process has ended (false).
    pub(crate) async fn ready_or_ended(&mut self) -> bool {
        match tokio::time::timeout(LIMIT, self.event("ready")).await {
            Ok(event) => event.is_some(),
            Err(_) => panic!("`up` is not ready after {LIMIT:?}:\n{}", self.story()),
        }
    }

    /// The next line that has the field `name`; `None` when the process has ended.
    async fn event(&mut self, name: &str) -> Option<Value> {
        while let Some(line) = self.lines.recv().await {
            self.seen.push(line.clone());
            let event: Value = serde_json::from_str(&line).unwrap();
            if event.get(name).is_some() {
                return Some(event);
            }
        }
        None
    }

    /// Waits for the process to end by itself; gives its exit code (`None`: killed).
    pub(crate) async fn ended(&mut self) -> Option<i32> {
        let drain = async {
            while let Some(line) = self.lines.recv().await {
                self.seen.push(line);
            }
        };
        if tokio::time::timeout(LIMIT, drain).await.is_err() {
            panic!("`up` does not end:\n{}", self.story());
        }
        self.child.wait().await.unwrap().code()
    }

    /// Reads this many lines of progress, or to the end of the output.
    pub(crate) async fn read_lines(&mut self, count: usize) {
        for _ in 0..count {
            match tokio::time::timeout(LIMIT, self.lines.recv()).await {
                Ok(Some(line)) if !line.contains("\"ready\"") => self.seen.push(line),
                Ok(_) => return,
                Err(_) => panic!("`up` says nothing more:\n{}", self.story()),
            }
        }
    }

    /// Kills the process as `kill -9` does.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// Asks the process to stop, as Ctrl-C does, and waits for its end.
    ///
    /// What was asked of its own simulated cloud, if it has one, is in the scenario.
    pub(crate) async fn stop(mut self) {
        let ready = self.seen.iter().rev().find_map(|line| {
            let event: Value = serde_json::from_str(line).ok()?;
            event["simulatedOpenStack"].as_str().map(str::to_owned)
        });
        if let Some(url) = ready {
            crate::coverage::of_url(&url).await;
        }
        let pid = rustix::process::Pid::from_raw(self.pid()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        assert_eq!(self.ended().await, Some(0), "{}", self.story());
    }

    /// A client of the management API.
    pub(crate) async fn client(&self) -> Client {
        client(&self.data.join("kubeconfig")).await
    }

    /// What the program printed, and the end of its log.
    pub(crate) fn story(&self) -> String {
        let log = std::fs::read_to_string(&self.log).unwrap_or_default();
        let notable: Vec<&str> = log
            .lines()
            .filter(|line| {
                ["WARN", "ERROR", "error: "]
                    .iter()
                    .any(|word| line.contains(word))
            })
            .collect();
        let tail =
            |lines: &[&str], count: usize| lines[lines.len().saturating_sub(count)..].join("\n");
        let seen: Vec<&str> = self.seen.iter().map(String::as_str).collect();
        format!("{}\n--- log\n{}", tail(&seen, 60), tail(&notable, 60))
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        while let Ok(line) = self.lines.try_recv() {
            self.seen.push(line);
        }
        forms::check(&self.words, &self.seen.join("\n"));
        let mut log = Vec::new();
        let of_process = std::fs::File::open(&self.log).and_then(|mut file| {
            file.seek(SeekFrom::Start(self.logged))?;
            file.read_to_end(&mut log)
        });
        if let Ok(_length) = of_process {
            forms::check_log(&self.words, &String::from_utf8_lossy(&log));
        }
    }
}

/// A client by the kubeconfig file at `path`.
pub(crate) async fn client(path: &Path) -> Client {
    // A second installation is refused, and the first one serves.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let kubeconfig = Kubeconfig::read_from(path).unwrap();
    let config =
        kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    Client::try_from(config.unwrap()).unwrap()
}

/// Waits until `check` gives something, looking again and again.
pub(crate) async fn eventually<T, F, Fut>(what: &str, mut check: F) -> T
where
    F: FnMut() -> Fut,
    Fut: Future<Output = Option<T>>,
{
    let deadline = tokio::time::Instant::now() + LIMIT;
    loop {
        if let Some(found) = check().await {
            return found;
        }
        assert!(
            tokio::time::Instant::now() < deadline,
            "still waiting for {what}"
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// The kubectl that `tests/kubernetes/kubectl` builds; `None`, saying so, where it is not built.
pub(crate) fn kubectl() -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/kubectl");
    if path.exists() {
        return Some(path);
    }
    skipped::because("no kubectl; build it with tests/kubernetes/kubectl");
    None
}
