//! Functions and names that expressions may use, from `functions.txt`, which `tests/kubernetes/generated` writes.

use std::{collections::HashMap, sync::OnceLock};

use super::value_type::Type;

/// Signature of a function.
#[derive(Debug)]
pub(super) struct Overload {
    /// True for a function that is called on its first argument: `x.size()`.
    pub(super) member: bool,
    pub(super) result: Type,
    pub(super) arguments: Vec<Type>,
}

/// Functions by name, with each [`Overload`], and the types of other names.
#[derive(Debug, Default)]
pub(super) struct Library {
    pub(super) functions: HashMap<&'static str, Vec<Overload>>,
    pub(super) names: HashMap<&'static str, Type>,
}

/// Returns the functions and names of kube-apiserver.
pub(super) fn library() -> &'static Library {
    static LIBRARY: OnceLock<Library> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let mut library = Library::default();
        for line in include_str!("functions.txt").lines() {
            let mut words = line.split(' ');
            let name = words.next().unwrap_or_default();
            let mut types = words.map(parse);
            let result = types.next().unwrap_or(Type::Dyn);
            if let Some(name) = name.strip_prefix('=') {
                library.names.insert(name, result);
                continue;
            }
            let member = name.starts_with('.');
            let overload = Overload {
                member,
                result,
                arguments: types.collect(),
            };
            let name = name.trim_start_matches('.');
            library.functions.entry(name).or_default().push(overload);
        }
        library
    })
}

/// Reads a [`Type`]: `map(string,list($A))`.
fn parse(text: &str) -> Type {
    let (name, inner) = match text.split_once('(') {
        Some((name, inner)) => (name, inner.strip_suffix(')').unwrap_or(inner)),
        None => (text, ""),
    };
    let mut parameters = split(inner).into_iter().map(parse);
    match name {
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "list" => Type::list(parameters.next().unwrap_or(Type::Dyn)),
        "map" => {
            let key = parameters.next().unwrap_or(Type::Dyn);
            Type::map(key, parameters.next().unwrap_or(Type::Dyn))
        }
        "type" => Type::Meta(parameters.next().map(Into::into)),
        _ => match name.strip_prefix('$') {
            Some(parameter) => Type::Parameter(parameter.chars().next().unwrap_or('A')),
            None => Type::Opaque(name.into(), parameters.collect()),
        },
    }
}

/// Splits a list of types at the commas outside of brackets.
fn split(text: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0_usize, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text.is_empty() {
        parts.push(&text[start..]);
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::{library, parse};

    #[test]
    fn types_are_read_as_they_are_printed() {
        for text in [
            "map(string,list(string))",
            "optional_type(net.IP)",
            "type(map($A,$B))",
            "list(optional_type($V))",
        ] {
            let printed = parse(text).to_string();
            assert_eq!(printed.replace(", ", ","), text.replace('$', ""));
        }
    }

    #[test]
    fn each_line_of_the_functions_is_one() {
        let overloads: usize = library().functions.values().map(Vec::len).sum();
        let names = library().names.len();
        assert_eq!(
            overloads + names,
            include_str!("functions.txt").lines().count()
        );
        assert!(library().functions["size"].iter().any(|f| f.member));
    }
}
