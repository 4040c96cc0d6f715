//! Generated policies and requests, the same for the same number.

use serde_json::{Map, Value, json};

use super::script::{Group, Step, Who};

/// Number of requests for each policy.
const REQUESTS: usize = 8;

/// Values; a repeated one is chosen more often.
const HALVES: [&str; 18] = [
    "*",
    "*",
    "a",
    "A",
    "b",
    "pods",
    "*",
    "!a",
    "!pods",
    "!",
    "!*",
    "['a', 'pods']",
    "!['a', 'b']",
    "['*']",
    "[]",
    "['a'",
    " a ",
    "!['*']",
];
const VERBS: [&str; 7] = ["get", "get", "*", "*", "LIST", "list", ""];
const NAMES: [&str; 4] = ["a", "b", "*", "id-of-a"];
const ASKED: [&str; 6] = ["a", "b", "pods", "-", "A", "nodes"];

/// [`Group`] of a number: a policy, and requests about it.
pub(super) fn group(number: u64) -> Group {
    let mut row = Row(number);
    let entries = (0..row.below(9)).map(|_| entry(&mut row)).collect();
    let steps = (1..=REQUESTS).map(|at| step(at, &mut row)).collect();
    Group {
        name: format!("generated {number}"),
        policy: Some(Value::Array(entries)),
        sync: None,
        flags: Vec::new(),
        last: false,
        steps,
    }
}

fn entry(row: &mut Row) -> Value {
    let mut entry = Map::new();
    if row.one_of(3) {
        let mut users = Map::new();
        for name in ["roles", "projects"] {
            if !row.one_of(5) {
                users.insert(name.to_owned(), row.list(&NAMES));
            }
        }
        entry.insert("users".to_owned(), Value::Object(users));
    }
    if !row.one_of(4) {
        let mut permissions = Map::new();
        for _ in 0..row.below(4) {
            let key = match row.below(10) {
                0 => "a".to_owned(),
                1 => "a/b/c".to_owned(),
                _ => format!("{}/{}", row.word(&HALVES), row.word(&HALVES)),
            };
            permissions.insert(key, row.list(&VERBS));
        }
        entry.insert(
            "resource_permissions".to_owned(),
            Value::Object(permissions),
        );
    }
    if row.one_of(3) {
        let mut permissions = Map::new();
        for _ in 0..row.below(3) {
            let path = row.word(&["/a", "/a/*", "*"]).to_owned();
            permissions.insert(path, row.list(&VERBS));
        }
        entry.insert(
            "nonresource_permissions".to_owned(),
            Value::Object(permissions),
        );
    }
    if row.one_of(2) {
        let all = (0..row.below(3)).map(|_| {
            let kind = row.word(&["user", "group", "project", "role", "none"]);
            json!({"type": kind, "values": row.list(&NAMES)})
        });
        entry.insert("match".to_owned(), Value::Array(all.collect()));
    }
    if row.one_of(2) {
        let resources = ["a", "pods", "*", "pods/*", "pods/b", "a/b"];
        let resource = json!({"verbs": row.list(&VERBS), "resources": row.list(&resources),
            "version": row.word(&["*", "", "b"]), "namespace": row.word(&["*", "", "a"])});
        entry.insert("resource".to_owned(), resource);
    }
    if row.one_of(3) {
        let path = row.word(&["/a", "/a/*", "*", ""]);
        entry.insert(
            "nonresource".to_owned(),
            json!({"verbs": row.list(&VERBS), "path": path}),
        );
    }
    Value::Object(entry)
}

fn step(at: usize, row: &mut Row) -> Step {
    let project = row.word(&["a", "b"]);
    let words = |row: &mut Row| {
        let count = row.below(3);
        (0..count)
            .map(|_| row.word(&["a", "b"]).to_owned())
            .collect()
    };
    let user = Who {
        name: row.word(&["a", "b"]).to_owned(),
        uid: String::new(),
        groups: words(row),
        roles: words(row),
        project: vec![format!("id-of-{project}"), project.to_owned()],
        stranger: row.below(10) == 0,
    };
    let verb = row.word(&["get", "get", "list", "delete", "-"]);
    let may = match row.below(5) {
        0 => format!("{verb} {}", row.word(&["/a", "/a/b", "/b", "/"])),
        _ => format!(
            "{verb} {} {} {} {}",
            row.word(&ASKED),
            row.word(&ASKED),
            row.word(&["-", "-", "b", "exec"]),
            row.word(&["-", "-", "b"])
        ),
    };
    Step {
        is: format!("request {at}"),
        may: Some(may),
        user,
        ..Step::default()
    }
}

/// Pseudo-random sequence of numbers (splitmix64).
struct Row(u64);

impl Row {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// True with a chance of one in `many`.
    fn one_of(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    fn word(&mut self, words: &[&'static str]) -> &'static str {
        let at = self.below(words.len() as u64) as usize;
        words.get(at).copied().unwrap_or_default()
    }

    /// One or two words, rarely none.
    fn list(&mut self, words: &[&'static str]) -> Value {
        let count = match self.one_of(8) {
            true => 0,
            false => 1 + self.below(2),
        };
        (0..count).map(|_| Value::from(self.word(words))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_has_one_policy_and_others_have_others() {
        let text = |number| format!("{:?}", group(number));
        assert_eq!(text(1), text(1));
        let all: std::collections::BTreeSet<String> = (0..100).map(text).collect();
        assert_eq!(all.len(), 100);
    }
}
