use axum::body::Body;
use futures::stream;

use super::*;
use crate::tests::{is_alone, peak};

fn of(body: Body) -> Request {
    Request::new(body)
}

/// A body that begins with `bytes` and never ends.
fn half(bytes: Vec<u8>) -> Body {
    let begun = stream::once(async move { Ok::<_, std::io::Error>(bytes) });
    Body::from_stream(begun.chain(stream::pending()))
}

async fn status(room: &Room, body: Body) -> u16 {
    match room.read(of(body)).await {
        Ok(_) => 200,
        Err(answer) => answer.status().as_u16(),
    }
}

/// A review of `size` bytes, most of them objects.
fn review(size: usize) -> Vec<u8> {
    let mut text = b"[{}".to_vec();
    while text.len() + 4 < size {
        text.extend_from_slice(b",{}");
    }
    text.push(b']');
    text
}

#[tokio::test]
async fn a_review_that_is_too_large_or_no_json_is_refused() {
    let room = Room::default();
    assert_eq!(status(&room, Body::from(review(LARGEST - 8))).await, 200);
    assert_eq!(
        status(&room, Body::from(vec![b' '; LARGEST + 1])).await,
        413
    );
    let pieces = stream::repeat_with(|| Ok::<_, std::io::Error>(vec![b' '; 64 << 10]));
    assert_eq!(status(&room, Body::from_stream(pieces)).await, 413);
    assert_eq!(status(&room, Body::from("{")).await, 400);
}

#[tokio::test(start_paused = true)]
async fn half_a_review_is_refused_after_the_limit_and_small_ones_pass_meanwhile() {
    let room = Arc::new(Room::default());
    let slow = |bytes: usize| {
        let room = Arc::clone(&room);
        tokio::spawn(async move { status(&room, half(vec![b' '; bytes])).await })
    };
    let slow = [slow(0), slow(SMALL * 2), slow(SMALL * 2), slow(SMALL * 2)];
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(status(&room, Body::from("{}")).await, 200);
    let mut statuses = Vec::new();
    for slow in slow {
        statuses.push(slow.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [408, 408, 408, 429]);
    assert_eq!(status(&room, Body::from(review(SMALL * 2))).await, 200);
}

#[tokio::test]
async fn more_reviews_than_the_limit_are_answered_with_429() {
    let room = Room::default();
    let mut held = Vec::new();
    for _ in 0..AT_A_TIME {
        held.push(room.read(of(Body::from("{}"))).await.ok().unwrap());
    }
    assert_eq!(status(&room, Body::from("{}")).await, 429);
    held.pop();
    assert_eq!(status(&room, Body::from("{}")).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_large_reviews_at_once_take_the_memory_of_two() {
    if !is_alone("webhook::room::tests::many_large_reviews_at_once_take_the_memory_of_two") {
        return;
    }
    let room = Arc::new(Room::default());
    let text = axum::body::Bytes::from(review(LARGEST - 8));
    let before = peak();
    let reading = (0..AT_A_TIME).map(|_| {
        let (room, text) = (Arc::clone(&room), text.clone());
        tokio::spawn(async move { status(&room, Body::from(text)).await })
    });
    let statuses = futures::future::join_all(reading).await;
    let answered = statuses
        .into_iter()
        .filter(|status| *status.as_ref().unwrap() == 200);
    assert!(answered.count() > 0);
    let grown = peak() - before;
    assert!(grown < 800, "{grown} MiB");
}
