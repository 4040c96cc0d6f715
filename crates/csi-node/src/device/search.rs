//! [`Devices`] of a real machine: sysfs and the links of udev.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Bus, Devices, Disk, Error, serial};

/// Prefixes of disks made of software, without a serial. Nova attaches none of these kinds.
const SOFTWARE: [&str; 7] = ["dm-", "loop", "md", "nbd", "ram", "sr", "zram"];

/// Bus and bus address of the disk of a volume (`scsi`, `0:0:0:2`), as listed by the metadata service.
pub type Addresses = Arc<dyn Fn(&str) -> Option<(String, String)> + Send + Sync>;

/// Search for disks below the directories of sysfs and of devices.
#[derive(Clone)]
pub struct Search {
    sys: PathBuf,
    dev: PathBuf,
    addresses: Option<Addresses>,
}

impl Search {
    /// Search in the given directories: `/sys` and `/dev`, except in tests.
    pub fn new(sys: impl Into<PathBuf>, dev: impl Into<PathBuf>) -> Self {
        Self {
            sys: sys.into(),
            dev: dev.into(),
            addresses: None,
        }
    }

    /// Adds the [`Addresses`], asked for a volume with neither a serial nor a link.
    #[must_use]
    pub fn with_addresses(mut self, addresses: Addresses) -> Self {
        self.addresses = Some(addresses);
        self
    }

    /// Disks of `/sys/block` whose own attributes name the volume: pairs of name and evidence.
    fn by_serial(&self, volume: &str) -> Vec<(String, String)> {
        let mut found = Vec::new();
        for name in self.hardware() {
            let disk = self.block(&name);
            let text = |file: &str| fs::read_to_string(disk.join(file)).unwrap_or_default();
            let serials = serial::read(&disk);
            let named = serials.iter().find(|one| serial::is_of(one, volume));
            let wwns = [text("wwid"), text("device/wwid")];
            let wwn = wwns.iter().find(|one| serial::is_wwn_of(one, volume));
            if let Some(one) = named {
                let one = one.trim_matches([' ', '\0', '\n']);
                found.push((name, format!("serial {one}")));
            } else if let Some(one) = wwn {
                found.push((name, format!("world wide name {}", one.trim())));
            }
        }
        found
    }

    /// Disks at the end of the links of udev for the volume.
    fn by_link(&self, volume: &str) -> Vec<(String, String)> {
        let directory = self.dev.join("disk/by-id");
        let links = serial::names(volume).into_iter();
        let found = links.filter_map(|link| {
            let name = target(&directory.join(&link))?;
            Some((name, format!("link {link}")))
        });
        found.collect()
    }

    /// Disk at `/dev/disk/by-path/*-<bus>-<address>`. Hyper-V needs this search: its disks carry no serial.
    fn by_address(&self, volume: &str) -> Vec<(String, String)> {
        let asked = self.addresses.as_ref().and_then(|ask| ask(volume));
        let Some((bus, address)) = asked else {
            return Vec::new();
        };
        let end = format!("-{bus}-{address}");
        let directory = self.dev.join("disk/by-path");
        let links = entries(&directory).into_iter();
        let found = links
            .filter(|link| link.ends_with(&end))
            .filter_map(|link| {
                let name = target(&directory.join(&link))?;
                Some((name, format!("address {bus} {address}")))
            });
        found.collect()
    }

    /// Reduces the matches to one [`Disk`]: paths of a multipath disk count as their common device.
    fn single(&self, volume: &str, found: Vec<(String, String)>) -> Result<Option<Disk>, Error> {
        let mut disks = BTreeSet::new();
        let mut by = String::new();
        for (name, how) in found {
            disks.insert(self.multipath(&name).unwrap_or(name));
            by = how;
        }
        let mut names = disks.iter();
        match (names.next(), names.next()) {
            (None, _) => Ok(None),
            (Some(name), None) => self.disk(name, by).map(Some),
            (Some(_), Some(_)) => Err(Error::Ambiguous {
                volume: volume.to_owned(),
                disks: disks.into_iter().collect::<Vec<_>>().join(", "),
            }),
        }
    }

    /// Multipath device that holds a disk.
    fn multipath(&self, name: &str) -> Option<String> {
        let mut holders = self.holders(name).into_iter();
        holders.find(|holder| {
            let uuid = fs::read_to_string(self.block(holder).join("dm/uuid"));
            uuid.is_ok_and(|uuid| uuid.starts_with("mpath-"))
        })
    }

    fn holders(&self, name: &str) -> Vec<String> {
        entries(&self.block(name).join("holders"))
    }

    fn disk(&self, name: &str, by: String) -> Result<Disk, Error> {
        let file = self.block(name).join("size");
        let unreadable = |source| Error::Unreadable {
            path: file.clone(),
            source,
        };
        let text = fs::read_to_string(&file).map_err(unreadable)?;
        let sectors: u64 = text
            .trim()
            .parse()
            .map_err(|_| unreadable(io::ErrorKind::InvalidData.into()))?;
        Ok(Disk {
            name: name.to_owned(),
            path: self.dev.join(name),
            // sysfs counts sectors of 512 bytes, also for disks with larger ones.
            size: sectors.saturating_mul(512),
            by,
            holder: self.holders(name).into_iter().next(),
        })
    }

    /// Names of disks, without the [`SOFTWARE`] ones.
    fn hardware(&self) -> Vec<String> {
        let mut names = entries(&self.sys.join("block"));
        names.retain(|name| !SOFTWARE.iter().any(|kind| name.starts_with(kind)));
        names
    }

    fn block(&self, name: &str) -> PathBuf {
        self.sys.join("block").join(name)
    }
}

impl Devices for Search {
    fn find(&self, volume: &str) -> Result<Option<Disk>, Error> {
        let ways = [Self::by_serial, Self::by_link, Self::by_address];
        for way in ways {
            if let Some(disk) = self.single(volume, way(self, volume))? {
                return Ok(Some(disk));
            }
        }
        Ok(None)
    }

    fn rescan(&self, disk: Option<&Disk>) {
        // An absent or read-only file belongs to a bus that needs no scan.
        let write = |path: PathBuf, text: &str| drop(fs::write(path, text));
        if let Some(disk) = disk {
            write(self.block(&disk.name).join("device/rescan"), "1");
        }
        for (class, file, text) in [
            ("scsi_host", "scan", "- - -"),
            ("nvme", "rescan_controller", "1"),
        ] {
            let directory = self.sys.join("class").join(class);
            for host in entries(&directory) {
                write(directory.join(host).join(file), text);
            }
        }
    }

    fn buses(&self) -> Vec<Bus> {
        let names = self.hardware().into_iter();
        let bus = |name: String| match name.get(..2) {
            Some("nv") => Bus::Nvme,
            Some("vd") => Bus::Virtio,
            _ => Bus::Scsi,
        };
        names.map(bus).collect()
    }

    fn exists(&self, major: u32, minor: u32) -> bool {
        let number = format!("dev/block/{major}:{minor}");
        self.sys.join(number).exists()
    }
}

/// Name of the device at the end of a link.
fn target(link: &Path) -> Option<String> {
    let target = fs::canonicalize(link).ok()?;
    let name = target.file_name().and_then(OsStr::to_str)?;
    Some(name.to_owned())
}

/// Names in a directory, sorted; none if it is absent.
fn entries(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect();
    names.sort();
    names
}
