//! Warnings in responses of API servers, printed as in clusterctl: each text once.

use std::collections::BTreeSet;
use std::sync::Arc;

use http::header::WARNING;
use http::{HeaderMap, HeaderValue, Request};
use kube::Client;
use kube::client::Body;
use parking_lot::Mutex;

use crate::cli::Hidden;

/// Beginning of Kubernetes' warning about a finalizer without a path. The finalizers of Cluster API have none, and
/// cannot be renamed.
const FINALIZERS: &str = "metadata.finalizers:";
const QUALIFIED: &str = "prefer a domain-qualified finalizer name";
const CLUSTER_API: &str = "cluster.x-k8s.io";

/// Code of warnings of Kubernetes.
const CODE: &str = "299";

/// Prints warnings of several API servers.
#[derive(Clone)]
pub(super) struct Warns {
    hidden: Hidden,
    printed: Arc<Mutex<BTreeSet<String>>>,
    print: Arc<dyn Fn(&str) + Send + Sync>,
}

impl Warns {
    pub(super) fn new(hidden: Hidden, print: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            hidden,
            printed: Arc::default(),
            print: Arc::new(print),
        }
    }

    /// [`Client`] like `client`, with a search for warnings in its responses.
    pub(super) fn of(&self, client: &Client) -> Client {
        let (inner, warns) = (client.clone(), self.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (client, warns) = (inner.clone(), warns.clone());
            async move {
                let answer = client.send(request).await?;
                warns.look(answer.headers());
                Ok::<_, kube::Error>(answer)
            }
        });
        Client::new(service, client.default_namespace()).with_valid_until(*client.valid_until())
    }

    fn look(&self, headers: &HeaderMap) {
        for text in headers.get_all(WARNING).iter().filter_map(text_of) {
            if !is_hidden(self.hidden, &text) && self.printed.lock().insert(text.clone()) {
                (self.print)(&format!("warning: {text}"));
            }
        }
    }
}

fn is_hidden(hidden: Hidden, text: &str) -> bool {
    match hidden {
        Hidden::All => true,
        Hidden::None => false,
        Hidden::Default => {
            text.starts_with(FINALIZERS) && text.contains(CLUSTER_API) && text.contains(QUALIFIED)
        }
    }
}

/// Text in a header such as `299 - "text"` (RFC 7234, section 5.5).
fn text_of(header: &HeaderValue) -> Option<String> {
    let header = String::from_utf8_lossy(header.as_bytes());
    let (code, rest) = header.split_once(' ')?;
    let (_, quoted) = rest.split_once(' ')?;
    let mut letters = quoted.strip_prefix('"')?.chars();
    if code != CODE {
        return None;
    }
    let mut text = String::new();
    loop {
        match letters.next()? {
            '"' => return Some(text),
            '\\' => text.push(letters.next()?),
            letter => text.push(letter),
        }
    }
}

#[cfg(test)]
mod tests;
