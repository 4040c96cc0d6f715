//! Files that are read again after a change. Unusable content is logged, counted and reported, and the previous
//! content stays.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;

use crate::metrics::Metrics;

/// Interval between checks of the files.
const INTERVAL: Duration = Duration::from_secs(2);
/// Maximum size of a file in bytes.
const LARGEST: u64 = 8 << 20;

/// Applies the content of files, or returns the reason why it is unusable.
pub type Apply = Box<dyn FnMut(&[String]) -> Result<(), String> + Send>;

/// Files that belong together, such as a certificate and its key.
pub struct Files {
    /// Purpose, for logs and metrics.
    what: &'static str,
    paths: Vec<PathBuf>,
    apply: Apply,
    /// State of the files at the last successful use; `None` if unusable.
    used: Option<Vec<Stamp>>,
    /// Reason why the files are unusable.
    failure: Option<String>,
    metrics: Metrics,
    reports: Option<mpsc::Sender<String>>,
}

/// Fingerprint of a file. A new target of a link, as in volumes of ConfigMaps, changes the fingerprint.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Files {
    /// Reads the files for the first time.
    ///
    /// # Errors
    /// The files cannot be read, or used: name of the file, and reason.
    pub fn open(
        what: &'static str,
        paths: Vec<PathBuf>,
        apply: Apply,
        metrics: Metrics,
    ) -> Result<Self, String> {
        let mut files = Self {
            what,
            paths,
            apply,
            used: None,
            failure: None,
            metrics,
            reports: None,
        };
        let before = files.stamps();
        files.read()?;
        files.used = before;
        files.metrics.unusable(what, false);
        Ok(files)
    }

    /// Sends each reason against a replacement, as a sentence. Without room in the channel, the reason is only
    /// logged.
    #[must_use]
    pub fn reporting(self, reports: mpsc::Sender<String>) -> Self {
        Self {
            reports: Some(reports),
            ..self
        }
    }

    /// Reads the files after each change, for ever.
    pub async fn follow(mut self) {
        let mut ticks = tokio::time::interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let looked = tokio::task::spawn_blocking(move || {
                self.look();
                self
            });
            match looked.await {
                Ok(files) => self = files,
                Err(error) => {
                    tracing::error!(%error, "files are not looked at any more");
                    return;
                }
            }
        }
    }

    /// Reads the files after a change, or after a failed attempt.
    pub fn look(&mut self) {
        // Taken before the read: a change in between is seen at the next check.
        let before = self.stamps();
        if before.is_some() && before == self.used {
            return;
        }
        let (what, first) = (self.what, self.used.is_some());
        match self.read() {
            Ok(()) => {
                self.used = before;
                self.failure = None;
                self.metrics.unusable(what, false);
                tracing::info!("{what} has been read again");
            }
            Err(reason) => {
                self.used = None;
                self.metrics.unusable(what, true);
                if first || self.failure.as_ref() != Some(&reason) {
                    let sentence = not_replaced(what, &reason);
                    tracing::error!("{sentence}");
                    let _ = self.reports.as_ref().map(|it| it.try_send(sentence));
                }
                self.failure = Some(reason);
            }
        }
    }

    fn read(&mut self) -> Result<(), String> {
        let texts = self.paths.iter().map(|path| {
            let named = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
            let size = fs::metadata(path).map_err(|error| named(&error))?.len();
            if size > LARGEST {
                return Err(named(&format!("it has more than {} MiB", LARGEST >> 20)));
            }
            fs::read_to_string(path).map_err(|error| named(&error))
        });
        let texts: Vec<String> = texts.collect::<Result<_, _>>()?;
        (self.apply)(&texts).map_err(|reason| {
            let paths: Vec<_> = self
                .paths
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            format!("{}: {reason}", paths.join(", "))
        })
    }

    fn stamps(&self) -> Option<Vec<Stamp>> {
        let stamps = self.paths.iter().map(|path| {
            let data = fs::metadata(path).ok()?;
            Some(Stamp {
                device: data.dev(),
                inode: data.ino(),
                size: data.size(),
                modified: (data.mtime(), data.mtime_nsec()),
                changed: (data.ctime(), data.ctime_nsec()),
            })
        });
        stamps.collect()
    }
}

