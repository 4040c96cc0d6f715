//! Prints the steps of a cloud with their objects as they are sent to an API server, Secrets included. tests/deployer/run
//! applies them where no controller does.
//!
//! ```text
//! objects '{"release": "2025.1"}' <SECRETS >STEPS
//! ```
//!
//! SECRETS: a list of the Secrets of the namespace as JSON; those of the cloud are used, and what is missing is random.

use std::error::Error;
use std::fs::File;
use std::io::{Read as _, Write as _, stdin, stdout};

use deployer::{Cloud, Credentials, Parameters, Severity, desired};
use serde_json::{Value, json};

fn main() -> Result<(), Box<dyn Error>> {
    let document: Value =
        serde_json::from_str(&std::env::args().nth(1).ok_or("a spec is needed")?)?;
    let (parameters, _) = Parameters::read(&document)?;
    for finding in deployer::check(&parameters) {
        if finding.severity == Severity::Error {
            return Err(finding.to_string().into());
        }
    }
    let cloud = Cloud::new(&document, parameters)?;
    let mut listed: Value = serde_json::from_reader(stdin().lock())?;
    let there: Vec<Value> = serde_json::from_value(listed["items"].take())?;
    let mut random = Vec::new();
    File::open("/dev/urandom")?
        .take(1 << 16)
        .read_to_end(&mut random)?;
    let mut random = random.into_iter();
    let graph = desired(
        &cloud,
        &Credentials::complete(&cloud.name, &there, || random.next().unwrap_or_default()),
    );
    let steps: Vec<Value> = graph
        .steps
        .iter()
        .map(|step| {
            let objects: Vec<Value> = step.objects.iter().map(|it| it.exposed()).collect();
            json!({"name": step.name, "needs": step.needs, "objects": objects, "writes": step.writes})
        })
        .collect();
    let document =
        json!({"namespace": cloud.namespace, "steps": steps, "problems": graph.problems});
    writeln!(stdout(), "{document}")?;
    Ok(())
}
