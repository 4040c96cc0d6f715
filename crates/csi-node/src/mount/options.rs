//! Mount options as users write them, split into [`MountFlags`] of the kernel and data of the file system.

use rustix::mount::MountFlags;

/// Flags and data of a mount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Flags of the kernel.
    pub flags: MountFlags,
    /// Options of the file system, joined by commas, as given:
    /// `errors=continue,context="system_u:object_r:svirt_t:s0:c1,c2"`.
    pub data: String,
}

impl Options {
    /// Parses options; later ones win, as in `mount`.
    pub fn parse<'a>(given: impl IntoIterator<Item = &'a str>) -> Self {
        let mut flags = MountFlags::empty();
        let mut data: Vec<&str> = Vec::new();
        for option in given.into_iter().flat_map(split) {
            match FLAGS.iter().find(|(name, _, _)| *name == option) {
                Some((_, flag, set)) => flags.set(*flag, *set),
                None if is_of_user_space(option) => {}
                None => data.push(option),
            }
        }
        Self {
            flags,
            data: data.join(","),
        }
    }

    /// Adds an option, unless present.
    #[must_use]
    pub fn with(mut self, option: &str) -> Self {
        if !split(&self.data).any(|one| one == option) {
            if !self.data.is_empty() {
                self.data.push(',');
            }
            self.data.push_str(option);
        }
        self
    }

    /// True if the mount is read-only.
    pub fn is_read_only(&self) -> bool {
        self.flags.contains(MountFlags::RDONLY)
    }
}

/// True for options that `mount` and systemd consume: the kernel never sees these.
fn is_of_user_space(option: &str) -> bool {
    [
        "", "auto", "noauto", "defaults", "_netdev", "nofail", "user", "nouser", "bind",
    ]
    .contains(&option)
        || option.starts_with("x-")
        || option.starts_with("X-")
        || option.starts_with("comment=")
}

/// Splits at commas outside double quotes: the categories of an SELinux context have commas.
fn split(options: &str) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    options.split(move |c| {
        quoted ^= c == '"';
        c == ',' && !quoted
    })
}

#[rustfmt::skip]
const FLAGS: &[(&str, MountFlags, bool)] = &[
    ("async", MountFlags::SYNCHRONOUS, false),
    ("atime", MountFlags::NOATIME, false),
    ("dev", MountFlags::NODEV, false),
    ("diratime", MountFlags::NODIRATIME, false),
    ("dirsync", MountFlags::DIRSYNC, true),
    ("exec", MountFlags::NOEXEC, false),
    ("lazytime", MountFlags::LAZYTIME, true),
    ("noatime", MountFlags::NOATIME, true),
    ("nodev", MountFlags::NODEV, true),
    ("nodiratime", MountFlags::NODIRATIME, true),
    ("noexec", MountFlags::NOEXEC, true),
    ("nolazytime", MountFlags::LAZYTIME, false),
    ("norelatime", MountFlags::RELATIME, false),
    ("nostrictatime", MountFlags::STRICTATIME, false),
    ("nosuid", MountFlags::NOSUID, true),
    ("nosymfollow", MountFlags::NOSYMFOLLOW, true),
    ("relatime", MountFlags::RELATIME, true),
    ("ro", MountFlags::RDONLY, true),
    ("rw", MountFlags::RDONLY, false),
    ("silent", MountFlags::SILENT, true),
    ("strictatime", MountFlags::STRICTATIME, true),
    ("suid", MountFlags::NOSUID, false),
    ("symfollow", MountFlags::NOSYMFOLLOW, false),
    ("sync", MountFlags::SYNCHRONOUS, true),
];
