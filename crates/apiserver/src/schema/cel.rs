//! CEL rules, `x-kubernetes-validations`
//! (`apiextensions-apiserver/pkg/apiserver/schema/cel`), on the `cel` interpreter with the Kubernetes
//! functions of `kube-cel`.
//!
//! What differs from the reference, where expressions are type-checked: types are only followed along
//! field selections, so a rule that adds a number to a text is refused when it runs, not when the
//! schema is compiled. Sets and maps in lists compare with regard to order. The interpreter does
//! not count its steps; instead a rule whose estimate, with the sizes of the actual values, is over
//! the limit is not run.

mod check;
mod compile;
mod condition;
mod convert;
mod cost;
mod measure;
mod run;

pub(super) use compile::{check, compile};
pub(crate) use condition::Condition;
pub(super) use run::validate;

use kube_cel::cel::IdedExpr;

/// Cost of one evaluation (`PerCallLimit`).
const CALL_LIMIT: u64 = 1_000_000;
/// Cost of all evaluations for one object (`RuntimeCELCostBudget`).
const OBJECT_LIMIT: u64 = 10_000_000;
/// Estimated cost of one rule, times the number of values it may meet (`StaticEstimatedCostLimit`).
const RULE_LIMIT: u64 = 10_000_000;
/// Estimated cost of all rules of a schema (`StaticEstimatedCRDCostLimit`).
const SCHEMA_LIMIT: u64 = 100_000_000;

/// A compiled rule.
#[derive(Debug)]
pub(crate) struct Rule {
    source: String,
    message: Option<String>,
    reason: Option<String>,
    /// Relative to the rule's place, `spec.name`; empty if not given.
    field_path: String,
    optional_old_self: bool,
    uses_old_self: bool,
    program: IdedExpr,
    message_program: Option<IdedExpr>,
    /// Estimate for the largest values that the schema allows.
    cost: u64,
    /// Levels of the deeper of the two programs.
    depth: usize,
}

impl Rule {
    /// What messages call the rule.
    fn name(&self) -> &str {
        self.message.as_deref().unwrap_or(&self.source).trim()
    }
}

#[cfg(test)]
mod tests;
