//! Two clients at once ask for whatever they like, while disks come, grow and go: what was answered holds, and nothing is
//! formatted twice.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;

use grpc::Status;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

use crate::machine::{MIB, Machine, Volume, isolated, sized};

/// The first volume is a file system, the other one a block device.
const KINDS: [&str; 2] = ["ext4", "block"];
const PODS: usize = 2;
const SMALLEST: u64 = 32 * MIB;
const LARGEST: u64 = 64 * MIB;
const DATA: &[u8] = b"what the first pod wrote";
/// Where a pod writes on a block device.
const OFFSET: u64 = MIB;
/// How often a call is repeated in the end.
const PATIENCE: usize = 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Stage(usize),
    Unstage(usize),
    Publish(usize, usize),
    Unpublish(usize, usize),
    Expand(usize),
}

impl Ask {
    fn volume(self) -> usize {
        match self {
            Self::Stage(volume) | Self::Unstage(volume) | Self::Expand(volume) => volume,
            Self::Publish(volume, _) | Self::Unpublish(volume, _) => volume,
        }
    }
}

/// Change of the disks before two clients call at once.
#[derive(Clone, Copy, Debug)]
enum Event {
    Nothing,
    Grow(usize),
    Lose(usize),
    Regain(usize),
}

/// Expected number of mounts at each path.
type Known = BTreeMap<String, usize>;

struct Test<'a> {
    machine: &'a Machine,
    volumes: Vec<Volume>,
    sizes: Vec<u64>,
    lost: Vec<bool>,
    written: Vec<bool>,
    known: Known,
}

fn staging(volume: usize) -> String {
    format!("staging-{volume}")
}

/// Block devices are published below `dev`, as those of a kubelet's plugin are.
fn target(volume: usize, pod: usize) -> String {
    match KINDS[volume] {
        "block" => format!("dev/pod-{volume}-{pod}"),
        _ => format!("pod-{volume}-{pod}"),
    }
}

impl<'a> Test<'a> {
    fn new(machine: &'a Machine, first: u8) -> Self {
        let numbers = first..first + 2;
        Self {
            machine,
            volumes: numbers.map(|it| machine.volume(it, SMALLEST)).collect(),
            sizes: vec![SMALLEST; KINDS.len()],
            lost: vec![false; KINDS.len()],
            written: vec![false; KINDS.len()],
            known: Known::new(),
        }
    }

