//! Number of volumes that this server can take. No API of OpenStack answers that.

use crate::device::Bus;

/// Limit for the scheduler: `option` if set, otherwise the slots of the bus less the disks of others. `ours`: disks
/// that are volumes of this driver.
///
/// As in the Go driver, 0 means no limit; a value below 0 or above 256 counts as 256.
pub fn volumes(option: Option<i64>, disks: &[Bus], ours: usize) -> i64 {
    const MOST: i64 = 256;
    if let Some(option) = option {
        return if (0..=MOST).contains(&option) {
            option
        } else {
            MOST
        };
    }
    let others = disks.len().saturating_sub(ours);
    let slots = slots(disks).saturating_sub(others);
    // 0 would mean no limit.
    i64::try_from(slots).unwrap_or(MOST).clamp(1, MOST)
}

/// Slots of the [`Bus`] with most disks: Nova attaches a volume to the bus that the image names.
fn slots(disks: &[Bus]) -> usize {
    let count = |bus: Bus| disks.iter().filter(|one| **one == bus).count();
    let most = [Bus::Scsi, Bus::Virtio, Bus::Nvme]
        .into_iter()
        .max_by_key(|bus| count(*bus));
    match most {
        // Each disk takes a PCI slot; libvirt leaves at least 26 free.
        Some(Bus::Virtio | Bus::Nvme) if !disks.is_empty() => 26,
        _ => 256,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_option_wins_and_otherwise_slots_are_counted() {
        use Bus::{Nvme, Scsi, Virtio};
        for (option, disks, ours, limit) in [
            (Some(20), &[Virtio][..], 0, 20),
            (Some(0), &[Virtio], 0, 0),
            (Some(-1), &[Virtio], 0, 256),
            (Some(257), &[Virtio], 0, 256),
            (None, &[], 0, 256),
            (None, &[Virtio], 0, 25),
            (None, &[Virtio, Virtio, Virtio], 2, 25),
            (None, &[Virtio, Virtio, Virtio], 0, 23),
            (None, &[Scsi], 0, 255),
            (None, &[Scsi, Scsi, Virtio], 1, 254),
            (None, &[Nvme], 0, 25),
            (None, &[Virtio; 40], 0, 1),
        ] {
            assert_eq!(
                volumes(option, disks, ours),
                limit,
                "{option:?} {disks:?} {ours}"
            );
        }
    }

    proptest! {
        /// A volume that is attached is ours or not, and counts in either case.
        #[test]
        fn staging_a_volume_changes_no_limit(others in 0_usize..10, ours in 0_usize..10) {
            let disks = vec![Bus::Virtio; others + ours];
            let alone = vec![Bus::Virtio; others];
            prop_assume!(!alone.is_empty());
            prop_assert_eq!(volumes(None, &disks, ours), volumes(None, &alone, 0));
        }
    }
}
