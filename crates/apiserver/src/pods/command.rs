//! `pods/NAME/exec` and `pods/NAME/attach`: the streams of a process in a container. Simulated kubelets have no
//! processes and reject both.

use http::Response;

use super::{Request, translate, upgrade};
use crate::body::Body;
use crate::error::ApiError;
use crate::request::query::Query;

/// Connected streams of a process (`v1.PodExecOptions`, `v1.PodAttachOptions`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Streams {
    pub(super) stdin: bool,
    pub(super) stdout: bool,
    pub(super) stderr: bool,
    pub(super) tty: bool,
}

/// Answers a [`Request`] for exec or attach.
pub(super) async fn answer(request: Request<'_>, kind: &str) -> Result<Response<Body>, ApiError> {
    let pod = request.pod()?;
    let container = request.container(&pod, request.query.get("container"))?;
    let node = request.node(&pod)?;
    if !upgrade::is_wanted(request.headers) {
        return Err(ApiError::bad_request("Upgrade request required"));
    }
    let Some(kubelet) = request.backend(&node) else {
        let message = format!(
            "the server does not allow {kind} on pods: its pods are objects without processes, in which nothing can be run"
        );
        return Err(ApiError::new(405, "MethodNotAllowed", message));
    };
    let streams = Streams::from_query(request.query);
    let commands: Vec<&str> = match kind {
        "exec" => request.query.all("command").collect(),
        _ => Vec::new(),
    };
    let location = format!(
        "/{kind}/{}/{}/{container}{}",
        request.namespace(),
        request.name(),
        streams.query(&commands)
    );
    if translate::is_wanted(request.headers) {
        return translate::answer(&kubelet, request, &location, streams).await;
    }
    kubelet.pass(request, &location).await
}

impl Streams {
    fn from_query(query: &Query) -> Self {
        Self {
            stdin: query.flag("stdin"),
            stdout: query.flag("stdout"),
            stderr: query.flag("stderr"),
            tty: query.flag("tty"),
        }
    }

    /// Query of the request to the kubelet.
    fn query(self, commands: &[&str]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        for command in commands {
            query.append_pair("command", command);
        }
        for (name, wanted) in [
            ("error", self.stderr),
            ("input", self.stdin),
            ("output", self.stdout),
            ("tty", self.tty),
        ] {
            if wanted {
                query.append_pair(name, "1");
            }
        }
        match query.finish().as_str() {
            "" => String::new(),
            query => format!("?{query}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubelet_is_asked_as_by_the_real_server() {
        let query = Query::parse(Some(
            "container=c&command=sh&command=-c&command=echo+%26&stdin=true&stdout=1&stderr=false&tty=0",
        ));
        let streams = Streams::from_query(&query);
        let commands: Vec<&str> = query.all("command").collect();
        assert_eq!(
            streams.query(&commands),
            "?command=sh&command=-c&command=echo+%26&input=1&output=1"
        );
        assert_eq!(Streams::from_query(&Query::parse(None)).query(&[]), "");
    }
}
