//! `openstack`: a cloud on Kubernetes: configuration, checks by its release, plan for a cluster, creation, display and
//! deletion.

mod delete;
mod explain;
mod fault;
mod login;
mod machine;
mod operation;
mod plan;
mod purge;
mod site;
mod status;
mod up;
mod upgrade;
mod why;

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use deployer::{Config, Finding, Parameters, Release, Service, Setting, Severity, Source};
use manifest::Lines;
use secrecy::ExposeSecret;
use serde_json::{Value, json};

use crate::cli::{OpenStack, OpenStackConfig, Output};
use crate::environment::Environment;
use crate::output::{print, print_document, say, warn};
use crate::signals::stop_on_signal;
use crate::source;

pub(crate) use self::delete::delete;
pub(crate) use self::fault::fault;
pub(crate) use self::login::clouds_yaml;
pub(crate) use self::operation::operate;
pub(crate) use self::plan::{apply, plan};
pub(crate) use self::status::status;
pub(crate) use self::up::up;
pub(crate) use self::upgrade::upgrade;
pub(crate) use self::why::why;

/// A parameter file with every field.
const SAMPLE: &str = include_str!("../../../../config/openstack/sample.yaml");

/// Runs the command.
pub(super) async fn execute(
    args: &OpenStack,
    environment: &Environment,
) -> anyhow::Result<ExitCode> {
    match args {
        OpenStack::Plan(args) => return plan(args, environment, print, warn).await,
        OpenStack::Up(args) => up(args, environment, stop_on_signal()?, say, warn).await,
        OpenStack::Upgrade(args) => upgrade(args, environment, stop_on_signal()?, say, warn).await,
        OpenStack::Backup(args) => operate(args, environment, stop_on_signal()?, say).await,
        OpenStack::Restore(args) => operate(args, environment, stop_on_signal()?, say).await,
        OpenStack::Rotate(args) => operate(args, environment, stop_on_signal()?, say).await,
        OpenStack::Fault(args) => print(&fault(args, environment).await?),
        OpenStack::Sample => print_document(SAMPLE),
        OpenStack::Status(args) => print(&status(args, environment).await?),
        OpenStack::Apply(args) => apply(args, environment, say, warn).await,
        OpenStack::Why(args) => print(&why(args, environment).await?),
        OpenStack::CloudsYaml(args) => {
            let text = clouds_yaml(&args.cloud, environment).await?;
            print_document(text.expose_secret())
        }
        OpenStack::Delete(args) => delete(args, environment, stop_on_signal()?, say).await,
        OpenStack::Config(args) => {
            let printed = config(args)?;
            for warning in &printed.warnings {
                warn(warning);
            }
            print_document(&printed.text)
        }
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Printed text: on standard output, and as warnings on standard error.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    pub(crate) text: String,
    pub(crate) warnings: Vec<String>,
}

/// File of [`Parameters`], with its name and lines for messages.
struct File {
    name: String,
    lines: Lines,
    /// Path of the spec in the file: `spec`, or empty.
    prefix: &'static str,
}

/// Configuration files, or an explanation of one option.
pub(crate) fn config(args: &OpenStackConfig) -> anyhow::Result<Printed> {
    let (parameters, file) = match &args.file {
        Some(path) => {
            let (parameters, file) = read(path)?;
            (parameters, Some(file))
        }
        None => {
            let release = Release::named(&args.release).context("the release is unknown")?;
            (Parameters::from_release(release), None)
        }
    };
    let findings = deployer::check(&parameters);
    let warnings = warnings(&findings, file.as_ref())?;
    let services: Vec<Service> = match &args.service {
        Some(name) => vec![Service::named(name).context("the service is unknown")?],
        None => {
            let all = Service::ALL.into_iter();
            all.filter(|it| parameters.has(*it)).collect()
        }
    };
    let text = match (&args.explain, services.first()) {
        (Some(option), Some(service)) => {
            explain::option(*service, option, &parameters, args.output.output)?
        }
        _ => match args.output.output {
            Output::Json => document(&services, &parameters, &findings)?,
            Output::Text => files(&services, &parameters)?,
        },
    };
    Ok(Printed { text, warnings })
}

/// Warnings among the [`Finding`]s.
///
/// # Errors
/// All errors among the findings, if any.
fn warnings(findings: &[Finding], file: Option<&File>) -> anyhow::Result<Vec<String>> {
    let of = |severity| {
        let chosen = findings.iter().filter(move |it| it.severity == severity);
        chosen.map(|it| place(file, it)).collect::<Vec<_>>()
    };
    let errors = of(Severity::Error);
    if !errors.is_empty() {
        bail!("the parameters are rejected:\n  {}", errors.join("\n  "));
    }
    Ok(of(Severity::Warning))
}

fn read(path: &Path) -> anyhow::Result<(Parameters, File)> {
    let document = source::read_one(path)?;
    match Parameters::read(&document.value) {
        Ok((parameters, prefix)) => {
            let file = File {
                name: document.file,
                lines: document.lines,
                prefix,
            };
            Ok((parameters, file))
        }
        Err(error) => bail!("{}: {error}", document.place(&error.path)),
    }
}

/// [`Finding`] with the file and line of its field.
fn place(file: Option<&File>, finding: &Finding) -> String {
    let Some(file) = file else {
        return finding.to_string();
    };
    let path = match file.prefix {
        "" => finding.path.clone(),
        prefix => format!("{prefix}.{}", finding.path),
    };
    let line = file.lines.of(&path);
    format!("{}:{line}: {path}: {}", file.name, finding.message)
}

fn files(services: &[Service], parameters: &Parameters) -> anyhow::Result<String> {
    let mut text = String::new();
    for service in services {
        let config = deployer::configure(*service, parameters);
        let name = service.file();
        if !text.is_empty() {
            text.push('\n');
        }
        writeln!(
            text,
            "# /etc/{service}/{name} ({})",
            version(*service, parameters)?
        )?;
        text.push_str(&config.public());
        writeln!(
            text,
            "\n# {}/50-secret.conf (in a Secret; passwords are not shown)",
            service.directory(parameters.release)
        )?;
        text.push_str(&config.secret(|_| "********".to_owned()));
    }
    Ok(text)
}

fn document(
    services: &[Service],
    parameters: &Parameters,
    findings: &[Finding],
) -> anyhow::Result<String> {
    let mut all = Vec::new();
    for service in services {
        let config = deployer::configure(*service, parameters);
        all.push(json!({
            "name": service.name(),
            "version": table(*service, parameters)?.version,
            "file": format!("/etc/{service}/{}", service.file()),
            "options": options(&config),
        }));
    }
    let document = json!({
        "release": parameters.release.name(),
        "services": all,
        "warnings": findings,
    });
    Ok(terminal::json(&document)?)
}

fn options(config: &Config) -> Vec<Value> {
    let option = |(section, name, setting): (&str, &str, &Setting)| {
        let (source, reason) = source(&setting.source);
        json!({
            "section": section,
            "name": name,
            "value": setting.value.masked(),
            "secret": setting.value.is_secret(),
            "source": source,
            "reason": reason,
        })
    };
    config.all().map(option).collect()
}

/// Origin of a value, as a word for machines and a reason for people.
fn source(source: &Source) -> (&'static str, String) {
    match source {
        Source::Structure(why) => ("structure", (*why).to_owned()),
        Source::Default(why) => ("default", (*why).to_owned()),
        Source::Parameter(field) => ("parameter", format!("from {field}")),
        Source::User => ("user", "from config of the service".to_owned()),
    }
}

fn table(service: Service, parameters: &Parameters) -> anyhow::Result<&'static deployer::Table> {
    let table = parameters.release.table(service);
    table.with_context(|| format!("release {} has no options of {service}", parameters.release))
}

/// Version, such as `nova 33.0.2, release 2026.1`.
fn version(service: Service, parameters: &Parameters) -> anyhow::Result<String> {
    let version = &table(service, parameters)?.version;
    Ok(format!(
        "{service} {version}, release {}",
        parameters.release
    ))
}

#[cfg(test)]
mod tests;