/// Sentence about unusable content.
pub fn not_replaced(what: &str, reason: &str) -> String {
    format!("{what} is not replaced, and what was read before stays: {reason}")
}

impl std::fmt::Debug for Files {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Files")
            .field("what", &self.what)
            .field("paths", &self.paths)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use parking_lot::Mutex;

    use super::*;

    type Seen = Arc<Mutex<Vec<String>>>;

    /// Files whose texts have to be equal.
    fn open(directory: &tempfile::TempDir, names: &[&str]) -> (Seen, Result<Files, String>) {
        let seen = Seen::default();
        let into = Arc::clone(&seen);
        let apply: Apply = Box::new(move |texts| {
            if texts.iter().any(|text| *text != texts[0]) {
                return Err("they do not fit".to_owned());
            }
            into.lock().push(texts[0].clone());
            Ok(())
        });
        let paths = names
            .iter()
            .map(|name| directory.path().join(name))
            .collect();
        (seen, Files::open("test", paths, apply, Metrics::default()))
    }

    fn write(directory: &tempfile::TempDir, name: &str, text: &str) {
        // Another inode, as whoever replaces a file has it.
        let (new, path) = (directory.path().join("new"), directory.path().join(name));
        fs::write(&new, text).unwrap();
        fs::rename(new, path).unwrap();
    }

    #[test]
    fn the_last_good_content_stays_until_all_files_fit() {
        let directory = tempfile::tempdir().unwrap();
        write(&directory, "a", "1");
        write(&directory, "b", "1");
        let (seen, files) = open(&directory, &["a", "b"]);
        let (sender, mut reports) = mpsc::channel(8);
        let mut files = files.unwrap().reporting(sender);
        files.look();
        assert_eq!(*seen.lock(), ["1"]);
        write(&directory, "a", "2");
        files.look();
        files.look();
        assert_eq!(*seen.lock(), ["1"]);
        let report = reports.try_recv().unwrap();
        assert!(
            report.starts_with("test is not replaced") && report.ends_with("they do not fit"),
            "{report}"
        );
        assert!(reports.try_recv().is_err());
        assert!(files.failure.as_ref().unwrap().ends_with("they do not fit"));
        write(&directory, "b", "2");
        files.look();
        files.look();
        assert_eq!(*seen.lock(), ["1", "2"]);
        fs::remove_file(directory.path().join("b")).unwrap();
        files.look();
        assert!(files.failure.as_ref().unwrap().contains("No such file"));
        write(&directory, "b", "2");
        files.look();
        assert_eq!((seen.lock().len(), &files.failure), (3, &None));
    }

    #[test]
    fn a_link_to_another_directory_is_a_change() {
        use std::os::unix::fs::symlink;
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        for name in ["one", "two"] {
            fs::create_dir(path(name)).unwrap();
            fs::write(path(name).join("a"), name).unwrap();
        }
        symlink(path("one"), path("data")).unwrap();
        symlink("data/a", path("a")).unwrap();
        let (seen, files) = open(&directory, &["a"]);
        let mut files = files.unwrap();
        symlink(path("two"), path("next")).unwrap();
        fs::rename(path("next"), path("data")).unwrap();
        files.look();
        assert_eq!(*seen.lock(), ["one", "two"]);
    }

    #[test]
    fn what_cannot_be_used_at_the_start_is_an_error_with_the_file() {
        let directory = tempfile::tempdir().unwrap();
        write(&directory, "a", "1");
        for (other, words) in [
            (Some("2"), "a, "),
            (None, "b: No such file"),
            (Some("\u{fffd}"), "fit"),
        ] {
            if let Some(text) = other {
                write(&directory, "b", text);
            } else {
                fs::remove_file(directory.path().join("b")).unwrap();
            }
            let error = open(&directory, &["a", "b"]).1.unwrap_err();
            assert!(error.contains(words), "{error}");
        }
        let large = directory.path().join("a");
        fs::File::create(&large)
            .unwrap()
            .set_len(LARGEST + 1)
            .unwrap();
        assert!(
            open(&directory, &["a"])
                .1
                .unwrap_err()
                .contains("more than 8 MiB")
        );
        fs::write(&large, b"\xff").unwrap();
        assert!(open(&directory, &["a"]).1.unwrap_err().contains("UTF-8"));
    }
}
