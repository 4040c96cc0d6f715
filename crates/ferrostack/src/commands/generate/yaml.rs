//! `generate yaml`: any text with variables.

use std::path::Path;

use anyhow::bail;

use super::source::Source;
use super::{text, variables};
use crate::cli::GenerateYaml;
use crate::environment::Environment;

/// Text with the values of environment and configuration file, or the list of its variables. `note` prints settings of
/// the file without an effect.
pub(crate) async fn yaml(
    args: &GenerateYaml,
    environment: &Environment,
    note: impl Fn(&str),
) -> anyhow::Result<String> {
    if args.from == Path::new("-") && environment.interactive {
        bail!(
            "standard input is a terminal: name a file or a URL with --from, or pipe a template into it"
        );
    }
    let text = text::read(&args.from).await?;
    let source = Source::plain(text, args.config.as_deref(), environment)?;
    for sentence in source.notes() {
        note(&sentence);
    }
    if args.list_variables {
        return variables(&source, args.output);
    }
    let missing = source.missing();
    if !missing.is_empty() {
        bail!(
            "template {}: these variables are not set: {}; set them in the environment or in the configuration file; \
             --list-variables lists all",
            source.name,
            missing.join(", ")
        );
    }
    source.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Output;

    fn args(text: &str) -> (tempfile::TempDir, GenerateYaml) {
        let dir = tempfile::tempdir().unwrap();
        let from = dir.path().join("t.yaml");
        std::fs::write(&from, text).unwrap();
        let args = GenerateYaml {
            from,
            list_variables: false,
            output: Output::Text,
            config: None,
        };
        (dir, args)
    }

    #[tokio::test]
    async fn any_text_is_rendered_with_the_values_of_the_environment() {
        let (_dir, args) = args("a: ${A}\nb: ${B:=two}\nnot yaml: [\n");
        let environment = Environment::with(&[("A", "one")]);
        let text = yaml(&args, &environment, |_| ()).await.unwrap();
        assert_eq!(text, "a: one\nb: two\nnot yaml: [\n");
        let error = yaml(&args, &Environment::with(&[]), |_| ())
            .await
            .unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("these variables are not set: A; set them in the environment"),
            "{error}"
        );
    }

    #[tokio::test]
    async fn its_variables_are_listed_for_people_and_for_programs() {
        let (_dir, mut args) = args("${A} ${B:=two} ${C_B64}");
        args.list_variables = true;
        let environment = Environment::with(&[("C_B64", "c2VjcmV0IHRoaW5n")]);
        let text = yaml(&args, &environment, |_| ()).await.unwrap();
        assert!(
            text.starts_with("Required Variables:\n  - A      not set\n"),
            "{text}"
        );
        args.output = Output::Json;
        let listed: serde_json::Value =
            serde_json::from_str(&yaml(&args, &environment, |_| ()).await.unwrap()).unwrap();
        let b = serde_json::json!({"name": "B", "required": false, "value": "two", "origin": "default", "default": "two"});
        assert_eq!(listed[1], b);
        assert_eq!(listed[0]["value"], serde_json::Value::Null);
        assert_eq!(listed[2]["value"], "(16 bytes)");
    }

    #[tokio::test]
    async fn what_is_for_clusterctl_alone_is_noted() {
        let (dir, mut args) = args("a: ${A}\n");
        let config = dir.path().join("clusterctl.yaml");
        std::fs::write(
            &config,
            "A: one\noverridesFolder: /x\nproviders: [{name: p}]\n",
        )
        .unwrap();
        args.config = Some(config);
        let notes = std::cell::RefCell::new(Vec::new());
        let note = |text: &str| notes.borrow_mut().push(text.to_owned());
        let text = yaml(&args, &Environment::with(&[]), note).await.unwrap();
        assert_eq!(text, "a: one\n");
        let notes = notes.into_inner();
        assert_eq!(notes.len(), 2, "{notes:?}");
        assert!(
            notes[0].contains("clusterctl.yaml: `overridesFolder` has no effect here"),
            "{notes:?}"
        );
        assert!(
            notes[1].contains("`providers` has no effect here"),
            "{notes:?}"
        );
    }

    #[tokio::test]
    async fn a_terminal_is_no_template() {
        let (_dir, mut args) = args("");
        args.from = "-".into();
        let mut environment = Environment::with(&[]);
        environment.interactive = true;
        let error = yaml(&args, &environment, |_| ())
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("standard input is a terminal: "),
            "{error}"
        );
    }
}
