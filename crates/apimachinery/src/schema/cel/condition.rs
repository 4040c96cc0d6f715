//! CEL expressions without a schema: the match conditions of webhooks, over `object`, `oldObject` and `request`.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/webhook/matchconditions`. The variable `authorizer` is not supported.

use kube_cel::cel::{self, Context, IdedExpr};
use serde_json::Value;

use super::compile::{index_optionally, parse};
use super::convert::to_cel;
use super::run::{execute, functions};

/// Maximum depth of an expression in the parser; determines the stack size of the evaluation.
const DEPTH: usize = 64;

/// Compiled condition.
#[derive(Debug)]
pub struct Condition {
    source: String,
    program: Result<IdedExpr, String>,
}

impl Condition {
    /// Compiles an expression. After a syntax error, each evaluation returns the error.
    pub fn new(source: &str) -> Self {
        let source = source.trim();
        Self {
            source: source.to_owned(),
            program: stacker::grow(super::compile::PARSER_STACK, || {
                let mut program = parse(source)?;
                index_optionally(&mut program);
                Ok(program)
            }),
        }
    }

    /// Returns the syntax error of the expression.
    pub fn problem(&self) -> Option<&str> {
        self.program.as_ref().err().map(String::as_str)
    }

    /// Evaluates the condition. Null objects are null in the expression.
    pub fn evaluate(&self, object: &Value, old: &Value, request: &Value) -> Result<bool, String> {
        let program = self
            .program
            .as_ref()
            .map_err(|why| format!("compilation error: {why}"))?;
        thread_local! {
            static FUNCTIONS: Context<'static> = functions();
        }
        let result = FUNCTIONS.with(|functions| {
            let mut scope = functions.new_inner_scope();
            for (name, value) in [("object", object), ("oldObject", old), ("request", request)] {
                scope.add_variable_from_value(name, to_cel(value, None, true));
            }
            execute(program, &scope, DEPTH)
        });
        let failed = |why: &str| format!("expression '{}' resulted in error: {why}", self.source);
        match result {
            Ok(cel::Value::Bool(holds)) => Ok(holds),
            Ok(_) => Err(failed("must evaluate to bool")),
            Err(why) => Err(failed(&why)),
        }
    }
}

#[cfg(test)]
mod tests;
