//! Resolution of paths.

use std::collections::{BTreeSet, HashMap};

use super::{Absolute, Source, Written, production};

/// Maximum length of a chain of imports.
const DEEPEST: usize = 12;

/// Modules of the workspace with their imports.
#[derive(Debug, Default)]
pub(crate) struct Names {
    scopes: HashMap<Absolute, Scope>,
}

/// Names in a module with a meaning elsewhere.
#[derive(Debug, Default)]
struct Scope {
    submodules: BTreeSet<String>,
    /// Imports by name, including imports in functions: a name may have several meanings.
    imports: HashMap<String, Vec<Written>>,
    globs: Vec<Written>,
}

impl Names {
    pub(crate) fn from_sources(sources: &[Source]) -> Self {
        let mut names = Self::default();
        for (source, module) in production(sources) {
            names.scopes.entry(module.clone()).or_default();
            for declared in &source.content.modules {
                if let Some((name, parent)) = declared.module.split_last() {
                    let scope = names.scopes.entry(parent.to_vec()).or_default();
                    scope.submodules.insert(name.clone());
                    names.scopes.entry(declared.module.clone()).or_default();
                }
            }
            for import in &source.content.imports {
                let scope = names.scopes.entry(import.module.clone()).or_default();
                match &import.name {
                    Some(name) => {
                        let paths = scope.imports.entry(name.clone()).or_default();
                        paths.push(import.path.clone());
                    }
                    None => scope.globs.push(import.path.clone()),
                }
            }
        }
        names
    }

    /// All targets of a path: as written, the item it is imported from, and so on. Empty for a name without an import,
    /// such as a variable.
    pub(crate) fn named(&self, module: &[String], path: &Written) -> Vec<Absolute> {
        let mut found = Vec::new();
        self.look_up(module, path, DEEPEST, &mut found);
        found
    }

    /// Names of the modules directly below a module.
    pub(crate) fn submodules(&self, module: &[String]) -> impl Iterator<Item = &str> {
        let scope = self.scopes.get(module);
        let all = scope.into_iter().flat_map(|scope| &scope.submodules);
        all.map(String::as_str)
    }

    fn look_up(&self, module: &[String], path: &Written, depth: usize, found: &mut Vec<Absolute>) {
        let Some((first, rest)) = path.segments.split_first() else {
            return;
        };
        if depth == 0 || path.is_external {
            return found.push(path.segments.clone());
        }
        match first.as_str() {
            "crate" => self.follow([&module[..1], rest].concat(), depth, found),
            "self" if !rest.is_empty() => self.go_up(module, &path.segments[1..], depth, found),
            "super" => self.go_up(module, &path.segments, depth, found),
            "self" | "Self" => {}
            _ => self.look_up_name(module, path, depth, found),
        }
    }

    /// Resolves `super::super::a` from a module.
    fn go_up(&self, module: &[String], path: &[String], depth: usize, found: &mut Vec<Absolute>) {
        let up = path.iter().take_while(|it| *it == "super").count();
        // In functions, `super` may be repeated more often than there are modules.
        let kept = module.len().saturating_sub(up).max(1);
        self.follow([&module[..kept], &path[up..]].concat(), depth, found);
    }

    /// Resolves a path that begins with a name in its module.
    fn look_up_name(
        &self,
        module: &[String],
        path: &Written,
        depth: usize,
        found: &mut Vec<Absolute>,
    ) {
        let (first, rest) = (&path.segments[0], &path.segments[1..]);
        let scope = self.scopes.get(module);
        if scope.is_some_and(|scope| scope.submodules.contains(first)) {
            return self.follow([module, &path.segments].concat(), depth, found);
        }
        let imports = scope.and_then(|scope| scope.imports.get(first));
        let imports = imports.into_iter().flatten();
        let others: Vec<&Written> = imports.filter(|import| *import != path).collect();
        for import in &others {
            let mut whole = (*import).clone();
            whole.segments.extend_from_slice(rest);
            if import.segments[0] == *first {
                // `use a::b as a`, or `use a`: the crate.
                found.push(whole.segments.clone());
                self.follow(whole.segments, depth - 1, found);
            } else {
                self.look_up(module, &whole, depth - 1, found);
            }
        }
        if others.is_empty()
            && !self.look_up_in_globs(module, &path.segments, depth, found)
            && !rest.is_empty()
        {
            self.follow(path.segments.clone(), depth, found);
        }
    }

    /// Resolves a name by the glob imports of a module; true if one has it.
    fn look_up_in_globs(
        &self,
        module: &[String],
        path: &[String],
        depth: usize,
        found: &mut Vec<Absolute>,
    ) -> bool {
        let globs = self
            .scopes
            .get(module)
            .map_or(&[][..], |scope| &scope.globs);
        for glob in globs {
            let mut targets = Vec::new();
            if depth > 1 && glob.segments != path {
                self.look_up(module, glob, depth - 1, &mut targets);
            }
            for target in targets {
                let has = |scope: &Scope| {
                    scope.submodules.contains(&path[0]) || scope.imports.contains_key(&path[0])
                };
                if target != module && self.scopes.get(&target).is_some_and(has) {
                    self.follow([&target[..], path].concat(), depth - 1, found);
                    return true;
                }
            }
        }
        false
    }

    /// Adds `name`, and the items it is imported from.
    fn follow(&self, name: Absolute, depth: usize, found: &mut Vec<Absolute>) {
        if found.contains(&name) {
            return;
        }
        found.push(name.clone());
        for length in 1..name.len() {
            let (module, rest) = name.split_at(length);
            let Some(scope) = self.scopes.get(module) else {
                return;
            };
            if scope.submodules.contains(&rest[0]) {
                continue;
            }
            if depth == 0 {
                return;
            }
            let path = Written {
                is_external: false,
                segments: rest.to_vec(),
            };
            if scope.imports.contains_key(&rest[0]) {
                self.look_up_name(module, &path, depth - 1, found);
            } else {
                self.look_up_in_globs(module, rest, depth - 1, found);
            }
            return;
        }
    }
}
