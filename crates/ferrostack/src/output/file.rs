//! Files written by commands in place of standard output.

use std::fs;
use std::path::Path;

use anyhow::Context;

use crate::data_dir::write_private;
use crate::environment::Environment;

/// Writes `text` to a file; with possible secrets, the file is readable by its owner only.
pub(crate) fn write(environment: &Environment, file: &Path, text: &str) -> anyhow::Result<()> {
    if may_hold_secrets(text) {
        return write_secret(environment, file, text);
    }
    let path = environment.working_dir.join(file);
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// Writes a secret to a private file, for any former permissions.
pub(crate) fn write_secret(
    environment: &Environment,
    file: &Path,
    text: &str,
) -> anyhow::Result<()> {
    let path = environment.working_dir.join(file);
    write_private(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// True for manifests with a Secret, or a variable with credentials.
fn may_hold_secrets(text: &str) -> bool {
    text.lines().any(|line| {
        let line = line.trim_start_matches("- ").trim();
        let kind = line
            .strip_prefix("kind:")
            .or_else(|| line.strip_prefix("\"kind\":"));
        kind.is_some_and(|kind| kind.trim().trim_matches(['"', '\'', ',']) == "Secret")
    }) || text.contains("kind: Secret")
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(text: &str) -> u32 {
        let dir = tempfile::tempdir().unwrap();
        let mut environment = Environment::with(&[]);
        dir.path().clone_into(&mut environment.working_dir);
        let file = dir.path().join("x.yaml");
        // Whatever it was before.
        fs::write(&file, "").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        write(&environment, Path::new("x.yaml"), text).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        fs::metadata(&file).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_file_with_a_secret_is_private_and_others_are_not() {
        for text in [
            "kind: Secret\n",
            "a: 1\n---\nkind: \"Secret\"\n",
            "items:\n- kind: Secret\n",
            "items: [{kind: Secret}]\n",
        ] {
            assert_eq!(mode(text), 0o600, "{text}");
        }
        assert_eq!(mode("kind: ConfigMap\n"), 0o644);
    }

    #[test]
    fn a_secret_is_private_whatever_it_looks_like() {
        let dir = tempfile::tempdir().unwrap();
        let mut environment = Environment::with(&[]);
        dir.path().clone_into(&mut environment.working_dir);
        write_secret(&environment, Path::new("kubeconfig"), "kind: Config\n").unwrap();
        let file = dir.path().join("kubeconfig");
        let mode = fs::metadata(&file).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let error = write(&Environment::default(), Path::new("/nowhere/x"), "").unwrap_err();
        assert_eq!(error.to_string(), "cannot write /nowhere/x");
    }
}
