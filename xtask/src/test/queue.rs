//! Order of the test programs.

use super::{Executable, Target};

/// Programs with fixed ports on addresses derived from the process id. Two such programs could collide, so one runs at
/// a time. `.config/nextest.toml` has the same group.
const OF_ADDRESSES: [(&str, &str); 4] = [
    ("crates/ferrostack", "suite"),
    ("crates/ferrostack", "ferrostack"),
    ("crates/testbed", "life"),
    ("crates/mover", "mover"),
];

/// Programs that have not begun.
#[derive(Debug)]
pub(super) struct Queue {
    waiting: Vec<Executable>,
    /// True while a program of [`OF_ADDRESSES`] runs.
    has_addresses: bool,
}

impl Queue {
    /// Queue with the exclusive programs first, so that the end does not wait for them; then by size, since larger
    /// programs have more tests.
    pub(super) fn new(mut programs: Vec<Executable>) -> Self {
        let size = |it: &Executable| std::fs::metadata(&it.path).map_or(0, |file| file.len());
        programs.sort_by_cached_key(|it| std::cmp::Reverse((has_addresses(it), size(it))));
        Self {
            waiting: programs,
            has_addresses: false,
        }
    }

    /// Next program. `None` if all waiting ones are exclusive with a running one; its runner continues later.
    pub(super) fn next(&mut self) -> Option<Executable> {
        let taken = self.has_addresses;
        let place = self
            .waiting
            .iter()
            .position(|it| !(taken && has_addresses(it)))?;
        let program = self.waiting.remove(place);
        self.has_addresses |= has_addresses(&program);
        Some(program)
    }

    pub(super) fn done(&mut self, program: &Executable) {
        self.has_addresses &= !has_addresses(program);
    }
}

fn has_addresses(program: &Executable) -> bool {
    let (Target::Units(name) | Target::Tests(name)) = &program.target;
    OF_ADDRESSES.contains(&(program.folder.as_str(), name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(folder: &str, name: &str) -> Executable {
        Executable {
            folder: folder.to_owned(),
            target: Target::Tests(name.to_owned()),
            path: name.into(),
        }
    }

    #[test]
    fn of_the_programs_with_addresses_one_runs_at_a_time() {
        let suite = program("crates/ferrostack", "suite");
        let mover = program("crates/mover", "mover");
        let csi = program("crates/csi", "csi");
        let mut queue = Queue::new(vec![csi.clone(), suite.clone(), mover.clone()]);
        let first = queue.next().unwrap();
        assert!(has_addresses(&first));
        assert_eq!(queue.next(), Some(csi));
        assert_eq!(queue.next(), None);
        queue.done(&first);
        let second = queue.next().unwrap();
        assert!(has_addresses(&second) && second != first);
        assert_eq!(queue.next(), None);
    }

    #[test]
    fn nextest_keeps_the_same_programs_apart() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        let nextest = std::fs::read_to_string(root.join("../.config/nextest.toml")).unwrap();
        let end = nextest.split_once("test-group = \"addresses\"").unwrap().0;
        let group = end.rsplit_once("filter = ").unwrap().1;
        for (folder, name) in OF_ADDRESSES {
            let package = folder
                .replace("crates/", "ferrostack-")
                .replace("-ferrostack", "");
            assert!(group.contains(&format!("package({package})")), "{package}");
            let is_units = name == "ferrostack";
            assert!(
                is_units || group.contains(&format!("binary({name})")),
                "{name}"
            );
        }
    }
}
