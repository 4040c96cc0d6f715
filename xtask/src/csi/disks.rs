//! Role of a hypervisor, with a loop device and a link in `/dev/disk/by-id` for each volume of a server; and the
//! metadata service of the server.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::world::World;

/// Directory in which drivers search disks.
const LINKS: &str = "/dev/disk/by-id";
/// Address of the metadata service.
const METADATA: &str = "169.254.169.254:80";

/// Disks of one server.
pub(crate) struct Disks {
    directory: PathBuf,
    server: String,
    /// Device and size in GiB of each volume.
    have: BTreeMap<String, (String, u64)>,
}

impl Disks {
    pub(crate) fn new(world: &World, server: &str) -> anyhow::Result<Self> {
        let directory = world.directory().join("disks");
        std::fs::create_dir_all(&directory)?;
        Ok(Self {
            directory,
            server: server.to_owned(),
            have: BTreeMap::new(),
        })
    }

    /// Attaches, grows and detaches disks, following the state of the cloud.
    pub(crate) fn follow(&mut self, world: &mut World) -> anyhow::Result<()> {
        let mut wanted = BTreeMap::new();
        for volume in world.all("volumes")? {
            let mut attachments = volume["attachments"].as_array().into_iter().flatten();
            if attachments.any(|it| it["server_id"] == self.server.as_str()) {
                let id = volume["id"].as_str().context("the id of a volume")?;
                let size = volume["size"].as_u64().context("the size of a volume")?;
                wanted.insert(id.to_owned(), size);
            }
        }
        let gone: Vec<String> = self.have.keys().cloned().collect();
        for id in gone.iter().filter(|id| !wanted.contains_key(*id)) {
            self.take_away(id)?;
        }
        for (id, size) in wanted {
            self.bring(&id, size)?;
        }
        Ok(())
    }

    fn bring(&mut self, id: &str, size: u64) -> anyhow::Result<()> {
        let file = self.directory.join(id);
        match self.have.get_mut(id) {
            Some((_, has)) if *has == size => {}
            Some((device, has)) => {
                resize(&file, size)?;
                losetup(&["-c", device])?;
                *has = size;
            }
            None => {
                // Content written during a former attachment is kept.
                resize(&file, size)?;
                let device = losetup(&["-f", "--show", &file.to_string_lossy()])?;
                symlink(&device, link(id))?;
                self.have.insert(id.to_owned(), (device, size));
            }
        }
        Ok(())
    }

    fn take_away(&mut self, id: &str) -> anyhow::Result<()> {
        if let Some((device, _)) = self.have.remove(id) {
            std::fs::remove_file(link(id))?;
            losetup(&["-d", &device])?;
        }
        Ok(())
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        let left: Vec<String> = self.have.keys().cloned().collect();
        for id in left {
            // The device goes with the mounts of the namespace.
            let _ = self.take_away(&id);
        }
    }
}

fn link(id: &str) -> PathBuf {
    Path::new(LINKS).join(format!("virtio-{}", id.get(..20).unwrap_or(id)))
}

fn resize(file: &Path, gib: u64) -> anyhow::Result<()> {
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(file)
        .with_context(|| file.display().to_string())?;
    Ok(file.set_len(gib << 30)?)
}

fn losetup(arguments: &[&str]) -> anyhow::Result<String> {
    let ran = Command::new("losetup").args(arguments).output()?;
    if !ran.status.success() {
        let why = String::from_utf8_lossy(&ran.stderr);
        bail!("losetup {}: {}", arguments.join(" "), why.trim());
    }
    Ok(String::from_utf8(ran.stdout)?.trim().to_owned())
}

/// Serves metadata of a server until the end of the process.
pub(crate) fn serve_metadata(server: &str) -> anyhow::Result<()> {
    let facts = serde_json::json!({"uuid": server, "name": "node", "availability_zone": "nova", "devices": []});
    let body = facts.to_string();
    let answer = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let listener = TcpListener::bind(METADATA).context(METADATA)?;
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            // A client that has gone asks again.
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    Ok(())
}
