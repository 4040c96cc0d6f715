//! Circles of the top modules of a crate: modules that all need each other, so that none can be read or moved alone.
//!
//! The list of exceptions may only shrink, and is empty.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::syntax::{self, Names, Source};

/// Accepted circle, by its modules.
struct Circle {
    krate: &'static str,
    modules: &'static [&'static str],
}

const CIRCLES: &[Circle] = &[];

/// Top modules of a crate, each with the modules that it names and the place.
#[derive(Debug, Default)]
struct Graph {
    edges: BTreeMap<String, BTreeMap<String, String>>,
}

/// Circles that are not in the list, and entries without a circle.
pub(super) fn broken(sources: &[Source], names: &Names) -> Vec<String> {
    let crates = syntax::crates(sources);
    let mut problems = Vec::new();
    for krate in &crates {
        let graph = Graph::new(krate, sources, names);
        let listed = CIRCLES.iter().filter(|circle| circle.krate == *krate);
        let listed: Vec<&[&str]> = listed.map(|circle| circle.modules).collect();
        problems.extend(graph.differences(krate, &listed));
    }
    let unknown = CIRCLES
        .iter()
        .filter(|circle| !crates.contains(circle.krate));
    problems.extend(unknown.map(|circle| format!("there is no crate {}", circle.krate)));
    problems
}

impl Graph {
    fn new(krate: &str, sources: &[Source], names: &Names) -> Self {
        let root = [krate.to_owned()];
        let tops: BTreeSet<&str> = names.submodules(&root).collect();
        let mut graph = Self::default();
        for (source, _) in syntax::production(sources) {
            for path in &source.content.paths {
                let [of, top, ..] = path.module.as_slice() else {
                    continue;
                };
                if of != krate {
                    continue;
                }
                // A re-export of the root counts as its module.
                let named = names.named(&path.module, &path.path);
                let other = named.iter().find(|name| {
                    name[0] == *krate && name.get(1).is_some_and(|top| tops.contains(top.as_str()))
                });
                if let Some(name) = other
                    && name[1] != *top
                {
                    let edges = graph.edges.entry(top.clone()).or_default();
                    edges.entry(name[1].clone()).or_insert_with(|| {
                        format!("{}:{}: {}", source.name, path.line, syntax::joined(name))
                    });
                }
            }
        }
        graph
    }

    /// Differences between the circles found and the listed ones.
    fn differences(&self, krate: &str, listed: &[&[&str]]) -> Vec<String> {
        let mut problems = Vec::new();
        let circles = self.circles();
        let lists: Vec<BTreeSet<&str>> = listed
            .iter()
            .map(|modules| modules.iter().copied().collect())
            .collect();
        for circle in &circles {
            let known: Vec<&BTreeSet<&str>> = lists
                .iter()
                .filter(|list| !list.is_disjoint(circle))
                .collect();
            let all: BTreeSet<&str> = known.iter().copied().flatten().copied().collect();
            for module in circle.difference(&all) {
                problems.push(format!(
                    "crate {krate}: `{module}` is in a circle of modules (ARCHITECTURE.md), {circle:?}:{}",
                    self.way(module, module)
                ));
            }
            if let [first, second, ..] = known.as_slice() {
                let member =
                    |list: &BTreeSet<&str>| circle.iter().find(|it| list.contains(**it)).copied();
                if let (Some(one), Some(other)) = (member(first), member(second)) {
                    problems.push(format!(
                        "crate {krate}: two circles of modules have become one (ARCHITECTURE.md):{}{}",
                        self.way(one, other),
                        self.way(other, one)
                    ));
                }
            }
        }
        for list in &lists {
            let within: Vec<&BTreeSet<&str>> = circles
                .iter()
                .filter(|circle| !circle.is_disjoint(list))
                .collect();
            let all: BTreeSet<&str> = within.iter().copied().flatten().copied().collect();
            for module in list.difference(&all) {
                problems.push(format!(
                    "crate {krate}: `{module}` has left the circle: take it from the list (xtask/src/invariants/circles.rs)"
                ));
            }
            if within.len() > 1 {
                problems.push(format!(
                    "crate {krate}: a circle has fallen apart: list its {} parts (xtask/src/invariants/circles.rs): {within:?}",
                    within.len()
                ));
            }
        }
        problems
    }

    /// Strongly connected components with more than one module.
    fn circles(&self) -> Vec<BTreeSet<&str>> {
        let mut circles: Vec<BTreeSet<&str>> = Vec::new();
        let reached: BTreeMap<&str, BTreeSet<&str>> = self
            .edges
            .keys()
            .map(|module| (module.as_str(), self.reached(module)))
            .collect();
        for (module, forth) in &reached {
            let leads_back =
                |other: &&str| reached.get(other).is_some_and(|back| back.contains(module));
            if forth.contains(module) && !circles.iter().any(|circle| circle.contains(module)) {
                circles.push(forth.iter().copied().filter(leads_back).collect());
            }
        }
        circles
    }

    /// Modules reachable from a module, by one edge or more.
    fn reached(&self, module: &str) -> BTreeSet<&str> {
        self.origins(module).into_keys().collect()
    }

    /// Modules reachable from a module, each with its predecessor on a shortest path.
    fn origins(&self, module: &str) -> BTreeMap<&str, &str> {
        let mut origins = BTreeMap::new();
        let mut queue = VecDeque::new();
        queue.extend(
            self.edges
                .get_key_value(module)
                .map(|(name, _)| name.as_str()),
        );
        while let Some(from) = queue.pop_front() {
            for to in self.edges.get(from).into_iter().flat_map(BTreeMap::keys) {
                if !origins.contains_key(to.as_str()) {
                    origins.insert(to.as_str(), from);
                    queue.push_back(to);
                }
            }
        }
        origins
    }

    /// Shortest path from a module to another or to itself, one line for each edge.
    fn way(&self, from: &str, to: &str) -> String {
        let origins = self.origins(from);
        let mut steps = Vec::new();
        let mut at = to;
        while let Some(before) = origins.get(at) {
            let place = self.edges.get(*before).and_then(|edges| edges.get(at));
            let place = place.map(String::as_str).unwrap_or_default();
            steps.push(format!("\n    {before} -> {at}  {place}"));
            at = before;
            if at == from {
                break;
            }
        }
        steps.reverse();
        steps.concat()
    }
}

#[cfg(test)]
mod tests;
