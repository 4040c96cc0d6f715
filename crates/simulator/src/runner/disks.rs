//! Volumes of a running machine, as files in its directory.
//!
//! `volumes/ID.json` comes, changes and goes with a volume. A runner that answers has created `volumes/answers`: then a
//! volume is attached once `volumes/ID.ready` exists, refused once `volumes/ID.failed` does, and detached once
//! `volumes/ID.ready` has gone again.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::json;

use super::fleet::write_private;
use crate::machine::{Volume, VolumeAnswer};

/// How many characters of the id are the serial number of a virtio disk.
const SERIAL: usize = 20;

/// Present step of the machine with a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    Taking,
    Having,
    Leaving,
}

/// Volumes of one boot of a machine.
pub(crate) struct Disks {
    directory: PathBuf,
    volumes: BTreeMap<String, (Volume, Doing)>,
    is_answering: bool,
}

impl Disks {
    /// Writes the volumes of a starting machine, and removes the files of an earlier boot.
    ///
    /// # Errors
    /// The directory cannot be written.
    pub(crate) fn open(machine: &Path, volumes: &[Volume]) -> io::Result<Self> {
        let directory = machine.join("volumes");
        match std::fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        std::fs::create_dir_all(&directory)?;
        let mut disks = Self {
            directory,
            volumes: BTreeMap::new(),
            is_answering: false,
        };
        for volume in volumes {
            disks.write(volume)?;
            let entry = (volume.clone(), Doing::Having);
            disks.volumes.insert(volume.id.clone(), entry);
        }
        Ok(disks)
    }

    /// True if the runner has begun to answer since the last call.
    pub(crate) fn begins_to_answer(&mut self) -> bool {
        let before = self.is_answering;
        self.is_answering = before || self.directory.join("answers").exists();
        self.is_answering && !before
    }

    /// Writes the files of new or grown volumes, and removes the files of withdrawn ones.
    ///
    /// # Errors
    /// A file cannot be written or removed.
    pub(crate) fn follow(&mut self, volumes: &[Volume]) -> io::Result<()> {
        for volume in volumes {
            let known = self.volumes.get(&volume.id);
            let doing = match known {
                // The file of a volume that the machine did not let go is not there any more.
                Some((before, Doing::Taking | Doing::Having))
                    if before == volume && self.file(&volume.id, "json").exists() =>
                {
                    continue;
                }
                Some((_, doing @ (Doing::Taking | Doing::Having))) => *doing,
                // A volume that comes back while leaving is taken anew.
                _ => Doing::Taking,
            };
            self.write(volume)?;
            let entry = (volume.clone(), doing);
            self.volumes.insert(volume.id.clone(), entry);
        }
        let gone: Vec<String> = self
            .volumes
            .iter()
            .filter(|(id, (_, doing))| {
                *doing != Doing::Leaving && !volumes.iter().any(|volume| volume.id == **id)
            })
            .map(|(id, _)| id.clone())
            .collect();
        for id in gone {
            remove(&self.file(&id, "json"))?;
            if let Some((_, doing)) = self.volumes.get_mut(&id) {
                *doing = Doing::Leaving;
            }
        }
        Ok(())
    }

    /// Returns the runner's answers since the last call, by volume.
    pub(crate) fn answers(&mut self) -> Vec<(String, VolumeAnswer)> {
        let mut answers = Vec::new();
        if !self.is_answering {
            return answers;
        }
        for (id, (_, doing)) in &self.volumes {
            let is_ready = self.file(id, "ready").exists();
            let failure = std::fs::read_to_string(self.file(id, "failed")).ok();
            let answer = match (doing, failure) {
                (Doing::Having, _) => continue,
                (_, Some(why)) => VolumeAnswer::Failed(why.trim().to_owned()),
                (Doing::Taking, None) if is_ready => VolumeAnswer::Ready,
                (Doing::Leaving, None) if !is_ready => VolumeAnswer::Gone,
                _ => continue,
            };
            answers.push((id.clone(), answer));
        }
        for (id, answer) in &answers {
            let _ = remove(&self.file(id, "failed"));
            match (answer, self.volumes.get_mut(id)) {
                // The cloud takes a volume that was refused away.
                (VolumeAnswer::Ready | VolumeAnswer::Failed(_), Some((_, doing))) => {
                    *doing = Doing::Having;
                }
                _ => drop(self.volumes.remove(id)),
            }
        }
        answers
    }

    fn file(&self, id: &str, kind: &str) -> PathBuf {
        self.directory.join(format!("{id}.{kind}"))
    }

    /// Writes a file whole: a runner never reads half of one.
    fn write(&self, volume: &Volume) -> io::Result<()> {
        let serial: String = volume.id.chars().take(SERIAL).collect();
        let content = json!({"id": volume.id, "size_gib": volume.size_gib, "serial": serial, "device": volume.device});
        let draft = self.file(&volume.id, "draft");
        write_private(&draft, content.to_string().as_bytes())?;
        std::fs::rename(draft, self.file(&volume.id, "json"))
    }
}

fn remove(file: &Path) -> io::Result<()> {
    match std::fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_volume_that_the_machine_does_not_let_go_is_shown_to_it_again() {
        let machine = tempfile::tempdir().unwrap();
        let at = machine.path().join("volumes");
        let volume = Volume {
            id: "a".to_owned(),
            device: "/dev/vdb".to_owned(),
            size_gib: 1,
        };
        let all = std::slice::from_ref(&volume);
        let mut disks = Disks::open(machine.path(), &[]).unwrap();
        std::fs::write(at.join("answers"), "").unwrap();
        assert!(disks.begins_to_answer());
        disks.follow(all).unwrap();
        std::fs::write(at.join("a.ready"), "").unwrap();
        assert_eq!(disks.answers(), [("a".to_owned(), VolumeAnswer::Ready)]);
        disks.follow(&[]).unwrap();
        assert!(!at.join("a.json").exists());
        std::fs::write(at.join("a.failed"), "in use\n").unwrap();
        let failed = VolumeAnswer::Failed("in use".to_owned());
        assert_eq!(disks.answers(), [("a".to_owned(), failed)]);
        // The cloud has the volume at the server again.
        disks.follow(all).unwrap();
        assert!(at.join("a.json").exists());
        assert_eq!(disks.answers(), []);
        disks.follow(&[]).unwrap();
        assert!(!at.join("a.json").exists());
        std::fs::remove_file(at.join("a.ready")).unwrap();
        assert_eq!(disks.answers(), [("a".to_owned(), VolumeAnswer::Gone)]);
    }
}
