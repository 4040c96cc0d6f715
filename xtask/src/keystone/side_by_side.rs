//! `keystone-side-by-side`: one script and generated policies, played to the Go webhook and to ours on one simulated
//! cloud, and environments for both exec plugins; the answers are compared.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, bail};
use serde_json::Value;

use super::play::{call, play};
use super::script::{Group, Script};
use super::webhook::Program;
use super::world::World;
use super::{generated, plugin};
use crate::differences::names::Names;
use crate::differences::page::{self, Page};
use crate::differences::{Accepted, Difference, differences, plays};
use crate::simulated::PASSWORD;

const SCRIPT: &str = "tests/keystone/side-by-side.yaml";
/// File of the [`Accepted`] differences.
const ACCEPTED: &str = "tests/keystone/side-by-side-accepted.yaml";
const PAGE: Page = Page {
    file: "docs/guides/keystone-authentication.md",
    command: "cargo xtask keystone-side-by-side --page",
};

/// Arguments.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Arguments {
    /// Directory of the Go programs, as `tests/kubernetes/build k8s-keystone-auth` builds them.
    #[arg(long, value_name = "DIRECTORY", default_value = "target/tools")]
    go: PathBuf,
    /// The program to compare, and the simulated cloud.
    #[arg(long, value_name = "FILE", default_value = "target/debug/ferrostack")]
    binary: PathBuf,
    /// Generated policies besides the script, with eight requests each.
    #[arg(long, value_name = "COUNT", default_value_t = 500)]
    policies: u64,
    /// Number of the first generated policy.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    from: u64,
    /// Play only the groups with this word in the name.
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
    /// Play nothing; write the table of accepted differences to docs/guides/keystone-authentication.md.
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
    let begun = Instant::now();
    let mut world = World::open(&std::path::absolute(&arguments.binary)?)?;
    let mut names = names(&mut world)?;
    for request in &script.prepare {
        call(request, &mut names, world.admin()).with_context(|| request.path.clone())?;
    }
    let compared = Compared {
        allowed: AtomicUsize::new(0),
        programs: [
            Program::go(&arguments.go)?,
            Program::here(&arguments.binary)?,
        ],
        world,
        names,
    };
    let only = arguments.only.as_deref().unwrap_or_default();
    let numbers = arguments.from..arguments.from + arguments.policies;
    let policies: Vec<Group> = numbers.map(generated::group).collect();
    let groups = script.groups.iter().chain(&policies);
    let groups = groups.filter(|it| it.name.contains(only));
    let (last, groups): (Vec<&Group>, Vec<&Group>) = groups.partition(|it| it.last);
    let mut found = compared.compare(&groups)?;
    if plugin::GROUP.contains(only) {
        let of = |program| {
            let all = &script.plugins;
            plugin::play(all, program, &compared.world, &compared.names)
        };
        let [go, here] = &compared.programs;
        found.extend(differences(plugin::GROUP, &of(go)?, &of(here)?));
    }
    for group in last {
        found.extend(compared.compare(&[group])?);
    }
    let (left, is_accepted) = accepted.report(&found, only.is_empty());
    let asked: usize = policies.iter().map(|it| it.steps.len()).sum();
    crate::print(&format!(
        "{} requests of the script and {asked} about {} generated policies to each program, {} of them allowed by Go, {} values that differ, {} not accepted, {:.0} s\n",
        script.requests(),
        policies.len(),
        compared.allowed.load(Ordering::Relaxed),
        found.len(),
        left,
        begun.elapsed().as_secs_f64()
    ))?;
    if !is_accepted {
        bail!("the programs differ otherwise than {ACCEPTED} says");
    }
    Ok(())
}

/// [`Names`] for the objects of the simulated cloud.
fn names(world: &mut World) -> anyhow::Result<Names> {
    let mut names = Names::default();
    let keystone = world.keystone();
    names.insert("keystone", &keystone);
    names.insert("cloud", keystone.trim_end_matches("/identity/v3"));
    names.insert("password", PASSWORD);
    for (kind, of) in [
        ("users", "user"),
        ("projects", "project"),
        ("roles", "role"),
    ] {
        let list: Value =
            serde_json::from_slice(&world.admin().get(&format!("/identity/v3/{kind}"))?)?;
        for one in list[kind].as_array().into_iter().flatten() {
            let (id, name) = (one["id"].as_str(), one["name"].as_str());
            let name = name.unwrap_or_default().to_lowercase();
            names.insert(&format!("{of}-{name}"), id.context("an id")?);
        }
    }
    Ok(names)
}

/// Both programs, and shared state.
struct Compared {
    /// Number of requests that the Go webhook has allowed: with few, equal answers would prove little.
    allowed: AtomicUsize,
    programs: [Program; 2],
    world: World,
    names: Names,
}

impl Compared {
    fn compare(&self, groups: &[&Group]) -> anyhow::Result<Vec<Difference>> {
        let both = plays::all(groups.len(), async |index| {
            let group = groups[index];
            let both = self.both(group).await;
            both.with_context(|| group.name.clone())
        })?;
        Ok(both.into_iter().flatten().collect())
    }

    async fn both(&self, group: &Group) -> anyhow::Result<Vec<Difference>> {
        let [go, here] = &self.programs;
        let go = play(group, go, &self.world, &self.names).await?;
        let answers = go.answers.iter();
        let is_allowed =
            |(_, it): &&(String, Value)| it["answer"]["status"]["allowed"] == Value::Bool(true);
        let allowed = answers.filter(is_allowed).count();
        self.allowed.fetch_add(allowed, Ordering::Relaxed);
        let here = play(group, here, &self.world, &self.names).await?;
        Ok(differences(&group.name, &go, &here))
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

    #[test]
    fn the_script_can_be_read() {
        let script = Script::read(&crate::root().join(SCRIPT)).unwrap();
        assert!(script.requests() > 0);
    }
}
