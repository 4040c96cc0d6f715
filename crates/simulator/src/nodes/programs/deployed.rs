//! The simulated OpenStack behind the Pods of a cloud: one for each database.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response};
use http_body_util::{BodyExt as _, Full};
use parking_lot::Mutex;
use serde_json::Value;

use crate::cloud::{Bootstrap, Cloud, Options, Service};

/// OpenStack cloud with services in Pods. Clones share the cloud.
#[derive(Clone)]
pub(super) struct Deployed {
    pub(super) cloud: Cloud,
    /// Job of the last bootstrap.
    bootstrapped: Arc<Mutex<String>>,
}

impl Deployed {
    /// Opens the cloud in a store; without a store, and in a new one, a cloud without users, as left by the schema
    /// tasks.
    pub(super) async fn open(store: Option<PathBuf>) -> Result<Self, String> {
        if let Some(directory) = store.as_deref().and_then(Path::parent) {
            let created = DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory);
            created.map_err(|error| format!("{}: {error}", directory.display()))?;
        }
        let options = Options {
            is_empty: true,
            store,
            ..Options::default()
        };
        let cloud = Cloud::open(options).await;
        Ok(Self {
            cloud: cloud.map_err(|error| error.to_string())?,
            bootstrapped: Arc::default(),
        })
    }

    /// True if this Job has bootstrapped Keystone last.
    pub(super) fn is_bootstrapped(&self, job: &str) -> bool {
        *self.bootstrapped.lock() == job
    }

    /// Bootstraps Keystone like `keystone-manage bootstrap`, once for each run of the Job.
    pub(super) fn bootstrap(&self, job: &str, bootstrap: &Bootstrap) -> Result<(), String> {
        let mut last = self.bootstrapped.lock();
        if *last != job {
            let done = self.cloud.bootstrap(bootstrap);
            done.map_err(|error| error.to_string())?;
            job.clone_into(&mut last);
        }
        Ok(())
    }

    /// Answers on the port of a service.
    pub(super) async fn answer(
        &self,
        service: Service,
        request: Request<Bytes>,
    ) -> Response<Full<Bytes>> {
        let host = request.headers().get(http::header::HOST);
        let host = host.and_then(|it| it.to_str().ok()).unwrap_or_default();
        let url = format!("http://{host}");
        let answer = self.cloud.answer_of(service, &url, request.map(Body::from));
        let (mut head, body) = answer.await.into_parts();
        // A body that fails is a connection that was cut.
        let body = body.collect().await.map(|it| it.to_bytes());
        // As uWSGI does behind an HTTP socket.
        let close = HeaderValue::from_static("close");
        head.headers.insert(http::header::CONNECTION, close);
        Response::from_parts(head, Full::new(body.unwrap_or_default()))
    }

    /// Answers Keystone's administrator.
    pub(super) fn asked(
        &self,
        service: Service,
        method: &str,
        path: &str,
        body: &Value,
    ) -> (u16, Value) {
        match Method::from_bytes(method.as_bytes()) {
            Ok(method) => self.cloud.asked(service, &method, path, body),
            Err(_) => (405, Value::Null),
        }
    }
}