    fn ask(&self, ask: Ask) -> Result<(), Status> {
        let index = ask.volume();
        let (volume, kind, size) = (&self.volumes[index], KINDS[index], self.sizes[index]);
        let staging = staging(index);
        match ask {
            Ask::Stage(_) => self.machine.stage_with(volume, &staging, kind, sized(size)),
            Ask::Unstage(_) => self.machine.unstage(volume, &staging),
            Ask::Publish(_, pod) => {
                let target = target(index, pod);
                self.machine
                    .publish(volume, (&staging, &target), kind, false)
            }
            Ask::Unpublish(_, pod) => self.machine.unpublish(volume, &target(index, pod)),
            Ask::Expand(_) => self
                .machine
                .expand_staged(volume, &staging, size, kind)
                .map(drop),
        }
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Nothing => {}
            Event::Grow(index) if self.sizes[index] < LARGEST => {
                self.sizes[index] += 16 * MIB;
                self.volumes[index].grow(self.sizes[index]);
            }
            Event::Lose(index) if !self.lost[index] => {
                self.machine.lose(&self.volumes[index]);
                self.lost[index] = true;
            }
            Event::Regain(index) if self.lost[index] => {
                self.machine.regain(&self.volumes[index]);
                self.lost[index] = false;
            }
            Event::Grow(_) | Event::Lose(_) | Event::Regain(_) => {}
        }
    }

    /// Both at once, and what is known afterwards.
    fn both(&mut self, asks: [Ask; 2]) {
        let [one, two] = asks;
        let answers = std::thread::scope(|scope| {
            let first = scope.spawn(|| self.ask(one));
            let second = self.ask(two);
            [first.join().unwrap(), second]
        });
        // Of two about one path nobody knows which came last.
        let before: Vec<_> = asks.iter().map(|ask| self.expected(*ask)).collect();
        let is_certain = before[0].0 != before[1].0 || before[0] == before[1];
        for ((path, mounts), answer) in before.into_iter().zip(&answers) {
            match answer {
                Ok(()) if is_certain => self.known.insert(path, mounts),
                _ => self.known.remove(&path),
            };
        }
        self.judge();
        for (ask, answer) in asks.into_iter().zip(answers) {
            if let (Ask::Publish(index, pod), Ok(())) = (ask, answer)
                && self.known.get(&target(index, pod)) == Some(&1)
                && !self.lost[index]
            {
                self.use_volume(index, pod);
            }
        }
    }

    /// The path that a request is about, and how many mounts it has when the answer is good.
    fn expected(&self, ask: Ask) -> (String, usize) {
        match ask {
            // Nothing is mounted of a block volume that is staged.
            Ask::Stage(index) if KINDS[index] == "block" => (staging(index), 0),
            Ask::Stage(index) => (staging(index), 1),
            Ask::Unstage(index) => (staging(index), 0),
            Ask::Publish(index, pod) => (target(index, pod), 1),
            Ask::Unpublish(index, pod) => (target(index, pod), 0),
            Ask::Expand(index) => {
                let path = staging(index);
                let mounts = self.machine.mounts(&path).len();
                (path, mounts)
            }
        }
    }

    fn judge(&self) {
        for (path, mounts) in &self.known {
            assert_eq!(self.machine.mounts(path).len(), *mounts, "{path}");
        }
    }

    /// A pod writes once, and afterwards whatever pod there is finds that.
    fn use_volume(&mut self, index: usize, pod: usize) {
        let path = self.machine.path(&target(index, pod));
        let (file, offset) = match KINDS[index] {
            "block" => (path, OFFSET),
            _ => (path.join("data"), 0),
        };
        if !self.written[index] {
            let open = File::options()
                .write(true)
                .create(KINDS[index] != "block")
                .truncate(false)
                .open(&file);
            let open = open.unwrap();
            open.write_all_at(DATA, offset).unwrap();
            open.sync_all().unwrap();
            self.written[index] = true;
        }
        let mut found = vec![0; DATA.len()];
        let open = File::open(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        open.read_exact_at(&mut found, offset).unwrap();
        assert_eq!(found, DATA, "{}", file.display());
    }

    fn until_done(&self, ask: Ask) {
        let mut last = None;
        for _ in 0..PATIENCE {
            match self.ask(ask) {
                Ok(()) => return,
                Err(status) => last = Some(status),
            }
        }
        panic!("{ask:?}: {last:?}");
    }

    /// All goes, comes again with its data, and goes.
    fn end(&mut self) {
        for index in 0..KINDS.len() {
            self.happen(Event::Regain(index));
            self.remove(index);
            self.until_done(Ask::Stage(index));
            self.until_done(Ask::Publish(index, 0));
            self.use_volume(index, 0);
            self.remove(index);
            for pod in 0..PODS {
                assert!(self.machine.mounts(&target(index, pod)).is_empty());
            }
            assert!(self.machine.mounts(&staging(index)).is_empty());
            drop(fs::remove_dir(self.machine.path(&staging(index))));
        }
    }

    fn remove(&self, index: usize) {
        for pod in 0..PODS {
            self.until_done(Ask::Unpublish(index, pod));
        }
        self.until_done(Ask::Unstage(index));
    }
}

fn ask() -> impl Strategy<Value = Ask> {
    let volume = || 0..KINDS.len();
    prop_oneof![
        3 => volume().prop_map(Ask::Stage),
        1 => volume().prop_map(Ask::Unstage),
        4 => (volume(), 0..PODS).prop_map(|(volume, pod)| Ask::Publish(volume, pod)),
        2 => (volume(), 0..PODS).prop_map(|(volume, pod)| Ask::Unpublish(volume, pod)),
        1 => volume().prop_map(Ask::Expand),
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let volume = || 0..KINDS.len();
    prop_oneof![
        5 => Just(Event::Nothing),
        1 => volume().prop_map(Event::Grow),
        1 => volume().prop_map(Event::Lose),
        2 => volume().prop_map(Event::Regain),
    ]
}

#[test]
fn two_clients_lose_no_data_and_format_nothing_twice() {
    let name = "model::two_clients_lose_no_data_and_format_nothing_twice";
    isolated(name, &["mkfs.ext4", "e2fsck", "resize2fs"], |machine| {
        let config = ProptestConfig {
            cases: 8,
            max_shrink_iters: 0,
            failure_persistence: None,
            ..ProptestConfig::default()
        };
        let turns = proptest::collection::vec((event(), [ask(), ask()]), 4..16);
        let number = RefCell::new(0);
        let played = TestRunner::new(config).run(&turns, |turns| {
            let first = number.replace_with(|it| *it + KINDS.len() as u8);
            let mut test = Test::new(machine, first);
            for (event, asks) in turns {
                test.happen(event);
                test.both(asks);
            }
            test.end();
            Ok(())
        });
        played.unwrap();
    });
}
