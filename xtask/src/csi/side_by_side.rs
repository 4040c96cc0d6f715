//! `csi-side-by-side`: one script played to the Go driver and to ours, on equal simulated clouds, with a comparison of
//! answers and of the objects left in the cloud.
//!
//! A group with a handover of volumes is also played with a first driver of one kind and a second of the other. The
//! answers of the second about a volume of the first are compared with its answers about its own.

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, bail};

use super::driver::Program;
use super::play::play;
use super::script::{Group, Script};
use super::{alone, disks};
use crate::differences::page::{self, Page};
use crate::differences::{Accepted, Difference, differences, plays};

const SCRIPT: &str = "tests/csi/side-by-side.yaml";
/// File of the [`Accepted`] differences.
const ACCEPTED: &str = "tests/csi/side-by-side-accepted.yaml";
const PAGE: Page = Page {
    file: "docs/guides/cinder-csi.md",
    command: "cargo xtask csi-side-by-side --page",
};
/// Server id from the metadata service of all plays; nodes are not looked up.
const NODE: &str = "11111111-1111-4111-8111-111111111111";

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// The Go driver, as `tests/kubernetes/build cinder-csi-plugin` builds it.
    #[arg(
        long,
        value_name = "FILE",
        default_value = "target/tools/cinder-csi-plugin"
    )]
    go: PathBuf,
    /// The program to compare, and the simulated cloud.
    #[arg(long, value_name = "FILE", default_value = "target/debug/ferrostack")]
    binary: PathBuf,
    /// Play only the groups with this word in the name.
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
    /// Play nothing; write the table of accepted differences to docs/guides/cinder-csi.md.
    #[arg(long)]
    page: bool,
}

/// Plays the script.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let accepted = Accepted::read(&root.join(ACCEPTED))?;
    if arguments.page {
        return page::write(root, PAGE, &accepted, false);
    }
    page::write(root, PAGE, &accepted, true)?;
    let script = Script::read(&root.join(SCRIPT))?;
    if !alone::is_inside() {
        return alone::run_inside(&[]);
    }
    disks::serve_metadata(NODE)?;
    let begun = Instant::now();
    let programs = Programs {
        go: Program::Go(std::path::absolute(&arguments.go)?),
        here: Program::Here(std::path::absolute(&arguments.binary)?),
        cloud: std::path::absolute(&arguments.binary)?,
    };
    let is_wanted = |group: &&Group| {
        let only = arguments.only.as_deref().unwrap_or_default();
        group.name.contains(only)
    };
    let groups: Vec<&Group> = script.groups.iter().filter(is_wanted).collect();
    let found = programs.compare(&groups)?;
    let (left, is_accepted) = accepted.report(&found, arguments.only.is_none());
    crate::print(&format!(
        "{} groups with {} requests to each driver, {} values that differ, {} not accepted, {:.0} s\n",
        groups.len(),
        script.requests(),
        found.len(),
        left,
        begun.elapsed().as_secs_f64()
    ))?;
    if !is_accepted {
        bail!("the drivers differ otherwise than {ACCEPTED} says");
    }
    Ok(())
}

/// Programs in a play.
struct Programs {
    go: Program,
    here: Program,
    cloud: PathBuf,
}

/// First and second driver of a play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cast {
    Go,
    Here,
    GoThenHere,
    HereThenGo,
}

impl Programs {
    fn of(&self, cast: Cast) -> [&Program; 2] {
        match cast {
            Cast::Go => [&self.go, &self.go],
            Cast::Here => [&self.here, &self.here],
            Cast::GoThenHere => [&self.go, &self.here],
            Cast::HereThenGo => [&self.here, &self.go],
        }
    }

    fn compare(&self, groups: &[&Group]) -> anyhow::Result<Vec<Difference>> {
        let mut wanted = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            wanted.extend([(index, Cast::Go), (index, Cast::Here)]);
            if group.handed_over {
                wanted.extend([(index, Cast::GoThenHere), (index, Cast::HereThenGo)]);
            }
        }
        let plays = plays::all(wanted.len(), async |number| {
            let (index, cast) = wanted[number];
            let group = groups[index];
            let seed = u32::try_from(number + 1)?;
            let played = play(group, &self.cloud, self.of(cast), seed).await;
            played.with_context(|| format!("{} ({cast:?})", group.name))
        })?;
        let mut found = Vec::new();
        for (index, group) in groups.iter().enumerate() {
            let of = |cast: Cast| {
                let at = wanted.iter().position(|it| *it == (index, cast));
                at.map(|at| &plays[at]).context("a play")
            };
            found.extend(differences(&group.name, of(Cast::Go)?, of(Cast::Here)?));
            if group.handed_over {
                let name = format!("{}, from Go", group.name);
                found.extend(differences(&name, of(Cast::GoThenHere)?, of(Cast::Here)?));
                let name = format!("{}, to Go", group.name);
                found.extend(differences(&name, of(Cast::Go)?, of(Cast::HereThenGo)?));
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_accepted_differences() {
        let root = crate::root();
        let accepted = Accepted::read(&root.join(ACCEPTED)).unwrap();
        page::write(&root, PAGE, &accepted, true).unwrap();
    }
}
