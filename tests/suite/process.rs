//! The binary under test, in a process of its own.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

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

/// The binary with an environment of its own: nothing of the machine's configuration is seen.
pub(crate) fn ferrostack(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ferrostack"));
    command
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .kill_on_drop(true);
    command.stdin(Stdio::null());
    command
}

/// Runs the binary to its end.
pub(crate) async fn run(home: &Path, args: &[&str]) -> Output {
    let ended = tokio::time::timeout(LIMIT, ferrostack(home).args(args).output()).await;
    ended
        .expect("the command ends")
        .expect("the command starts")
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
    log: PathBuf,
    seen: Vec<String>,
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
        let mut child = ferrostack(home)
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
            .envs(variables.iter().copied())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .unwrap();
        // Read all the time: a full pipe would hold the program up.
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let (sender, lines) = unbounded_channel();
        tokio::spawn(async move {
            while let Ok(Some(line)) = output.next_line().await {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            lines,
            data,
            log,
            seen: Vec::new(),
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
