//! Commands of an upgrade outside of the programs: checks, schemas and data of each service, as data.

use super::{Phase, Step};
use crate::cloud::Cloud;
use crate::desired;
use crate::held::Credentials;
use crate::object::Object;
use crate::release::Release;
use crate::service::definition::Task;

/// Command of an upgrade.
#[derive(Clone, Copy, Debug)]
pub(super) struct Command {
    /// [`Phase`] of the command.
    pub(super) phase: Phase,
    /// Name, also of its step.
    pub(super) name: &'static str,
    /// Service.
    pub(super) part: &'static str,
    /// Task of the new release with the same files, user and nodes.
    like: &'static str,
    /// Words, without the options for configuration files.
    words: &'static [&'static str],
    /// Meaning of the exit status.
    how: How,
    /// Preceding command of the same phase.
    after: Option<&'static str>,
}

/// Meaning of the exit status of a [`Command`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// The same as for every task.
    Once,
    /// As for `*-status upgrade check`: 0 is good, 1 is good with a warning, which is kept, everything else is bad.
    Judged,
    /// As for `online_data_migrations`: 0 when nothing is left, 1 when a batch is done and more may be left.
    Batches,
}

/// Script that keeps a warning for the status of the Pod.
const JUDGED: &str = "said=$(\"$0\" \"$@\" 2>&1); code=$?
printf '%s\\n' \"$said\"
test $code = 1 || exit $code
printf '%s\\n' \"$said\" | tail -c 2000 >/dev/termination-log";
/// Script that continues after each batch with changes.
const BATCHES: &str = "while :; do
\"$0\" \"$@\"; code=$?
test $code = 1 || exit $code
done";

/// Rows of one batch of migrated data.
const BATCH: &str = "1000";

const fn row(
    phase: Phase,
    name: &'static str,
    part: &'static str,
    like: &'static str,
    words: &'static [&'static str],
) -> Command {
    Command {
        phase,
        name,
        part,
        like,
        words,
        how: match phase {
            Check => How::Judged,
            _ => How::Once,
        },
        after: None,
    }
}

const fn batches(row: Command) -> Command {
    Command {
        how: How::Batches,
        ..row
    }
}

const fn after(name: &'static str, row: Command) -> Command {
    Command {
        after: Some(name),
        ..row
    }
}

const KEYSTONE: (&str, &str) = ("keystone", "keystone-schema");
const PLACEMENT: (&str, &str) = ("placement", "placement-schema");
const GLANCE: (&str, &str) = ("glance", "glance-schema");
const NEUTRON: (&str, &str) = ("neutron", "neutron-schema");
const NOVA: (&str, &str) = ("nova", "nova-schema");

const fn of(
    (part, like): (&'static str, &'static str),
    phase: Phase,
    name: &'static str,
    words: &'static [&'static str],
) -> Command {
    row(phase, name, part, like, words)
}

use Phase::{Check, Contract, Expand, Migrate};

/// 2025.1 to 2026.1. Old code works on every expanded schema. Keystone and Glance migrate their data before new code
/// starts, as required by both; Nova and Placement afterwards.
const EPOXY_TO_GAZPACHO: [Command; 18] = [
    of(
        KEYSTONE,
        Check,
        "keystone-check",
        &["keystone-status", "upgrade", "check"],
    ),
    of(
        PLACEMENT,
        Check,
        "placement-check",
        &["placement-status", "upgrade", "check"],
    ),
    of(
        GLANCE,
        Check,
        "glance-check",
        &["glance-status", "upgrade", "check"],
    ),
    of(
        NEUTRON,
        Check,
        "neutron-check",
        &["neutron-status", "upgrade", "check"],
    ),
    of(
        NOVA,
        Check,
        "nova-check",
        &["nova-status", "upgrade", "check"],
    ),
    of(
        KEYSTONE,
        Expand,
        "keystone-expand",
        &["keystone-manage", "db_sync", "--expand"],
    ),
    after(
        "keystone-expand",
        of(
            KEYSTONE,
            Expand,
            "keystone-migrate",
            &["keystone-manage", "db_sync", "--migrate"],
        ),
    ),
    of(
        PLACEMENT,
        Expand,
        "placement-expand",
        &["placement-manage", "db", "sync"],
    ),
    of(
        GLANCE,
        Expand,
        "glance-expand",
        &["glance-manage", "db", "expand"],
    ),
    after(
        "glance-expand",
        of(
            GLANCE,
            Expand,
            "glance-migrate",
            &["glance-manage", "db", "migrate"],
        ),
    ),
    of(
        NEUTRON,
        Expand,
        "neutron-expand",
        &["neutron-db-manage", "upgrade", "--expand"],
    ),
    of(
        NOVA,
        Expand,
        "nova-api-expand",
        &["nova-manage", "api_db", "sync"],
    ),
    after(
        "nova-api-expand",
        of(NOVA, Expand, "nova-expand", &["nova-manage", "db", "sync"]),
    ),
    batches(of(
        PLACEMENT,
        Migrate,
        "placement-migrate",
        &[
            "placement-manage",
            "db",
            "online_data_migrations",
            "--max-count",
            BATCH,
        ],
    )),
    batches(of(
        NOVA,
        Migrate,
        "nova-migrate",
        &[
            "nova-manage",
            "db",
            "online_data_migrations",
            "--max-count",
            BATCH,
        ],
    )),
    of(
        KEYSTONE,
        Contract,
        "keystone-contract",
        &["keystone-manage", "db_sync", "--contract"],
    ),
    of(
        GLANCE,
        Contract,
        "glance-contract",
        &["glance-manage", "db", "contract"],
    ),
    of(
        NEUTRON,
        Contract,
        "neutron-contract",
        &["neutron-db-manage", "upgrade", "--contract"],
    ),
];

