//! CEL rules, `x-kubernetes-validations` (`apiextensions-apiserver/pkg/apiserver/schema/cel`), on the `cel` interpreter
//! with the Kubernetes functions of `kube-cel`.
//!
//! Types are checked as by cel-go, with the functions of kube-apiserver. Differences from the reference: macros with two
//! variables and `optMap` are not known, so that rules with them are rejected. Sets and maps in lists are compared with
//! regard to order. The interpreter does not count steps; instead, a rule is not evaluated if its cost, estimated from
//! the actual sizes of values, exceeds the limit.

mod compile;
mod condition;
mod convert;
mod cost;
mod functions;
mod infer;
mod literals;
mod measure;
mod positions;
mod run;
mod unify;
mod value_type;

pub(super) use compile::{check, compile};
pub use condition::Condition;
pub(super) use run::validate;

use kube_cel::cel::IdedExpr;

/// Cost limit of one evaluation (`PerCallLimit`).
const CALL_LIMIT: u64 = 1_000_000;
/// Cost limit of all evaluations for one object (`RuntimeCELCostBudget`).
const OBJECT_LIMIT: u64 = 10_000_000;
/// Limit of the estimated cost of one rule times the maximum number of its values (`StaticEstimatedCostLimit`).
const RULE_LIMIT: u64 = 10_000_000;
/// Limit of the estimated cost of all rules of a schema (`StaticEstimatedCRDCostLimit`).
const SCHEMA_LIMIT: u64 = 100_000_000;

/// Compiled rule.
#[derive(Debug)]
pub(crate) struct Rule {
    source: String,
    message: Option<String>,
    reason: Option<String>,
    /// Relative to the field of the rule, `spec.name`; empty if not set.
    field_path: String,
    optional_old_self: bool,
    uses_old_self: bool,
    program: IdedExpr,
    message_program: Option<IdedExpr>,
    /// Cost estimated for the largest values allowed by the schema.
    cost: u64,
    /// Depth of the deeper one of the two expressions.
    depth: usize,
}

impl Rule {
    /// Returns the rule as printed in messages.
    fn name(&self) -> &str {
        self.message.as_deref().unwrap_or(&self.source).trim()
    }
}

#[cfg(test)]
mod tests;
