//! Members of pools. Octavia lists members per pool only, so the members of a pool are requested again only if its row
//! in the list of pools has changed.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, StreamExt, TryStreamExt};
use parking_lot::Mutex;
use tokio::time::Instant;

use super::fetch::Fetch;
use super::{Inner, Kind, Resource, Stored};
use crate::error::Result;
use crate::loadbalancer::{Member, Pool};

/// Maximum age of the members of a pool with an unchanged row: the operating status of members is not always part of
/// the row.
const OLDEST: Duration = Duration::from_secs(300);

/// Maximum number of concurrent member lists.
const AT_ONCE: usize = 16;

/// Row of each pool at the last list of its members, and the time of that list.
pub(super) type PoolMarks = Mutex<HashMap<String, (Arc<Pool>, Instant)>>;

impl Fetch for Member {
    async fn fetch(inner: &Inner, since: Option<Instant>) -> Result<Vec<Arc<Self>>> {
        // A running or recent list of pools suffices.
        inner.refresh_as::<Pool>(since).await?;
        members(inner, Instant::now()).await
    }

    fn as_of(inner: &Inner) -> Option<Instant> {
        inner.pace(Kind::Pools).read()
    }
}

async fn members(inner: &Inner, now: Instant) -> Result<Vec<Arc<Member>>> {
    let pools = Pool::cell(&inner.cells).snapshot();
    let known = Member::cell(&inner.cells).snapshot();
    let before = inner.pool_marks.lock().clone();
    let lists = pools.iter().map(|pool| {
        let known = known.of_parent(&pool.id);
        let current = before
            .get(&pool.id)
            .is_some_and(|(mark, read)| mark == pool && now.duration_since(*read) < OLDEST);
        let settled = !pool.is_pending() && known.iter().all(|member| !member.is_pending());
        let complete = known.len() == pool.members.len();
        async move {
            if pool.members.is_empty() && settled {
                return Ok(Vec::new());
            }
            if current && settled && complete {
                return Ok(known.to_vec());
            }
            match inner.polling.load_balancer().members(&pool.id).await {
                Err(error) if error.is_absent() => Ok(Vec::new()),
                result => Ok(result?.into_iter().map(Arc::new).collect()),
            }
        }
    });
    // Not all of them are held as texts at the same time.
    let lists: Vec<_> = lists.collect();
    let members = stream::iter(lists).buffered(AT_ONCE);
    let members: Vec<_> = members.try_concat().await?;
    let mut marks = inner.pool_marks.lock();
    marks.retain(|id, _| pools.get(id).is_some());
    for pool in pools.iter() {
        // We have written the pool meanwhile, so the list may be older.
        if before.contains_key(&pool.id) && !marks.contains_key(&pool.id) {
            continue;
        }
        match marks.get(&pool.id) {
            Some((mark, read)) if mark == pool && now.duration_since(*read) < OLDEST => {}
            _ => {
                marks.insert(pool.id.clone(), (Arc::clone(pool), now));
            }
        }
    }
    Ok(members)
}
