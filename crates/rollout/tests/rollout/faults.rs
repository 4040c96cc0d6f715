//! Every request fails the first time, in each way in which requests fail.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use api::openstack::v1alpha1::OpenStack;
use futures::FutureExt as _;
use http::{Method, Request, Response};
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use serde_json::json;
use simulator::nodes::Gate;
use testbed::NAMESPACE;

use crate::world::{CLOUD, World, full, start};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Status(u16, &'static str),
    /// The request never arrives.
    TimedOut,
    /// The request is done, and its answer is lost.
    Dropped,
}

/// Client with a failure of the first attempt of each request.
fn failing(client: &Client, fault: Fault) -> Client {
    let (inner, seen) = (
        client.clone(),
        Arc::new(std::sync::Mutex::new(BTreeSet::new())),
    );
    let service = tower::service_fn(move |request: Request<Body>| {
        let (client, seen) = (inner.clone(), Arc::clone(&seen));
        async move {
            let key = format!("{} {}", request.method(), request.uri().path());
            let is_first = seen.lock().unwrap().insert(key);
            let lost = |why: &str| {
                let error = io::Error::new(io::ErrorKind::TimedOut, why.to_owned());
                Err(kube::Error::Service(Box::new(error)))
            };
            match fault {
                Fault::Status(code, reason) if is_first => {
                    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure",
                        "code": code, "reason": reason, "message": "on request"});
                    let response = Response::builder().status(code);
                    let response = response.header("content-type", "application/json");
                    Ok(response
                        .body(Body::from(status.to_string().into_bytes()))
                        .unwrap())
                }
                Fault::TimedOut if is_first => lost("timed out"),
                Fault::Dropped if is_first => {
                    if request.method() != Method::GET {
                        let _ = client.send(request).await;
                    }
                    lost("connection reset")
                }
                _ => client.send(request).await,
            }
        }
    });
    Client::new(service, NAMESPACE)
}

/// Gate that fails the first attempt of every request to a program.
fn failing_programs(fault: Fault, failed: Arc<AtomicUsize>) -> Gate {
    let seen = Arc::new(std::sync::Mutex::new(BTreeSet::new()));
    Arc::new(move |request, answering| {
        let key = match fault {
            // Each takes as long as the controller waits.
            Fault::TimedOut => request.method().to_string(),
            _ => format!("{} {}", request.method(), request.uri().path()),
        };
        let is_first = seen.lock().unwrap().insert(key);
        if !is_first {
            return answering;
        }
        failed.fetch_add(1, Ordering::SeqCst);
        async move {
            match fault {
                Fault::Status(code, reason) => {
                    let body = json!({"error": reason, "reason": "on request"}).to_string();
                    let response = Response::builder().status(code);
                    response.body(Full::from(body)).ok()
                }
                Fault::TimedOut => std::future::pending().await,
                Fault::Dropped => {
                    answering.await;
                    None
                }
            }
        }
        .boxed()
    })
}

async fn life(fault: Fault) {
    let world = World::open().await;
    world.create(full()).await;
    let failed = Arc::new(AtomicUsize::new(0));
    world
        .programs
        .guard(Some(failing_programs(fault, Arc::clone(&failed))));
    let running = start(failing(&world.management.client, fault));
    world.ready().await;
    world.assert_at_rest().await;
    running.kill().await;
    // RabbitMQ: three lists, and three writes for each of two services. Keystone: logins, six lists, additions to
    // four collections, two roles for each of four users, and the endpoint of bootstrap, which gets the URL of the
    // edge.
    let expected = if fault == Fault::TimedOut { 4 } else { 29 };
    assert_eq!(failed.load(Ordering::SeqCst), expected);

    let running = start(failing(&world.management.client, fault));
    let config = json!({"scheduler": {"workers": 3}});
    world
        .changed(json!({"spec": {"services": {"nova": {"config": config}}}}))
        .await;
    world.ready().await;
    world.assert_at_rest().await;
    running.kill().await;

    let _running = start(failing(&world.management.client, fault));
    world.delete(true).await;
    world.management.gone::<OpenStack>(CLOUD).await;
    assert_eq!(world.owned().await, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn every_request_is_answered_with_a_conflict_once() {
    life(Fault::Status(409, "Conflict")).await;
}

#[tokio::test(start_paused = true)]
async fn every_request_is_answered_with_too_many_requests_once() {
    life(Fault::Status(429, "TooManyRequests")).await;
}

#[tokio::test(start_paused = true)]
async fn every_request_is_answered_with_an_internal_error_once() {
    life(Fault::Status(500, "InternalError")).await;
}

#[tokio::test(start_paused = true)]
async fn every_request_times_out_once() {
    life(Fault::TimedOut).await;
}

#[tokio::test(start_paused = true)]
async fn every_answer_is_lost_once() {
    life(Fault::Dropped).await;
}
