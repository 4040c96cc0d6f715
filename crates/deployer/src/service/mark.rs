//! Mark of a cloud on its volumes, to detect data of other owners before a program starts with them.

use super::definition::command;

/// File on the volume with the uid of the cloud.
const MARK: &str = "ferrostack-cloud";

/// Content of a volume.
pub(super) struct Marked<'a> {
    /// Claim.
    pub(super) volume: &'a str,
    /// Path of the mount.
    pub(super) directory: &'a str,
    /// File or directory with the data.
    pub(super) data: &'a str,
    /// Command to make the data, as `new` in this directory.
    pub(super) make: &'a str,
}

impl Marked<'_> {
    /// Command to make data with the mark of the cloud; does nothing if such data exists, and fails with a message if
    /// the volume has data of another owner. The data is made beside its place and then moved: an interruption leaves
    /// nothing like data behind.
    pub(super) fn command(&self, uid: &str) -> Vec<String> {
        let Self {
            volume,
            directory,
            data,
            make,
        } = self;
        let script = format!(
            "cd {directory} || exit 1
if test -e {data}; then
  test \"$(cat {MARK} 2>/dev/null)\" = \"$0\" && exit 0
  echo \"volume {volume} has data that are not of this cloud: {data} is there, and the file {MARK} beside it does not hold $0. Give the claim an empty volume. If they are of this cloud, write that into the file\" >&2
  exit 1
fi
for it in *; do
  case $it in '*' | lost+found | new | {MARK}) ;;
  *) echo \"volume {volume} is not empty: it has $it, which is not of this cloud. Give the claim an empty volume\" >&2
    exit 1 ;;
  esac
done
rm -rf new
{make} && echo \"$0\" >{MARK} && mv new {data}"
        );
        command(&["/bin/sh", "-c", &script, uid])
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// Runs the command for this cloud on a directory; the end of what it says if it fails.
    fn run(directory: &Path, uid: &str) -> Result<(), String> {
        let marked = Marked {
            volume: "a-volume",
            directory: directory.to_str().unwrap(),
            data: "data",
            make: "mkdir new && touch new/made",
        };
        let words = marked.command(uid);
        let done = Command::new(&words[0]).args(&words[1..]).output().unwrap();
        match done.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8(done.stderr).unwrap()),
        }
    }

    #[test]
    fn an_empty_volume_gets_data_once_also_after_an_interruption() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        std::fs::create_dir(path.join("lost+found")).unwrap();
        std::fs::create_dir(path.join("new")).unwrap();
        std::fs::write(path.join("new/half"), "").unwrap();
        run(path, "uid-a").unwrap();
        assert!(path.join("data/made").exists() && !path.join("data/half").exists());
        assert!(!path.join("new").exists());
        std::fs::remove_file(path.join("data/made")).unwrap();
        run(path, "uid-a").unwrap();
        assert!(!path.join("data/made").exists(), "it was made again");
    }

    #[test]
    fn data_of_others_are_told_and_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        run(path, "uid-a").unwrap();
        let error = run(path, "uid-b").unwrap_err();
        assert!(
            error.contains("volume a-volume has data that are not of this cloud")
                && error.contains("does not hold uid-b"),
            "{error}"
        );
        std::fs::remove_file(path.join(MARK)).unwrap();
        run(path, "uid-a").unwrap_err();
        std::fs::rename(path.join("data"), path.join("ibdata1")).unwrap();
        let error = run(path, "uid-a").unwrap_err();
        assert!(error.contains("it has ibdata1"), "{error}");
        assert!(path.join("ibdata1/made").exists());
    }
}
