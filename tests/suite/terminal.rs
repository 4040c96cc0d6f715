//! The live picture of `up`, in a window that changes its size, as a user sees it: in a pseudo-terminal, by way of a
//! screen that understands what the picture is drawn with.

use std::path::Path;
use std::process::Stdio;

use tokio::io::{AsyncReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};

use crate::forms;
use crate::process::{LIMIT, PROGRAM, eventually, run};

/// Long, so that its objects do not fit into 60 columns.
const CLUSTER: &str = "a-cluster-with-a-long-name-of-its-own";

/// What a terminal shows that wraps long lines, and wraps them anew when its width changes.
struct Screen {
    columns: usize,
    /// Lines as they were written; the last one is not ended.
    lines: Vec<String>,
    /// The beginning of an escape sequence or character whose end is not read yet.
    rest: Vec<u8>,
}

impl Screen {
    fn new(columns: usize) -> Self {
        Self {
            columns,
            lines: vec![String::new()],
            rest: Vec::new(),
        }
    }

    fn rows(&self, line: &str) -> usize {
        line.chars().count().div_ceil(self.columns).max(1)
    }

    /// Takes output, of which the end may be incomplete.
    fn take(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
        let complete = match std::str::from_utf8(&self.rest) {
            Ok(text) => text.len(),
            Err(error) => error.valid_up_to(),
        };
        let text = String::from_utf8(self.rest[..complete].to_vec()).unwrap();
        let mut at = 0;
        while let Some(c) = text[at..].chars().next() {
            if c == '\x1b' {
                let Some(length) = text[at..].find(|c: char| c.is_ascii_alphabetic()) else {
                    break;
                };
                self.control(&text[at..=at + length]);
                at += length + 1;
                continue;
            }
            match c {
                '\n' => self.lines.push(String::new()),
                '\r' => {}
                c => self.lines.last_mut().unwrap().push(c),
            }
            at += c.len_utf8();
        }
        self.rest.drain(..at);
    }

    /// A sequence that colours, goes up, or clears what is below.
    fn control(&mut self, sequence: &str) {
        let number = || sequence[2..sequence.len() - 1].parse::<usize>().unwrap();
        match sequence.chars().last() {
            Some('m' | 'J') => {}
            // What is above the cursor is always cleared next.
            Some('A') => {
                assert_eq!(
                    self.lines.pop().as_deref(),
                    Some(""),
                    "the cursor is at a start"
                );
                let mut rows = number();
                while rows > 0 {
                    let line = self.lines.pop().expect("rows that were drawn");
                    let of_line = self.rows(&line);
                    assert!(of_line <= rows, "a part of `{line}` would stay");
                    rows -= of_line;
                }
                self.lines.push(String::new());
            }
            _ => panic!("{sequence:?}"),
        }
    }

    /// The rows of the tree.
    fn picture(&self) -> Vec<&str> {
        let first = self.lines.iter().position(|line| line.contains("─"));
        let first = first.unwrap_or(self.lines.len()).saturating_sub(1);
        let lines = self.lines[first..].iter().map(String::as_str);
        lines.take_while(|line| !line.is_empty()).collect()
    }
}

/// A program in a pseudo-terminal of util-linux.
struct Terminal {
    child: Child,
    output: BufReader<ChildStdout>,
    device: String,
    screen: Screen,
}

impl Terminal {
    /// Runs `command` in a terminal of 50 rows, in the directory `home`.
    async fn start(home: &Path, columns: usize, command: &str) -> Self {
        let inside = format!(
            "stty rows 50 cols {columns}; tty >device.new; mv device.new device; exec {command}"
        );
        let mut child = Command::new("/usr/bin/script")
            .args([
                "--quiet",
                "--flush",
                "--return",
                "--command",
                &inside,
                "/dev/null",
            ])
            .env_clear()
            .env("HOME", home)
            .env("PATH", "/usr/bin:/bin")
            .env("TERM", "xterm")
            .current_dir(home)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let device = eventually("the terminal has a name", || async {
            std::fs::read_to_string(home.join("device")).ok()
        })
        .await;
        Self {
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
            device: device.trim().to_owned(),
            screen: Screen::new(columns),
        }
    }

    /// Reads until the screen is as expected.
    async fn until(&mut self, what: &str, expected: impl Fn(&Screen) -> bool) {
        let reading = async {
            let mut bytes = [0; 4096];
            while !expected(&self.screen) {
                let count = self.output.read(&mut bytes).await.unwrap();
                assert!(count > 0, "{what}: {}", self.screen.lines.join("\n"));
                self.screen.take(&bytes[..count]);
            }
        };
        let in_time = tokio::time::timeout(LIMIT, reading).await.is_ok();
        assert!(in_time, "{what}: {}", self.screen.lines.join("\n"));
        forms::check("up in a terminal", &self.screen.lines.join("\n"));
    }

    /// Changes the width of the window, as its user does.
    async fn resize(&mut self, columns: usize) {
        self.screen.columns = columns;
        let set = Command::new("/usr/bin/stty")
            .args(["-F", &self.device, "cols", &columns.to_string()])
            .output()
            .await
            .unwrap();
        assert!(set.status.success(), "{set:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_picture_is_redrawn_when_the_window_is_resized() {
    if !Path::new("/usr/bin/script").exists() {
        skipped::because("no script; install bsdutils");
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let command = format!(
        "{PROGRAM} up --data-dir data --cluster-name {CLUSTER} --control-plane-machine-count 1 --worker-machine-count 1"
    );
    let mut terminal = Terminal::start(home, 100, &command).await;
    let plane = format!("KubeadmControlPlane/{CLUSTER}-control-plane");
    let drawn = |screen: &Screen, columns: usize| {
        let picture = screen.picture();
        let widest = picture.iter().map(|line| line.chars().count()).max();
        let whole = picture.iter().any(|line| line.contains(&plane));
        let ready = screen.lines.iter().any(|line| line.contains("Ready after"));
        // Names are shortened only where they have to be.
        ready && widest.is_some_and(|widest| widest <= columns) && whole == (columns > 60)
    };
    terminal
        .until("a ready cluster on 100 columns", |screen| {
            drawn(screen, 100)
        })
        .await;
    let picture = terminal.screen.picture();
    assert!(picture[0].contains(" (simulated)  "), "{picture:#?}");
    let above = terminal.screen.lines[0].clone();
    for columns in [60, 160, 60, 100] {
        terminal.resize(columns).await;
        let what = format!("the picture on {columns} columns");
        terminal.until(&what, |screen| drawn(screen, columns)).await;
        let screen = &terminal.screen;
        let lines = screen.lines.iter();
        let clusters = lines.filter(|line| line.ends_with("  Provisioned"));
        assert_eq!(clusters.count(), 1, "{}", screen.lines.join("\n"));
        assert_eq!(screen.lines[0], above);
        assert_eq!(screen.picture().len(), 7, "{}", screen.lines.join("\n"));
    }
    let data = home.join("data").display().to_string();
    run(home, &["down", "--data-dir", &data]).await;
    let ended = terminal.child.wait().await.unwrap();
    assert!(ended.success(), "{ended:?}");
}

#[test]
fn a_screen_clears_the_rows_of_wrapped_lines() {
    let mut screen = Screen::new(4);
    screen.take("top\nabcdefgh\nx\n".as_bytes());
    screen.take(b"\x1b[3");
    screen.take("A\r\x1b[J\x1b[31m✗\x1b[0m".as_bytes());
    assert_eq!(screen.lines, ["top", "✗"]);
}
