//! Assignment of types, with the variables of the inference (`cel-go/checker/types.go`).

use std::collections::HashMap;

use super::value_type::Type;

/// Types that variables of the inference stand for.
#[derive(Clone, Debug, Default)]
pub(super) struct Substitutions {
    found: HashMap<usize, Type>,
    next: usize,
}

impl Substitutions {
    /// Returns a new variable.
    pub(super) fn variable(&mut self) -> Type {
        self.next += 1;
        Type::Variable(self.next - 1)
    }

    /// Returns the types of a signature with new variables for its parameters.
    pub(super) fn instantiate<'t>(&mut self, types: impl Iterator<Item = &'t Type>) -> Vec<Type> {
        let mut named = HashMap::new();
        types.map(|of| self.renamed(of, &mut named)).collect()
    }

    fn renamed(&mut self, of: &Type, named: &mut HashMap<char, Type>) -> Type {
        match of {
            Type::Parameter(name) => named
                .entry(*name)
                .or_insert_with(|| self.variable())
                .clone(),
            other => other.rebuilt(&mut |part| self.renamed(part, named)),
        }
    }

    /// Replaces variables by the types that they stand for. With `to_dyn`, variables that stand for none are `dyn`.
    pub(super) fn substitute(&self, of: &Type, to_dyn: bool) -> Type {
        match of {
            Type::Variable(number) => match self.found.get(number) {
                Some(found) => self.substitute(found, to_dyn),
                None if to_dyn => Type::Dyn,
                None => of.clone(),
            },
            other => other.rebuilt(&mut |part| self.substitute(part, to_dyn)),
        }
    }

    /// True if all types of a list can be assigned to those of another; variables are then bound.
    pub(super) fn assign_all(&mut self, from: &[Type], to: &[Type]) -> bool {
        let mut tried = self.clone();
        let assigned = tried.assign_each(from.iter(), to.iter());
        if assigned {
            *self = tried;
        }
        assigned
    }

    /// True if a type can be assigned to another.
    pub(super) fn assign(&mut self, from: &Type, to: &Type) -> bool {
        self.assign_all(std::slice::from_ref(from), std::slice::from_ref(to))
    }

    fn assign_each<'t>(
        &mut self,
        from: impl ExactSizeIterator<Item = &'t Type>,
        to: impl ExactSizeIterator<Item = &'t Type>,
    ) -> bool {
        from.len() == to.len() && from.zip(to).all(|(from, to)| self.assign_one(from, to))
    }

    fn assign_one(&mut self, from: &Type, to: &Type) -> bool {
        if let Type::Variable(number) = to {
            let (valid, known) = self.bind(from, *number);
            if valid || known {
                return valid;
            }
        }
        if let Type::Variable(number) = from {
            return self.bind(to, *number).0;
        }
        if matches!(from, Type::Dyn | Type::Error) || matches!(to, Type::Dyn | Type::Error) {
            return true;
        }
        if *from == Type::Null {
            return nullable(to);
        }
        if *to == Type::Null {
            return nullable(from);
        }
        match (from, to) {
            (Type::Meta(_), Type::Meta(_)) => true,
            (Type::List(_), Type::List(_)) | (Type::Map(_), Type::Map(_)) => {
                self.assign_each(from.parts().into_iter(), to.parts().into_iter())
            }
            (Type::Opaque(a, _), Type::Opaque(b, _)) => {
                a == b && self.assign_each(from.parts().into_iter(), to.parts().into_iter())
            }
            (a, b) => a == b,
        }
    }

    /// Binds a variable to a type. Returns true if that is possible, and true if the variable was bound before.
    fn bind(&mut self, of: &Type, variable: usize) -> (bool, bool) {
        if *of == Type::Variable(variable) {
            return (true, true);
        }
        if let Some(found) = self.found.get(&variable).cloned() {
            if *of == found {
                return (true, true);
            }
            if !self.assign_one(of, &found) {
                return (false, true);
            }
            let general = most_general(of, &found);
            if !self.occurs(variable, &general) {
                self.found.insert(variable, general);
            }
            return (true, true);
        }
        if self.occurs(variable, of) {
            return (false, false);
        }
        self.found.insert(variable, of.clone());
        (true, false)
    }

    /// True if a variable is part of a type.
    fn occurs(&self, variable: usize, within: &Type) -> bool {
        match within {
            Type::Variable(number) if *number == variable => true,
            Type::Variable(number) => self
                .found
                .get(number)
                .is_some_and(|found| self.occurs(variable, found)),
            other => other
                .parts()
                .into_iter()
                .any(|part| self.occurs(variable, part)),
        }
    }
}

/// True if null can be assigned to a type: to objects and to what is no value of JSON.
fn nullable(of: &Type) -> bool {
    matches!(
        of,
        Type::Null | Type::Opaque(..) | Type::Object(_) | Type::Duration | Type::Timestamp
    )
}

/// Returns the more general one of two types that can be assigned to each other.
pub(super) fn most_general(a: &Type, b: &Type) -> Type {
    if as_general(a, b) { a } else { b }.clone()
}

fn as_general(a: &Type, b: &Type) -> bool {
    let open = |of: &Type| matches!(of, Type::Dyn | Type::Variable(_));
    if open(a) || open(b) {
        return open(a);
    }
    match (a, b) {
        (Type::Meta(_), Type::Meta(_)) => true,
        (Type::List(_), Type::List(_))
        | (Type::Map(_), Type::Map(_))
        | (Type::Opaque(..), Type::Opaque(..)) => {
            let same = match (a, b) {
                (Type::Opaque(a, _), Type::Opaque(b, _)) => a == b,
                _ => true,
            };
            let (a, b) = (a.parts(), b.parts());
            same && a.len() == b.len() && a.into_iter().zip(b).all(|(a, b)| as_general(a, b))
        }
        _ => a == b,
    }
}
