//! Adaptation of field sets to a changed type.

use crate::patch::{
    atom::{Form, Type},
    fields::{Element, Set},
};

/// Returns the set after a change of the schema: for a value that has become atomic, the value replaces its fields.
/// `None` when nothing changes.
pub(crate) fn reconcile(set: &Set, of: Type<'_>) -> Option<Set> {
    let mut changes = Changes {
        path: Vec::new(),
        pieces: Set::default(),
    };
    changes.visit(Some(set), of, false);
    if changes.pieces.is_empty() {
        return None;
    }
    Some(
        set.recursive_difference(&changes.pieces)
            .union(&changes.pieces),
    )
}

/// Returns the set with every declared field above a member as a member.
pub(crate) fn with_named_fields(set: &Set, of: Type<'_>) -> Set {
    let atom = of.resolve();
    let mut result = Set::default();
    for member in set.members() {
        result.insert_member(member.clone());
    }
    for (element, children) in set.children() {
        let (of, declared) = match element {
            Element::Field(name) => match atom.map {
                Some(map) => (
                    map.member(name).unwrap_or(Type::Deduced),
                    map.field(name).is_some(),
                ),
                None => (Type::Deduced, false),
            },
            _ => (atom.list.map_or(Type::Deduced, |list| list.item), false),
        };
        if declared {
            result.insert_member(element.clone());
        }
        result.insert_children(element.clone(), with_named_fields(children, of));
    }
    result
}

struct Changes {
    path: Vec<Element>,
    pieces: Set,
}

impl Changes {
    fn visit(&mut self, set: Option<&Set>, of: Type<'_>, whole: bool) {
        match of.resolve().form() {
            Form::Scalar(_) => {}
            Form::List(list) => {
                if list.keys.is_none() {
                    if !whole {
                        self.pieces.insert(&self.path);
                    }
                    return;
                }
                self.inside(set, |_| Some(list.item));
            }
            Form::Map(map) => {
                if map.is_deduced() {
                    return;
                }
                if map.atomic {
                    if !whole && set.is_some_and(|set| !set.is_empty()) {
                        self.pieces.insert(&self.path);
                    }
                    return;
                }
                self.inside(set, |element| match element {
                    Element::Field(name) => map.member(name),
                    _ => map.value,
                });
            }
        }
    }

    fn inside<'t>(&mut self, set: Option<&Set>, of: impl Fn(&Element) -> Option<Type<'t>>) {
        let Some(set) = set else { return };
        for (element, children) in set.children() {
            if set.has_member(element) {
                continue;
            }
            self.step(element, Some(children), false, &of);
        }
        for element in set.members() {
            let children = set.below(element);
            self.step(element, children, children.is_none(), &of);
        }
    }

    fn step<'t>(
        &mut self,
        element: &Element,
        children: Option<&Set>,
        whole: bool,
        of: &impl Fn(&Element) -> Option<Type<'t>>,
    ) {
        let Some(of) = of(element) else { return };
        self.path.push(element.clone());
        self.visit(children, of, whole);
        self.path.pop();
    }
}
