//! Reads manifests from files, directories, URLs and standard input.

use std::fs;
use std::path::{Path, PathBuf};

use super::{Document, ManifestError, read, read_file};

/// The extensions of the files that are read from a directory, as in kubectl.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Reads the manifests of all `sources`, in their order.
pub(crate) async fn read_all(sources: &[PathBuf]) -> Result<Vec<Document>, ManifestError> {
    let mut documents = Vec::new();
    for source in sources {
        match url(source) {
            Some(url) => documents.extend(fetch(url).await?),
            None if source.is_dir() => {
                for file in files_in(source)? {
                    documents.extend(read_file(&file)?);
                }
            }
            None => documents.extend(read_file(source)?),
        }
    }
    Ok(documents)
}

fn url(source: &Path) -> Option<&str> {
    let text = source.to_str()?;
    (text.starts_with("https://") || text.starts_with("http://")).then_some(text)
}

async fn fetch(url: &str) -> Result<Vec<Document>, ManifestError> {
    let unreadable = |problem: String| ManifestError::Unreadable {
        file: url.to_owned(),
        problem,
    };
    let answer = reqwest::get(url)
        .await
        .map_err(|source| unreadable(operator::words::chain(&source)))?;
    if !answer.status().is_success() {
        return Err(unreadable(format!(
            "the server answers {}",
            answer.status()
        )));
    }
    let text = answer
        .text()
        .await
        .map_err(|source| unreadable(operator::words::chain(&source)))?;
    read(url, &text)
}

/// The manifests directly in `directory`, sorted by name.
fn files_in(directory: &Path) -> Result<Vec<PathBuf>, ManifestError> {
    let unreadable = |problem: String| ManifestError::Unreadable {
        file: directory.display().to_string(),
        problem,
    };
    let entries = fs::read_dir(directory).map_err(|source| unreadable(source.to_string()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let ending = path.extension().and_then(|ending| ending.to_str());
            path.is_file() && ending.is_some_and(|ending| ENDINGS.contains(&ending))
        })
        .collect();
    files.sort();
    if files.is_empty() {
        return Err(unreadable(format!(
            "no file in it ends with .{}",
            ENDINGS.join(", .")
        )));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_directory_is_read_in_the_order_of_names_and_others_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let manifest =
            |name: &str| format!("apiVersion: v1\nkind: Namespace\nmetadata: {{name: {name}}}\n");
        for (file, text) in [
            ("b.yaml", manifest("b")),
            ("a.yml", manifest("a")),
            ("c.txt", "no".to_owned()),
        ] {
            fs::write(dir.path().join(file), text).unwrap();
        }
        let documents = read_all(&[dir.path().to_owned()]).await.unwrap();
        let names: Vec<&str> = documents
            .iter()
            .map(|document| document.text(&["metadata", "name"]))
            .collect();
        assert_eq!(names, ["a", "b"]);
    }

    #[tokio::test]
    async fn what_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let error = read_all(&[dir.path().to_owned()])
            .await
            .unwrap_err()
            .to_string();
        assert!(
            error.ends_with("no file in it ends with .yaml, .yml, .json"),
            "{error}"
        );
        let _ = rustls::crypto::ring::default_provider().install_default();
        let nowhere = PathBuf::from("http://127.0.0.1:1/x.yaml");
        let error = read_all(&[nowhere]).await.unwrap_err().to_string();
        assert!(
            error.starts_with("cannot read http://127.0.0.1:1/x.yaml: "),
            "{error}"
        );
    }
}