/// [`Command`]s of an upgrade from a release to the next one.
pub(super) fn all(from: Release) -> &'static [Command] {
    match from {
        Release::Epoxy => &EPOXY_TO_GAZPACHO,
        Release::Zed | Release::Gazpacho => &[],
    }
}

/// [`Step`]s of these commands in a cloud of the new release, each with its phase, and the policies for their
/// databases.
pub(super) fn steps(
    cloud: &Cloud,
    held: &Credentials,
    from: Release,
) -> (Vec<(Phase, Step)>, Vec<Object>) {
    let tasks = all(from).iter().filter_map(|command| {
        let like = desired::task_named(cloud, held, command.like)?;
        // A check that fails is shown at once; the others may have met a database that was busy.
        let retries = match command.how {
            How::Judged => 1,
            How::Once | How::Batches => 6,
        };
        Some((command, (command.part, command.task(like), retries)))
    });
    let (commands, tasks): (Vec<&Command>, Vec<_>) = tasks.unzip();
    let (steps, policies) = desired::beside(cloud, held, &tasks);
    let phases = commands.iter().map(|it| it.phase);
    (phases.zip(steps).collect(), policies)
}

impl Command {
    /// [`Task`] with the files, user and directories of `like`.
    fn task(&self, like: Task) -> Task {
        let mut run = like.run;
        let files = files(&run.command);
        let (program, rest) = self.words.split_first().unwrap_or((&"", &[]));
        let script = match self.how {
            How::Once => None,
            How::Judged => Some(JUDGED),
            How::Batches => Some(BATCHES),
        };
        let shell = script.map(|it| ["/bin/sh", "-c", it]);
        let words = shell.into_iter().flatten().chain([*program]);
        run.command = words.map(str::to_owned).collect();
        run.command.extend(files);
        run.command.extend(rest.iter().map(|it| (*it).to_owned()));
        Task {
            name: self.name,
            run,
            needs: self.after.map_or_else(Vec::new, |it| vec![it]),
            // It runs in the new release, whose files it has.
            repeat: true,
        }
    }
}

/// Options of a command for configuration files.
fn files(command: &[String]) -> Vec<String> {
    let pairs = command.iter().zip(command.iter().skip(1));
    let named = pairs.filter(|(flag, _)| flag.starts_with("--config-"));
    named
        .flat_map(|(flag, value)| [flag.clone(), value.clone()])
        .collect()
}

/// Warnings of a check, a line each: the name of each check with a warning, and its details.
pub(super) fn warnings(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let (mut check, mut warned, mut last) = (String::new(), false, false);
    for line in text.lines() {
        let line = line.trim();
        // Rows of a table; what else the program said is not of it.
        let Some(row) = line.strip_prefix('|').and_then(|it| it.strip_suffix('|')) else {
            last = false;
            continue;
        };
        let row = row.trim();
        if let Some(name) = row.strip_prefix("Check:") {
            (check, warned) = (name.trim().to_owned(), false);
        } else if let Some(result) = row.strip_prefix("Result:") {
            warned = result.trim() == "Warning";
            if warned {
                found.push(check.clone());
            }
        } else if let (Some(details), true) = (row.strip_prefix("Details:"), warned) {
            last = true;
            if let Some(text) = found.last_mut() {
                text.push_str(": ");
                text.push_str(details.trim());
            }
        } else if let (true, Some(text)) = (last, found.last_mut()) {
            // A long text goes on in the next row.
            text.push(' ');
            text.push_str(row);
        }
    }
    if found.is_empty() && !text.trim().is_empty() {
        let lines: Vec<&str> = text
            .lines()
            .map(str::trim)
            .filter(|it| !it.is_empty())
            .collect();
        found.push(lines.join(" "));
    }
    found
}
