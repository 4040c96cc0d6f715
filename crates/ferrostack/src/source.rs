//! Reads manifests from files, directories, URLs and standard input.

use std::fs;
use std::path::{Path, PathBuf};

use manifest::{Document, ManifestError, read};

/// Extensions of files read from a directory, as in kubectl.
const ENDINGS: [&str; 3] = ["yaml", "yml", "json"];

/// Reads the manifests of all `sources`, in their order, as [`Document`]s.
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

/// Reads the [`Document`]s of the file at `path`; `-` is standard input.
pub(crate) fn read_file(path: &Path) -> Result<Vec<Document>, ManifestError> {
    let (file, text) = open(path)?;
    read(&file, &text)
}

/// Reads the file at `path`, with one [`Document`] of any form; `-` is standard input.
pub(crate) fn read_one(path: &Path) -> Result<Document, ManifestError> {
    let (file, text) = open(path)?;
    manifest::read_one(&file, &text)
}

/// The name of the file at `path` in messages, and its text.
fn open(path: &Path) -> Result<(String, String), ManifestError> {
    let file = match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    };
    match read_text(path) {
        Ok(text) => Ok((file, text)),
        Err(problem) => Err(ManifestError::Unreadable { file, problem }),
    }
}

/// The text of the file at `path`; `-` is standard input.
pub(crate) fn read_text(path: &Path) -> Result<String, String> {
    if path == Path::new("-") {
        std::io::read_to_string(std::io::stdin()).map_err(|source| source.to_string())
    } else {
        fs::read_to_string(path).map_err(|source| source.to_string())
    }
}

/// The name of a source in messages.
pub(crate) fn name(source: &Path) -> String {
    match source == Path::new("-") {
        true => "standard input".to_owned(),
        false => source.display().to_string(),
    }
}

/// Text of a file, a URL or standard input (`-`), or the reason why it cannot be read.
pub(crate) async fn text(source: &Path) -> Result<String, String> {
    if let Some(url) = url(source) {
        return fetched(url).await;
    }
    match source.to_str().and_then(|text| text.split_once("://")) {
        Some((scheme, _)) => Err(format!(
            "the scheme {scheme} is unknown: use https, http, or the name of a file"
        )),
        None => read_text(source),
    }
}

fn url(source: &Path) -> Option<&str> {
    let text = source.to_str()?;
    (text.starts_with("https://") || text.starts_with("http://")).then_some(text)
}

async fn fetch(url: &str) -> Result<Vec<Document>, ManifestError> {
    let text = fetched(url).await;
    let text = text.map_err(|problem| ManifestError::Unreadable {
        file: url.to_owned(),
        problem,
    })?;
    read(url, &text)
}

/// Maximum size of a file of the web: all CustomResourceDefinitions of a provider are 2 MB.
const LARGEST: usize = 32 << 20;

async fn fetched(url: &str) -> Result<String, String> {
    let address = of_github(url)?.unwrap_or_else(|| url.to_owned());
    let problem = |source: reqwest::Error| operator::words::chain(&source);
    let client = openstack::transport::through_proxies(reqwest::Client::builder());
    let client = client.build().map_err(problem)?;
    let mut answer = client.get(&address).send().await.map_err(problem)?;
    if !answer.status().is_success() {
        return Err(match address == url {
            true => format!("the server answers {}", answer.status()),
            false => format!("the server answers {} to {address}", answer.status()),
        });
    }
    let kind = answer.headers().get(reqwest::header::CONTENT_TYPE);
    if kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html")) {
        return Err("the server answers with a page for people, not with a file".to_owned());
    }
    let mut text = Vec::new();
    while let Some(piece) = answer.chunk().await.map_err(problem)? {
        if text.len() + piece.len() > LARGEST {
            return Err(format!("it is larger than {} MiB", LARGEST >> 20));
        }
        text.extend_from_slice(&piece);
    }
    String::from_utf8(text).map_err(|_| "it is not text".to_owned())
}

/// Address of the file on a page of GitHub: `https://github.com/OWNER/REPOSITORY/blob/REF/PATH`. Releases are files
/// already.
fn of_github(url: &str) -> Result<Option<String>, String> {
    let Some(path) = url.strip_prefix("https://github.com/") else {
        return Ok(None);
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let words: Vec<&str> = path.split('/').collect();
    match words.as_slice() {
        [owner, repository, "blob", reference, file @ ..] if !file.is_empty() => Ok(Some(format!(
            "https://raw.githubusercontent.com/{owner}/{repository}/{reference}/{}",
            file.join("/")
        ))),
        [_, _, "releases" | "raw", _, ..] => Ok(None),
        _ => Err(
            "it is not the address of a file on GitHub, which is https://github.com/OWNER/REPOSITORY/blob/REF/PATH"
                .to_owned(),
        ),
    }
}

/// Files of a source: the files of a directory, or else the source itself.
pub(crate) fn files(source: &Path) -> Result<Vec<PathBuf>, ManifestError> {
    match url(source).is_none() && source.is_dir() {
        true => files_in(source),
        false => Ok(vec![source.to_owned()]),
    }
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
        assert_eq!(
            error,
            "cannot read http://127.0.0.1:1/x.yaml: Connection refused"
        );
    }

    #[test]
    fn pages_of_github_lead_to_the_files_that_they_show() {
        let raw = "https://raw.githubusercontent.com/o/r/main/t/x.yaml";
        for (url, expected) in [
            ("https://github.com/o/r/blob/main/t/x.yaml", Ok(Some(raw))),
            (
                "https://github.com/o/r/blob/main/t/x.yaml?plain=1#L3",
                Ok(Some(raw)),
            ),
            (
                "https://github.com/o/r/releases/download/v1/x.yaml",
                Ok(None),
            ),
            ("https://example.org/o/r/blob/main/x.yaml", Ok(None)),
        ] {
            let found = of_github(url);
            assert_eq!(
                found.as_ref().map(Option::as_deref),
                expected.as_ref().copied(),
                "{url}"
            );
        }
        for url in [
            "https://github.com/o/r",
            "https://github.com/o/r/tree/main/t",
            "https://github.com/o/r/blob/main",
        ] {
            assert!(
                of_github(url).unwrap_err().contains("blob/REF/PATH"),
                "{url}"
            );
        }
    }

    /// A server that gives one answer to every request.
    async fn server(answer: &'static str) -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 4096];
                let _ = tokio::io::AsyncReadExt::read(&mut stream, &mut request).await;
                let _ = tokio::io::AsyncWriteExt::write_all(&mut stream, answer.as_bytes()).await;
            }
        });
        format!("http://{address}/x.yaml")
    }

    #[tokio::test]
    async fn a_url_gives_a_file_or_says_why_not() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let read = async |answer: &'static str| text(Path::new(&server(answer).await)).await;
        let head = "HTTP/1.1 200 OK\r\nConnection: close\r\n";
        let file: &str = Box::leak(format!("{head}\r\na: 1\n").into_boxed_str());
        assert_eq!(read(file).await, Ok("a: 1\n".to_owned()));
        let page: &str =
            Box::leak(format!("{head}Content-Type: text/html\r\n\r\n<p>").into_boxed_str());
        assert!(read(page).await.unwrap_err().contains("a page for people"));
        let none = "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(
            read(none).await,
            Err("the server answers 404 Not Found".to_owned())
        );
        let other = text(Path::new("ftp://example.org/x")).await.unwrap_err();
        assert_eq!(
            other,
            "the scheme ftp is unknown: use https, http, or the name of a file"
        );
    }
}
