//! Forms in which a disk carries the id of its volume.

use std::fs;
use std::path::Path;

/// Characters of a serial of virtio-blk and NVMe.
const CUT: usize = 20;

/// True if `serial` belongs to the volume: the whole id, with or without dashes, or its start where the bus cuts the
/// serial.
pub(super) fn is_of(serial: &str, volume: &str) -> bool {
    let serial = serial.trim_matches([' ', '\0', '\n']);
    let compact = volume.replace('-', "");
    if serial.is_empty() || compact.is_empty() {
        return false;
    }
    let same = |id: &str| serial.eq_ignore_ascii_case(id);
    let cut = |id: &str| id.len() > CUT && id.get(..CUT).is_some_and(same);
    same(volume) || same(&compact) || cut(volume) || cut(&compact)
}

/// True if a world wide name belongs to the volume: ESXi makes the name out of the id.
pub(super) fn is_wwn_of(wwn: &str, volume: &str) -> bool {
    let wwn = wwn.trim().to_ascii_lowercase();
    let digits = ["naa.", "eui.", "uuid.", "0x"]
        .iter()
        .find_map(|prefix| wwn.strip_prefix(prefix));
    let compact = volume.replace('-', "").to_ascii_lowercase();
    compact.len() == 32 && digits.is_some_and(|digits| digits.replace('-', "") == compact)
}

/// True if `serial` has the form of an id of a volume, or of the start of one.
fn is_of_any(serial: &str) -> bool {
    let serial = serial.trim_matches([' ', '\0', '\n']);
    let hex = |c: char| c.is_ascii_hexdigit();
    let dashed = serial.char_indices().all(|(at, c)| match at {
        8 | 13 | 18 | 23 => c == '-',
        _ => hex(c),
    });
    let compact = serial.chars().all(hex);
    serial.len() >= CUT && (dashed || compact)
}

/// Serials in the sysfs directory of a disk: of virtio-blk, of SCSI, of NVMe. Empty if absent.
pub(super) fn read(disk: &Path) -> [String; 3] {
    let text = |file: &str| fs::read_to_string(disk.join(file)).unwrap_or_default();
    let page = fs::read(disk.join("device/vpd_pg80")).unwrap_or_default();
    let serial = of_page(&page).unwrap_or_default().to_owned();
    [text("serial"), serial, text("device/serial")]
}

/// True if the disk with this sysfs directory may be a volume of the cloud: users write its content.
pub(crate) fn is_volume(disk: &Path) -> bool {
    read(disk).iter().any(|serial| is_of_any(serial))
}

/// Serial in page 0x80 of SCSI: four bytes of header, then the serial. `None` for another page.
pub(super) fn of_page(page: &[u8]) -> Option<&str> {
    let [_, 0x80, high, low, rest @ ..] = page else {
        return None;
    };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    let serial = rest.get(..length.min(rest.len()))?;
    std::str::from_utf8(serial).ok()
}

/// Names of the links of udev below `/dev/disk/by-id` for a volume, first the names that the Go driver knows.
pub(super) fn names(volume: &str) -> Vec<String> {
    let cut = volume.get(..CUT).unwrap_or(volume);
    let mut names = Vec::new();
    for prefix in [
        "virtio-",
        "scsi-0QEMU_QEMU_HARDDISK_",
        "scsi-SQEMU_QEMU_HARDDISK_",
        "nvme-QEMU_NVMe_Ctrl_",
    ] {
        for id in [cut, volume] {
            let name = format!("{prefix}{id}");
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.push(format!("wwn-0x{}", volume.replace('-', "")));
    names
}
